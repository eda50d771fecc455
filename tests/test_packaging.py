"""What is built from this checkout can be installed where nothing else is, and does its job there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index that pip reaches, by pip's own word; CI has one, and there its absence is a failure."""
    folder = tmp_path_factory.mktemp("asked")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries", "0", "click"]
    done = subprocess.run(
        [*command, "--dest", str(folder)], capture_output=True, text=True, check=False,
        env={**os.environ, "PIP_DEFAULT_TIMEOUT": "15"},
    )  # fmt: skip
    if done.returncode and not os.environ.get("CI"):
        pytest.skip("pip reaches no package index")
    assert done.returncode == 0, done.stderr


def run(script: str, *words: object) -> str:
    """Run one of the scripts; what it said is the message where it fails."""
    command = [sys.executable, str(ROOT / "scripts" / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_wheel_and_sdist_installed_alone_run_demo_eval_search_and_serve() -> None:
    if shutil.which("npm") is None and not os.environ.get("CI"):
        pytest.skip("npm is not installed: the web app cannot be built into the wheel")
    said = run("check_wheel.py")
    assert "installed the wheel" in said
    assert "demo, eval (recall@1" in said
    assert "serve: / with " in said
    assert "installed the sdist with LOOKALIKE_WEB=skip" in said
