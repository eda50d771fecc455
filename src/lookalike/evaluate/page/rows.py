"""The worst queries as rows of pictures: what was asked, what came first, and where the first right answer stood."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from PIL import Image

from lookalike.errors import ImageError
from lookalike.evaluate.boxes import BOX, part_of
from lookalike.images.load import load

if TYPE_CHECKING:
    from lookalike.evaluate.evidence import Evidence
    from lookalike.evaluate.report import Report
    from lookalike.evaluate.sides import Side

ROWS = 12
SHOWN = 7
"""Answers shown a query, before the first right one."""
SIDE = 144
"""Pixels of a thumbnail's longer side."""

Kind: TypeAlias = Literal["query", "right", "wrong"]


@dataclass(frozen=True)
class Tile:
    """One picture of a row; `picture` is a data address, or empty where there is no file to show."""

    kind: Kind
    rank: int | None
    name: str
    label: str
    score: float | None
    picture: str


@dataclass(frozen=True)
class Row:
    """A query, its first answers, and the first right one where it is not among them."""

    query: Tile
    answers: tuple[Tile, ...]
    first_right: Tile | None
    first_rank: float


def worst_rows(report: Report, count: int = ROWS) -> list[Row]:
    """Return the queries whose first right answer came last, worst first; equal ones by name.

    Queries whose first answer was right, and those not evaluated, are in none.
    """
    first = report.first_ranks
    failed = [row for row in np.flatnonzero(first > 1).tolist() if not np.isnan(first[row])]
    failed.sort(key=lambda row: (-first[row], report.query_names[row]))
    return [_row(report, *_place(report, query), float(first[query])) for query in failed[:count]]


def _place(report: Report, query: int) -> tuple[Evidence, int]:
    """Return the part of the evidence that holds a query, and its row there."""
    for part in report.evidence:
        if query < len(part.queries):
            return part, query
        query -= len(part.queries)
    raise IndexError(query)


def _row(report: Report, part: Evidence, query: int, first_rank: float) -> Row:
    [(items, scores)] = part.lists(np.array([query]), SHOWN)
    right = set(part.relevant(query).tolist())
    column = report.class_column
    answers = tuple(
        _tile(part.gallery, item, "right" if item in right else "wrong", column, rank, None if part.staged else score)
        for rank, (item, score) in enumerate(zip(items.tolist(), scores.tolist(), strict=True), start=1)
    )
    best = part.first_right(query)
    beyond = None
    if best is not None and best not in items.tolist():
        rank = int(first_rank) if np.isfinite(first_rank) else None
        beyond = _tile(part.gallery, best, "right", column, rank, None)
    return Row(_tile(part.queries, query, "query", column, None, None), answers, beyond, first_rank)


def _tile(side: Side, row: int, kind: Kind, column: str | None, rank: int | None, score: float | None) -> Tile:
    label = side.columns[column][row] if column is not None and column in side.columns else None
    box = side.columns[BOX][row] if BOX in side.columns else None
    picture = _thumbnail(side.paths[row], box) if side.paths else ""
    return Tile(kind, rank, PurePath(side.names[row]).name, "" if label is None else str(label), score, picture)


def _thumbnail(path: str, box: str | None) -> str:
    """Return a small JPEG as a data address, without the file's metadata; empty where it cannot be read."""
    try:
        pixels = load(path, short_side=SIDE).pixels if box is None else part_of(path, box)
    except ImageError:
        return ""
    picture = Image.fromarray(pixels)
    picture.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=78, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
