"""The ranks of a run that was expanded or re-ranked, so that it is scored like any other.

A re-ranker puts the first `pool` items of a list in another order; behind the pool the list stays as it was. So the
rank of a relevant item is its place in the re-ranked pool, or its plain rank where that lies behind the pool, and every
metric, also those over the full list, is defined.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.memory import MemoryStore
from lookalike.catalogue.store import Store
from lookalike.errors import InputError
from lookalike.evaluate.ranks import Ranks, relevant_ranks
from lookalike.evaluate.relevance import Truth
from lookalike.evaluate.sides import Side
from lookalike.index.exact import topk
from lookalike.index.neighbours import Metric, Neighbours

Rerank: TypeAlias = Callable[[Store, Vectors, Neighbours], Neighbours]
Expand: TypeAlias = Callable[[Store, Vectors, Neighbours], Vectors]

EXPANSION_POOL = 100  # neighbours handed to an expansion; it takes the first n of them


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What happens between the first ranking and the scored one; each `None` is left out.

    Raises:
        InputError: a pool below 1.
    """

    expand: Expand | None = None
    rerank: Rerank | None = None
    pool: int = 100

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise InputError(f"pool={self.pool}: at least one candidate must be re-ranked.")

    def __bool__(self) -> bool:
        return self.expand is not None or self.rerank is not None

    def __str__(self) -> str:
        parts = [
            f"expanded by {self.expand}" if self.expand else "",
            f"re-ranked by {self.rerank}" if self.rerank else "",
        ]
        pool = f" over a pool of {self.pool}" if self.rerank else ""
        return ", ".join(filter(None, parts)) + pool


@dataclass(frozen=True)
class Staged:
    """Ranks after the stages, what they came from, and milliseconds a query that each took."""

    ranks: Ranks
    vectors: Vectors
    """(q, d) what was searched with: expanded, where that was asked for."""
    pools: Neighbours | None = None
    """The re-ranked pools; None where nothing was re-ranked."""
    milliseconds: Mapping[str, float] = field(default_factory=dict)


def staged_ranks(
    queries: Side, gallery: Side, truth: Truth, stages: Stages, *, metric: Metric = "cosine", threads: int | None = None
) -> Staged:
    """Rank, expand, rank again, re-rank, and return the rank of every relevant item.

    Both sides are in id order, so that a row is a place among equal scores. What the protocol removes from a query's
    gallery (the query itself, its own camera, junk) is removed before any stage sees a list, so that none can use it.
    """
    store = MemoryStore(list(map(str, gallery.ids.tolist())), gallery.vectors, metric=metric, threads=threads)
    clock = _Clock(len(queries))
    vectors = queries.vectors
    if stages.expand:
        near = _lists(vectors, gallery.vectors, truth, EXPANSION_POOL, metric, threads)
        clock.mark("retrieve_ms")
        vectors = stages.expand(store, vectors, near)
        clock.mark("expand_ms")
    ranks = relevant_ranks(vectors, gallery.vectors, truth, metric=metric, threads=threads)
    clock.restart()
    after: Neighbours | None = None
    if stages.rerank:
        pool = _lists(vectors, gallery.vectors, truth, stages.pool, metric, threads)
        clock.mark("pool_ms")
        after = stages.rerank(store, vectors, pool)
        clock.mark("rerank_ms")
        ranks = _moved(ranks, after, truth)
    return Staged(ranks, vectors, after, clock.spent)


def _lists(
    queries: Vectors, gallery: Vectors, truth: Truth, depth: int, metric: Metric, threads: int | None
) -> Neighbours:
    """Return the first `depth` items of each query's gallery, what the protocol removes left out."""
    everyone = np.arange(truth.num_queries)
    _, removed = truth.rows(everyone)
    unwanted = np.split(removed.items, removed.offsets[1:-1])  # one array a query
    return topk(queries, gallery, depth, metric=metric, exclude=unwanted, threads=threads)


def _moved(plain: Ranks, after: Neighbours, truth: Truth) -> Ranks:
    """Replace the ranks inside each re-ranked pool by the places in it; those behind the pool stay."""
    relevant, _ = truth.rows(np.arange(truth.num_queries))
    new: list[Ids] = []
    for query in range(len(plain)):
        old = plain[query]
        if not old.size:
            new.append(old)
            continue
        ids, _ = after[query]
        right = relevant.items[relevant.offsets[query] : relevant.offsets[query + 1]]
        new.append(np.concatenate([np.flatnonzero(np.isin(ids, right)) + 1, old[old > len(ids)]]))
    return dataclasses.replace(plain, ranks=np.concatenate([np.empty(0, np.int64), *new]))


class _Clock:
    """Milliseconds a query between marks."""

    def __init__(self, queries: int) -> None:
        self.queries = max(queries, 1)
        self.spent: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        self.since = time.perf_counter()

    def mark(self, name: str) -> None:
        self.spent[name] = 1000 * (time.perf_counter() - self.since) / self.queries
        self.restart()
