"""From query vectors to ordered candidates: retrieve a pool, re-rank it, say how far each stands out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.catalogue.store import Store
from lookalike.errors import CutOffError
from lookalike.index.neighbours import Metric, Neighbours, higher_is_better, pair_scores

Stage: TypeAlias = Callable[[Store, Vectors, Neighbours], Neighbours]
"""A re-ranker with its settings: the candidates of (q, d) queries in, the same candidates in another order out."""

SAMPLE = 2_000  # gallery scores that stand for a query's background; the median of 2,000 is steady to about 2 %
MAD_TO_SIGMA = 1.4826  # the standard deviation of a normal distribution in units of its median absolute deviation


@dataclass(frozen=True)
class Ranked:
    """The candidates of one query, best first, before and after re-ranking."""

    ids: Ids
    scores: Scores
    """(n,) in the metric's direction, of the first stage: re-ranking changes the order, not what was measured."""
    lifts: Scores
    """(n,) robust standard deviations above this query's own median score; NaN where all scores are equal."""
    first_ranks: Ids
    """(n,) 1-based rank before re-ranking."""
    metric: Metric

    def __len__(self) -> int:
        return len(self.ids)


def search(
    store: Store,
    queries: Vectors,
    *,
    k: int = 10,
    pool: int = 100,
    where: str | None = None,
    stage: Stage | None = None,
    exclude: Sequence[int | None] | None = None,
    seed: int = 0,
) -> list[Ranked]:
    """Return the k best items for each of (q, d) queries, from a pool that `stage` may put in another order.

    `exclude` names, for each query, an item that is not wanted (the query itself). `pool` is what the stage sees, and
    at least k. `seed` chooses the sample of items that lift is measured against.

    Raises:
        CutOffError: k below 1.
        InputError: what the store refuses: another dimension, an unknown column in the filter.

    >>> from lookalike.catalogue.memory import MemoryStore
    >>> store = MemoryStore(["a", "b", "c"], np.array([[1, 0], [0, 1], [3, 4]]))
    >>> [found] = search(store, np.array([[1, 0]], dtype=np.float32), k=2)
    >>> found.ids.tolist(), found.first_ranks.tolist()
    ([0, 2], [1, 2])
    """
    if k < 1:
        raise CutOffError(k, len(store))
    depth = max(k, pool if stage else k)
    first = store.neighbours(queries, depth + (1 if exclude else 0), where=where)
    if exclude:
        first = _without(first, exclude, depth)
    ordered = stage(store, queries, first) if stage else first
    background = _background(store, queries, seed)
    return [
        _ranked(before, after, scores, k, store.metric)
        for before, after, scores in zip(first, ordered, background, strict=True)
    ]


def lift(scores: Scores, background: Scores, metric: Metric) -> Scores:
    """Return how many robust standard deviations each score stands above the median of the background.

    No fixed cut-off fits all queries, because each has a distribution of its own: (s - median) / (1.4826 · median
    absolute deviation), positive where the score is better than the median.

    >>> lift(np.array([0.9]), np.array([0.1, 0.2, 0.3, 0.4, 0.5]), "cosine").round(2).tolist()
    [4.05]
    """
    centre = np.median(background)
    spread = MAD_TO_SIGMA * np.median(np.abs(background - centre))
    if spread == 0:
        return np.full(len(scores), np.nan)
    return np.asarray((scores - centre) / spread if higher_is_better(metric) else (centre - scores) / spread)


def _ranked(
    before: tuple[Ids, Scores], after: tuple[Ids, Scores], background: Scores, k: int, metric: Metric
) -> Ranked:
    place = {int(item): rank for rank, item in enumerate(before[0])}
    ids = after[0][:k]
    rows = np.array([place[int(item)] for item in ids], dtype=np.int64)
    scores = before[1][rows]
    return Ranked(ids, scores, lift(scores, background, metric), rows + 1, metric)


def _without(found: Neighbours, exclude: Sequence[int | None], depth: int) -> Neighbours:
    """Drop each query's unwanted item, and the one more that was fetched in case it was there."""
    rows = []
    for (ids, scores), unwanted in zip(found, exclude, strict=True):
        kept = np.flatnonzero(ids != unwanted) if unwanted is not None else np.arange(len(ids))
        rows.append((ids[kept[:depth]], scores[kept[:depth]]))
    return Neighbours.from_rows(rows, found.metric)


def _background(store: Store, queries: Vectors, seed: int) -> list[Scores]:
    """Score each query against the same seeded sample of items."""
    ids = store.ids()
    if len(ids) > SAMPLE:
        ids = np.sort(np.random.default_rng(seed).choice(ids, SAMPLE, replace=False))
    items = store.vectors(ids)
    return [pair_scores(query, items, store.metric) for query in queries]
