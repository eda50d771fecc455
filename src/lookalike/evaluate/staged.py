"""The ranks of a run that was expanded or re-ranked, so that it is scored like any other.

A re-ranker puts the first `pool` items of a list in another order; behind the pool the list stays as it was. So the
rank of a relevant item is its place in the re-ranked pool, or its plain rank where that lies behind the pool, and every
metric, also those over the full list, is defined.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.memory import MemoryStore
from lookalike.catalogue.store import Store
from lookalike.errors import InputError, ProtocolError
from lookalike.evaluate.ranks import Ranks, relevant_ranks
from lookalike.evaluate.relevance import Truth
from lookalike.evaluate.sides import Side
from lookalike.index.exact import topk
from lookalike.index.neighbours import Metric, Neighbours, pair_scores
from lookalike.rank.search import Fuse
from lookalike.rank.stages import asked_by_items

Rerank: TypeAlias = Callable[[Store, Vectors, Neighbours], Neighbours]
Expand: TypeAlias = Callable[[Store, Vectors, Neighbours], Vectors]
Augment: TypeAlias = Callable[[Vectors, int | None], Vectors]
Verify: TypeAlias = Callable[[Sequence[str], Callable[[Ids], Sequence[str]], Neighbours], Neighbours]

MOST_FUSED = 30_000_000  # places of whole lists held at once: half a gigabyte an encoder
EXPANSION_POOL = 100  # neighbours handed to an expansion; it takes the first n of them


@dataclass(frozen=True, kw_only=True)
class Stages:
    """What happens between the first ranking and the scored one, in the order of the fields; `None` is left out.

    Raises:
        InputError: a pool below 1.
    """

    augment: Augment | None = None
    """New gallery vectors, once."""
    expand: Expand | None = None
    fuse: Fuse | None = None
    """Joins the whole lists of the first encoder and of each further one."""
    rerank: Rerank | None = None
    verify: Verify | None = None
    """Re-orders by the pictures themselves."""
    pool: int = 100

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise InputError(f"pool={self.pool}: at least one candidate must be re-ranked.")

    def __bool__(self) -> bool:
        return any(stage is not None for stage in (self.augment, self.expand, self.fuse, self.rerank, self.verify))

    def __str__(self) -> str:
        parts = [
            f"gallery augmented by {self.augment}" if self.augment else "",
            f"expanded by {self.expand}" if self.expand else "",
            f"fused by {self.fuse}" if self.fuse else "",
            f"re-ranked by {self.rerank}" if self.rerank else "",
            f"verified by {self.verify}" if self.verify else "",
        ]
        pool = f" over a pool of {self.pool}" if self.rerank or self.verify else ""
        return ", ".join(filter(None, parts)) + pool


@dataclass(frozen=True)
class Staged:
    """Ranks after the stages, what they came from, and milliseconds a query that each took."""

    ranks: Ranks
    vectors: Vectors
    """(q, d) what was searched with: expanded, where that was asked for."""
    gallery: Side
    """What was searched: augmented, where that was asked for."""
    pools: Neighbours | None = None
    """The re-ranked pools; None where nothing was re-ranked."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds a query (`…_ms`), and seconds spent once (`…_s`)."""


