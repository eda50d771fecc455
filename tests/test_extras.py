"""Every extra that a message, a table or a page names is one that can be installed, and brings what it is named for."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookalike.cli.doctor import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
OFFERED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
RAISING = {"MissingExtraError": 1, "_load": 2}
"""What takes an extra by position, and where."""


def named_in(source: Path) -> Iterator[str]:
    """Yield the extras that a file names: in calls, and in the constant EXTRA."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") != "ConfigDict":  # pydantic has an `extra` too
            given = [keyword.value for keyword in node.keywords if keyword.arg == "extra"]
            place = RAISING.get(getattr(node.func, "id", ""))
            given += node.args[place : place + 1] if place is not None else []
        elif isinstance(node, ast.Assign):
            names, values = (getattr(side, "elts", [side]) for side in (node.targets[0], node.value))
            given = [value for name, value in zip(names, values, strict=False) if getattr(name, "id", "") == "EXTRA"]
        yield from (value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str))


def test_every_extra_named_in_the_code_can_be_installed():
    named = {extra for path in (ROOT / "src").rglob("*.py") for extra in named_in(path)}
    assert named == set(OFFERED) - {"all"}  # and each one offered is asked for somewhere


@pytest.mark.parametrize("place", ["src", "docs", "README.md", "web/src"])
def test_every_extra_named_in_a_text_can_be_installed(place):
    files = [ROOT / place] if (ROOT / place).is_file() else list((ROOT / place).rglob("*.*"))
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".md", ".ts", ".svelte")]
    assert texts
    found = re.findall(r"lookalike\[([a-z][a-z,-]*)\]", "\n".join(texts))
    assert {extra for names in found for extra in names.split(",")} <= set(OFFERED)


def test_all_is_all_of_them():
    [everything] = OFFERED["all"]
    listed = everything.removeprefix("lookalike[").removesuffix("]").split(",")
    assert sorted(listed) == sorted(set(OFFERED) - {"all"})


def test_doctor_looks_for_packages_that_its_extras_bring():
    assert set(EXTRAS) == set(OFFERED) - {"all"}
    for extra, (packages, _) in EXTRAS.items():
        brought = set(re.findall(r"[\w-]+(?=[\[\]<>=]|$)", " ".join(OFFERED[extra])))  # dask[distributed] brings both
        assert set(packages) <= brought, extra
