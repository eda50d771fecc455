"""The reference pages are what the verbs and the server say of themselves."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from lookalike.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "reference.py"
AGAIN = "run: python scripts/reference.py"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_the_command_line_is_what_the_verbs_say(reference):
    assert reference.CLI.read_text(encoding="utf-8") == reference.cli_page(), AGAIN


def test_the_table_of_operations_is_what_the_openapi_document_says(reference):
    page = reference.HTTP.read_text(encoding="utf-8")
    assert page == reference.http_page(page), AGAIN


def test_every_verb_has_a_section_and_every_operation_a_row(reference):
    lines = reference.CLI.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line in {f"### {verb}" for verb in VERBS}] == [f"### {verb}" for verb in VERBS]
    page = reference.HTTP.read_text(encoding="utf-8")
    paths = json.loads(reference.OPENAPI.read_text(encoding="utf-8"))["paths"]
    rows = [f"| `{method.upper()} {path.removeprefix('/api/v1')}` |" for path, ops in paths.items() for method in ops]
    assert [row for row in rows if page.count(row) != 1] == []
