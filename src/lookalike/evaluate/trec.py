"""A run as TREC files, which every evaluation tool of the field reads."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Ids, Scores
from lookalike.evaluate.evidence import Evidence
from lookalike.index.neighbours import higher_is_better

DEPTH = 100
LEAST_DEPTH = 10
MOST_LINES = 1_000_000
MOST_PAIRS = 5_000_000
"""Relevant pairs beyond which qrels.trec is not written; part of them would make other metrics of the same run."""
_BLOCK = 4_096


def default_depth(num_queries: int) -> int:
    """Return how many answers a query are written: 100, fewer where there are many queries, at least 10.

    >>> default_depth(500), default_depth(60_502)
    (100, 16)
    """
    return min(DEPTH, max(LEAST_DEPTH, MOST_LINES // max(num_queries, 1)))


def write_trec(parts: Sequence[Evidence], folder: Path, depth: int) -> dict[str, Any]:
    """Write run.trec, qrels.trec and names.csv; return what they hold.

    Queries and items are named by their ids, which have no blanks; names.csv says what they are called. Tools order a
    run by its scores, in float32 and with ties by name, so every score is written at least one float32 step below the
    one before. Distances are negated. Where a list was re-ranked it has scores of two kinds, and minus the rank is
    written instead.
    """
    with (folder / "run.trec").open("w", encoding="ascii") as file:
        for part in parts:
            for rows in _blocks(np.arange(len(part.queries))):
                for row, (items, scores) in zip(rows.tolist(), part.lists(rows, depth), strict=True):
                    file.writelines(_run_lines(part, row, items, scores))
    pairs = sum(int(part.truth.num_relevant.sum()) for part in parts)
    if pairs <= MOST_PAIRS:
        with (folder / "qrels.trec").open("w", encoding="ascii") as file:
            for part in parts:
                for rows in _blocks(np.flatnonzero(part.truth.evaluated)):
                    file.writelines(_qrels_lines(part, rows))
    _write_names(parts, folder / "names.csv")
    return {"depth": depth, "relevant_pairs": pairs, "qrels": pairs <= MOST_PAIRS}


def _run_lines(part: Evidence, row: int, items: Ids, scores: Scores) -> Iterator[str]:
    query, ids = int(part.queries.ids[row]), part.gallery.ids[items].tolist()
    for place, (item, score) in enumerate(zip(ids, _falling(part, scores), strict=True), start=1):
        yield f"{query} Q0 {item} {place} {score} lookalike\n"


def _falling(part: Evidence, scores: Scores) -> Iterator[str]:
    if part.staged:
        yield from (str(-place) for place in range(1, len(scores) + 1))
        return
    above = np.float32(np.inf)
    for score in (scores if higher_is_better(part.metric) else -scores).astype(np.float32):
        above = min(score, np.nextafter(above, np.float32(-np.inf)))
        yield f"{float(above):.9g}"  # nine digits name a float32


def _qrels_lines(part: Evidence, rows: Ids) -> Iterator[str]:
    relevant, _ = part.truth.rows(rows)
    queries = part.queries.ids[rows[relevant.rows]].tolist()
    for query, item in zip(queries, part.gallery.ids[relevant.items].tolist(), strict=True):
        yield f"{query} 0 {item} 1\n"


def _write_names(parts: Sequence[Evidence], path: Path) -> None:
    names: dict[int, str] = {}
    for part in parts:
        for side in (part.gallery, part.queries):
            names.update(zip(side.ids.tolist(), side.names, strict=True))
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "name"])
        writer.writerows(sorted(names.items()))


def _blocks(rows: Ids) -> Iterator[Ids]:
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]