def staged_ranks(
    queries: Side, gallery: Side, truth: Truth, stages: Stages, *, metric: Metric = "cosine", threads: int | None = None
) -> Staged:
    """Rank, expand, rank again, re-rank, and return the rank of every relevant item.

    Both sides are in id order, so that a row is a place among equal scores. What the protocol removes from a query's
    gallery (the query itself, its own camera, junk) is removed before any stage sees a list. A re-ranker that looks at
    the whole gallery is told which item each query is, so that it stands in the set once.

    Raises:
        ProtocolError: an augmented gallery that holds the queries, whose vectors would be mixed into their answers;
            expansion or augmentation under l2.
        InputError: pictures are to be verified and one side has ready vectors only.
    """
    _check(queries, gallery, stages, metric)
    clock = _Clock(len(queries))
    if stages.augment:
        gallery = dataclasses.replace(gallery, vectors=stages.augment(gallery.vectors, threads))
        clock.mark_once("augment_s")
    store = MemoryStore(list(map(str, gallery.ids.tolist())), gallery.vectors, metric=metric, threads=threads)
    clock.restart()
    vectors = queries.vectors
    if stages.expand:
        near = _lists(vectors, gallery.vectors, truth, EXPANSION_POOL, metric, threads)
        clock.mark("retrieve_ms")
        vectors = stages.expand(store, vectors, near)
        clock.mark("expand_ms")
    ranks = relevant_ranks(vectors, gallery.vectors, truth, metric=metric, threads=threads)
    clock.restart()
    after: Neighbours | None = None
    whole: Neighbours | None = None
    if stages.fuse:
        pairs = [(vectors, gallery.vectors), *zip(queries.further, gallery.further, strict=True)]
        whole = stages.fuse([_lists(*pair, truth, len(gallery), metric, threads) for pair in pairs])
        clock.mark("fuse_ms")
    if whole is not None:
        after = _heads(whole, stages.pool, vectors, gallery, metric)
    elif stages.rerank or stages.verify:
        after = _lists(vectors, gallery.vectors, truth, stages.pool, metric, threads)
        clock.mark("pool_ms")
    if stages.rerank and after is not None:
        after = asked_by_items(stages.rerank, _own(queries, gallery))(store, vectors, after)
        clock.mark("rerank_ms")
    if stages.verify and after is not None:
        after = stages.verify(queries.paths, lambda rows: [gallery.paths[row] for row in rows], after)
        clock.mark("verify_ms")
    if after is not None and whole is not None:
        after = _with_tails(after, whole)
    if after is not None:
        ranks = _moved(ranks, after, truth)
    return Staged(ranks, vectors, gallery, after, clock.spent)


def _check(queries: Side, gallery: Side, stages: Stages, metric: Metric) -> None:
    if stages.augment and np.isin(queries.ids, gallery.ids).any():
        raise ProtocolError(
            "Augmenting mixes gallery items into one another, and here the queries are gallery items: each would be "
            "mixed into its own answers.",
            hint="Let some pictures ask the others: --holdout 0.2, or a split.",
        )
    if (stages.augment or stages.expand) and metric == "l2":
        raise ProtocolError(
            "Expansion and augmentation add directions: their vectors have length 1, and l2 compares lengths too.",
            hint="Ask with the metric cosine.",
        )
    if stages.fuse and not queries.further:
        raise InputError("There is one encoder, so there is nothing to fuse.", hint="Measure a catalogue of several.")
    if stages.fuse and len(queries) * len(gallery) > MOST_FUSED:
        raise InputError(
            f"Fusing ranks whole lists, and {len(queries)} x {len(gallery)} places are more than {MOST_FUSED:,}.",
            hint="Let fewer pictures ask: --query-where, or a smaller --holdout.",
        )
    if stages.verify and not (queries.paths and gallery.paths):
        raise InputError("Ready vectors have no pictures to verify.", hint="Measure a folder, manifest or catalogue.")


def _heads(whole: Neighbours, pool: int, vectors: Vectors, gallery: Side, metric: Metric) -> Neighbours:
    """Cut fused lists to the pool and score them by the first encoder, which is what a re-ranker reads."""
    rows = []
    for query, (ids, _) in zip(vectors, whole, strict=True):
        rows.append((ids[:pool], pair_scores(query, gallery.vectors[ids[:pool]], metric)))
    return Neighbours.from_rows(rows, metric)


def _with_tails(heads: Neighbours, whole: Neighbours) -> Neighbours:
    """Let the fused order go on behind the re-ranked pools."""
    rows = []
    for (ids, scores), (all_ids, all_scores) in zip(heads, whole, strict=True):
        rows.append((np.concatenate([ids, all_ids[len(ids) :]]), np.concatenate([scores, all_scores[len(ids) :]])))
    return Neighbours.from_rows(rows, heads.metric)


def _own(queries: Side, gallery: Side) -> Ids:
    """Return (q,) the gallery row that is the same item as each query, -1 where none is."""
    rows = np.minimum(np.searchsorted(gallery.ids, queries.ids), len(gallery) - 1)
    return np.where(gallery.ids[rows] == queries.ids, rows, -1)


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
    """Milliseconds a query, or seconds in all, between marks."""

    def __init__(self, queries: int) -> None:
        self.queries = max(queries, 1)
        self.spent: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        self.since = time.perf_counter()

    def mark_once(self, name: str) -> None:
        self.spent[name] = time.perf_counter() - self.since
        self.restart()

    def mark(self, name: str) -> None:
        self.spent[name] = 1000 * (time.perf_counter() - self.since) / self.queries
        self.restart()
