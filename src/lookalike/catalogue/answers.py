"""Ranked answers over a view: the mapped rows and the newer ones, joined by true score."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors, unit
from lookalike.catalogue.view import Part, View
from lookalike.errors import CutOffError, InputTypeError
from lookalike.index.neighbours import Metric, Neighbours, higher_is_better
from lookalike.index.scan import scan

if TYPE_CHECKING:
    from lookalike.catalogue.searching import Searching

_OVERFETCH = 64
"""Up to this many dead rows are fetched beyond k and dropped, which is cheaper than gathering all the others."""


def check(queries: Vectors, k: int, metric: Metric, depth: int) -> Vectors:
    """Refuse queries and cut-offs that have no answer."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputTypeError(f"k must be a whole number, not {k!r}.")
    if k < 1:
        raise CutOffError(int(k), depth)
    if metric == "cosine":
        unit(queries, name="queries")
    return queries


def rank(
    store: Searching,
    connection: sqlite3.Connection,
    present: View,
    queries: Vectors,
    k: int,
    allowed: Ids | None,
) -> Neighbours:
    """Rank the live items (of those allowed, where a filter chose some) for each query."""
    return exact(present, queries, k, allowed)


def exact(present: View, queries: Vectors, k: int, allowed: Ids | None) -> Neighbours:
    """Rank by looking at every live row."""
    parts = [_part(part, queries, k, allowed) for part in (present.base, present.tail) if len(part.ids)]
    return joined(parts, len(queries), k, present.base.gallery.metric)


def _part(part: Part, queries: Vectors, k: int, allowed: Ids | None) -> tuple[Ids, Scores]:
    """Return (q, up to k) ids and scores of one part."""
    dead = int(part.dead.sum())
    rows: Ids | None = None
    extra = 0
    if allowed is not None:
        rows = np.flatnonzero(np.isin(part.ids, allowed, assume_unique=True) & ~part.dead).astype(np.int64)
    elif dead > _OVERFETCH:
        rows = np.flatnonzero(~part.dead).astype(np.int64)
    else:
        extra = dead
    depth = min(k + extra, len(part.ids) if rows is None else len(rows))
    found, scores = scan(queries, part.gallery, depth, rows=rows)
    if extra:
        found, scores = _drop(found, scores, part, min(k, len(part.ids) - dead))
    return part.ids[found], scores


def _drop(found: Ids, scores: Scores, part: Part, k: int) -> tuple[Ids, Scores]:
    """Keep the k best living of each row; every row has that many, as it was fetched with all the dead in reach."""
    order = np.argsort(part.dead[found], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(found, order, 1), np.take_along_axis(scores, order, 1)


def joined(parts: list[tuple[Ids, Scores]], q: int, k: int, metric: Metric) -> Neighbours:
    """Merge rankings of the same queries over disjoint items."""
    if not parts:
        return Neighbours.from_rows([(np.empty(0, np.int64), np.empty(0, np.float64))] * q, metric)
    ids = np.concatenate([part[0] for part in parts], axis=1)
    scores = np.concatenate([part[1] for part in parts], axis=1)
    order = np.lexsort((ids, -scores if higher_is_better(metric) else scores))[:, :k]
    ids, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(scores, order, 1)
    width = ids.shape[1]
    offsets = np.arange(q + 1, dtype=np.int64) * width
    return Neighbours(ids.ravel(), scores.ravel(), offsets, metric)
