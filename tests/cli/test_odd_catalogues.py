"""What a stranger does to a catalogue: odd names, wrong folders, derived files deleted, a second encoder."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest


@pytest.fixture
def shop(run_here, photos):
    done = run_here("index", "shop.la", photos)
    assert done.code == 0, done.err
    return Path("shop.la")


def test_a_name_with_a_newline_or_an_escape_keeps_its_row_of_the_table(run_here, photos):
    (photos / "red" / "0.png").rename(photos / "red" / "two\nlines.png")
    (photos / "red" / "1.png").rename(photos / "red" / "\x1b[31m.png")
    assert run_here("index", "shop.la", photos).code == 0
    table = run_here("search", "shop.la", photos / "red" / "2.png", "-k", 12).out.splitlines()
    assert len(table) == 1 + 12
    assert any(r"red/two\nlines.png" in row for row in table)
    assert any(r"red/\x1b[31m.png" in row for row in table)
    rows = csv.DictReader(
        io.StringIO(run_here("search", "shop.la", photos / "red" / "2.png", "-k", 12, "--format", "csv").out)
    )
    assert "red/two\nlines.png" in {row["path"] for row in rows}  # a program gets the name itself
