"""From query vectors to ordered candidates: retrieve a pool, re-rank it, say how far each stands out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.catalogue.store import Store
from lookalike.errors import CutOffError
from lookalike.index.neighbours import Metric, Neighbours, higher_is_better, pair_scores
from lookalike.rank.fusion import fuse_ranks
from lookalike.rank.stages import Stage, asked_by_items

Fuse: TypeAlias = Callable[[Sequence[Neighbours]], Neighbours]
"""The rankings of several encoders over the same items in, one ranking out; `rank.fusion` has them."""

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
    """(n,) 1-based rank before re-ranking; 0 for an item that fusion took from another encoder's list."""
    metric: Metric
    proofs: Scores | None = None
    """(n,) what the last stage scored, in its own direction; None where there was no stage."""

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
    fuse_with: Sequence[tuple[Store, Vectors]] = (),
    fuse: Fuse = fuse_ranks,
    exclude: Sequence[int | None] | None = None,
    seed: int = 0,
) -> list[Ranked]:
    """Return the k best items for each of (q, d) queries, from a pool that `stage` may put in another order.

    `exclude` names, for each query, an item that is not wanted (the query itself). `pool` is what the stage sees, and
    at least k. `fuse_with` holds the same items by other encoders, each with the (q, d') queries by it: the pools of
    all are fused into one before the stage. `seed` chooses the sample of items that lift is measured against.

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
    depth = min(max(k, pool if stage or fuse_with else k), max(len(store), 1))
    first = _retrieved(store, queries, depth, where, exclude)
    ordered = first
    if fuse_with:
        rankings = [_retrieved(other, rows, depth, where, exclude) for other, rows in fuse_with]
        ordered = _rescored(store, queries, fuse([first, *rankings]), depth)
    candidates = ordered
    if stage:
        own = None if not exclude else np.array([-1 if item is None else item for item in exclude], dtype=np.int64)
        ordered = asked_by_items(stage, own)(store, queries, candidates)
    background = _background(store, queries, seed)
    places = [_ranked(*each, k, store.metric) for each in zip(first, candidates, ordered, background, strict=True)]
    return places if stage else [dataclasses.replace(ranked, proofs=None) for ranked in places]


def lift(scores: Scores, background: Scores, metric: Metric) -> Scores:
    """Return how many robust standard deviations each score stands above the median of the background.

    No fixed cut-off fits all queries, because each has a distribution of its own: (s - median) / (1.4826 · median
    absolute deviation), positive where the score is better than the median.

    >>> lift(np.array([0.9]), np.array([0.1, 0.2, 0.3, 0.4, 0.5]), "cosine").round(2).tolist()
    [4.05]
    """
    if not len(background):
        return np.full(len(scores), np.nan)
    centre = np.median(background)
    spread = MAD_TO_SIGMA * np.median(np.abs(background - centre))
    if spread == 0:
        return np.full(len(scores), np.nan)
    return np.asarray((scores - centre) / spread if higher_is_better(metric) else (centre - scores) / spread)


def _ranked(
    first: tuple[Ids, Scores],
    before: tuple[Ids, Scores],
    after: tuple[Ids, Scores],
    background: Scores,
    k: int,
    metric: Metric,
) -> Ranked:
    rank = {int(item): place for place, item in enumerate(first[0], 1)}
    score = dict(zip(before[0].tolist(), before[1].tolist(), strict=True))
    ids = after[0][:k]
    scores = np.array([score[int(item)] for item in ids], dtype=np.float64)
    if metric == "cosine":
        scores = scores.clip(-1, 1)  # rounding can leave a cosine of 1 + 2e-16
    ranks = np.array([rank.get(int(item), 0) for item in ids], dtype=np.int64)
    return Ranked(ids, scores, lift(scores, background, metric), ranks, metric, after[1][:k])


def _retrieved(
    store: Store, queries: Vectors, depth: int, where: str | None, exclude: Sequence[int | None] | None
) -> Neighbours:
    found = store.neighbours(queries, depth + (1 if exclude else 0), where=where)
    return _without(found, exclude, depth) if exclude else found


def _rescored(store: Store, queries: Vectors, fused: Neighbours, depth: int) -> Neighbours:
    """Cut fused rankings and score them by the first store, which has not retrieved every one of them."""
    rows = []
    for query, (ids, _) in zip(queries, fused, strict=True):
        kept = ids[:depth]
        rows.append((kept, pair_scores(query, store.vectors(kept), store.metric)))
    return Neighbours.from_rows(rows, store.metric)


def _without(found: Neighbours, exclude: Sequence[int | None], depth: int) -> Neighbours:
    """Drop each query's unwanted item, and the one more that was fetched in case it was there."""
    rows = []
    for (ids, scores), unwanted in zip(found, exclude, strict=True):
        kept = np.flatnonzero(ids != unwanted) if unwanted is not None else np.arange(len(ids))
        rows.append((ids[kept[:depth]], scores[kept[:depth]]))
    return Neighbours.from_rows(rows, found.metric)


def _background(store: Store, queries: Vectors, seed: int) -> list[Scores]:
    """Score each query against the same seeded sample of items, in float32: a median needs no more."""
    sample = getattr(store, "sample", None)  # an engine far away is not asked for all its ids to choose from
    ids = store.ids() if sample is None else sample(SAMPLE, seed)
    if len(ids) > SAMPLE:
        ids = np.sort(np.random.default_rng(seed).choice(ids, SAMPLE, replace=False))
    items = store.vectors(ids)
    products = queries @ items.T
    if store.metric == "ip":
        return list(products.astype(np.float64))
    asked, held = (np.einsum("nd,nd->n", rows, rows) for rows in (queries, items))
    if store.metric == "l2":
        return list((asked[:, None] + held - 2 * products).astype(np.float64))
    return list((products / np.sqrt(asked[:, None] * held)).astype(np.float64))
