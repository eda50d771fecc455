"""The app's own checks: types, lint, the arithmetic of the labs, and types that are those of the server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
WEB = REPOSITORY / "web"


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    if shutil.which("npm") is None or not (WEB / "node_modules").is_dir():
        pytest.skip("the web app's packages are not installed: npm ci --prefix web")


@pytest.mark.parametrize("script", ["check", "lint", "test"])
def test_types_lint_and_unit_tests_pass(script):
    done = subprocess.run(["npm", "run", "--silent", script], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_types_are_generated_from_the_servers_own_document(tmp_path):
    made = subprocess.run([sys.executable, "-m", "lookalike.server.openapi"], capture_output=True, check=True).stdout
    assert made == (WEB / "openapi.json").read_bytes(), "python -m lookalike.server.openapi > web/openapi.json"
    types = tmp_path / "schema.d.ts"
    command = ["npx", "--no-install", "openapi-typescript", "openapi.json", "-o", str(types)]
    subprocess.run(command, cwd=WEB, check=True, capture_output=True)
    assert types.read_text() == (WEB / "src/api/schema.d.ts").read_text(), "npm run types --prefix web"
