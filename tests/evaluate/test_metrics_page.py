"""docs/metrics.md says what the code computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from lookalike.evaluate.metrics import METRICS, per_query
from lookalike.evaluate.ranks import Ranks
from lookalike.evaluate.relevance import ListedPairs, build_truth
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side

PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table that begins with this header."""
    table = PAGE.split(header)[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[1:]]


def test_every_metric_is_on_the_page_with_the_words_of_its_definition():
    written = {name.strip("`"): words for name, words, _ in rows("| name | definition | formula |")}
    assert written == {name: definition.words for name, definition in METRICS.items()}


@pytest.mark.parametrize("row", rows("| metric | value | how |"), ids=lambda row: row[0])
def test_the_ranking_worked_by_hand_has_the_values_on_the_page(row: list[str]):
    name, value, _ = row
    truth = build_truth(ListedPairs({0: [0, 3, 5]}), num_queries=1, num_gallery=6)
    ranks = Ranks.from_lists([np.arange(6)], truth)
    digits = len(value.split(".")[1])
    assert round(float(per_query(ranks, name.strip("`"))[0]), digits) == float(value)


def test_a_saved_run_holds_the_files_on_the_page_and_no_others(tmp_path: Path):
    named = set(re.findall(r"^\| `([a-z_]+\.[a-z]+)` \|", PAGE, flags=re.M))
    side = Side(vectors=np.eye(4, dtype="f4")[[0, 0, 1, 1]], ids=np.arange(4), columns={"label": list("aabb")})
    measure(side, side).save(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} | {"failures.jsonl"} == named
