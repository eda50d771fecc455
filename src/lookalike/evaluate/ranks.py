"""The rank of every relevant item: the one thing all metrics are computed from.

A rank is counted, not sorted for: 1 + the items that score higher, equal scores in id order. Memory is bounded, and
block size and thread count change no digit, because every close comparison is made on exact scores of single pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Mask, as_vectors
from lookalike.errors import InputError, ShapeError
from lookalike.evaluate.relevance import REASONS, Truth
from lookalike.index.neighbours import Metric, check_metric

DEFAULT_BUDGET = 256 << 20
"""Bytes of working memory, beyond the vectors and the answer."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of the relevant items of q queries, ragged; an excluded query has an empty row and a reason."""

    ranks: Ids
    """(total,) 1-based, ascending within each query."""
    offsets: Ids
    """(q + 1,) row i is `ranks[offsets[i]:offsets[i + 1]]`."""
    num_relevant: Ids
    """(q,) relevant items after removals, ranked or not."""
    gallery_sizes: Ids
    """(q,) gallery size after removals."""
    reasons: npt.NDArray[np.int8]
    """(q,) positions in `relevance.REASONS`; 0 where the query is evaluated."""
    tied: Mask
    """(q,) queries whose ranks depend on a tie between a relevant item and another one."""
    depth: int | None = None
    """Length of the lists these ranks come from; None where the whole gallery was ranked."""
    first_only: bool = False
    """Only the first relevant item of each query was ranked."""

    def __len__(self) -> int:
        return len(self.num_relevant)

    def __getitem__(self, query: int) -> Ids:
        if not -len(self) <= query < len(self):
            raise IndexError(query)
        query %= len(self)
        return self.ranks[self.offsets[query] : self.offsets[query + 1]]

    @property
    def evaluated(self) -> Mask:
        """(q,) queries that count."""
        return np.asarray(self.reasons == 0)

    @property
    def excluded(self) -> dict[str, int]:
        """Queries left out, by reason."""
        counts = np.bincount(self.reasons, minlength=len(REASONS))
        return {name: int(count) for name, count in zip(REASONS[1:], counts[1:], strict=True) if count}

    @property
    def rows(self) -> Ids:
        """(total,) the query of each rank."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def first(self) -> npt.NDArray[np.float64]:
        """(q,) rank of the first relevant item: infinite where none was retrieved, NaN where not evaluated."""
        first = np.where(self.evaluated, np.inf, np.nan)
        found = np.diff(self.offsets) > 0
        first[found] = self.ranks[self.offsets[:-1][found]]
        return first

    @classmethod
    def from_lists(
        cls, lists: Sequence[npt.ArrayLike], truth: Truth, *, gallery_ids: Ids | None = None, depth: int | None = None
    ) -> Ranks:
        """Rank by candidate lists, best first, as a re-ranked or approximate run gives them.

        `lists`: one array of gallery ids (positions where `gallery_ids` is None) a query. Removed items are taken
        out before counting. `depth` is the length every list was asked for, by default that of the longest; an item
        that is in no list has no rank.

        Raises:
            InputError: an id outside the gallery, or twice in one list.
            ShapeError: not one list a query.
        """
        return _from_lists(lists, truth, gallery_ids, depth)

    @classmethod
    def join(cls, parts: Sequence[Ranks]) -> Ranks:
        """Join the ranks of consecutive queries."""
        if len(parts) == 1:
            return parts[0]
        columns: dict[str, Any] = {
            f.name: np.concatenate([getattr(part, f.name) for part in parts])
            for f in fields(cls)
            if f.name not in ("offsets", "depth", "first_only")
        }
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]))])
        depths = [part.depth for part in parts if part.depth is not None]
        return cls(
            **columns,
            offsets=offsets.astype(np.int64),
            depth=max(depths) if depths else None,
            first_only=any(part.first_only for part in parts),
        )


def relevant_ranks(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    truth: Truth,
    *,
    metric: Metric = "cosine",
    gallery_ids: Ids | None = None,
    first_only: bool = False,
    block: int | None = None,
    threads: int | None = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> Ranks:
    """Rank every relevant item of every evaluated query, or only the first one.

    queries (q, d), gallery (n, d): pass the same array for both where they are the same, it costs half. `block`:
    queries at a time, by default what `memory_budget` (bytes) and the cache allow. Ties go by `gallery_ids`, or by
    position.

    Raises:
        ShapeError: the truth is about other numbers of queries or items.
        NonFiniteError: NaN, infinity, or under cosine a zero vector; the rows are named.

    Where classes are large, all ranks together are many: `rank_blocks` hands them out query block by query block.

    >>> from lookalike.evaluate.relevance import SameLabel, build_truth
    >>> truth = build_truth(SameLabel(["a"], ["b", "a", "a"]), num_queries=1, num_gallery=3)
    >>> relevant_ranks([[1.0, 0.0]], [[2.0, 0.1], [1.0, 0.0], [0.0, 1.0]], truth).ranks.tolist()
    [1, 3]
    """
    parts = list(
        rank_blocks(
            queries,
            gallery,
            truth,
            metric=metric,
            gallery_ids=gallery_ids,
            first_only=first_only,
            block=block,
            threads=threads,
            memory_budget=memory_budget,
        )
    )
    return Ranks.join(parts)


def rank_blocks(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    truth: Truth,
    *,
    metric: Metric = "cosine",
    gallery_ids: Ids | None = None,
    first_only: bool = False,
    block: int | None = None,
    threads: int | None = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> Iterator[Ranks]:
    """Yield the ranks of consecutive blocks of queries, in order; see `relevant_ranks`."""
    from lookalike.evaluate import counting

    check_metric(metric)
    same = queries is gallery
    left = as_vectors(queries, name="queries")
    right = left if same else as_vectors(gallery, name="gallery", dim=left.shape[1])
    if (len(left), len(right)) != (truth.num_queries, truth.num_gallery):
        raise ShapeError(
            f"The truth is about {truth.num_queries} queries and {truth.num_gallery} items; "
            f"there are {len(left)} and {len(right)} vectors."
        )
    if block is not None and block < 1:
        raise InputError(f"block={block}: at least one query at a time.")
    if not same and left.shape == right.shape and np.array_equal(left, right):
        right = left
    ids = np.arange(len(right)) if gallery_ids is None else np.asarray(gallery_ids, dtype=np.int64)
    job = counting.Job.prepare(left, right, truth, metric, ids, first_only=first_only)
    yield from counting.run(job, block=block, threads=threads, memory_budget=memory_budget)


def _from_lists(lists: Sequence[npt.ArrayLike], truth: Truth, gallery_ids: Ids | None, depth: int | None) -> Ranks:
    if len(lists) != truth.num_queries:
        raise ShapeError(f"There are {len(lists)} candidate lists for {truth.num_queries} queries.")
    place = None if gallery_ids is None else {int(item): row for row, item in enumerate(gallery_ids)}
    found, longest = [], 0
    for query, listed in enumerate(lists):
        items = np.asarray(listed, dtype=np.int64)
        longest = max(longest, len(items))
        if place is not None:
            unknown = [int(item) for item in items if int(item) not in place]
            if unknown:
                raise InputError(f"The list of query {query} holds id {unknown[0]}, which the gallery has not.")
            items = np.array([place[int(item)] for item in items], dtype=np.int64)
        if items.size and not 0 <= items.min() <= items.max() < truth.num_gallery:
            raise InputError(f"The list of query {query} names an item outside 0..{truth.num_gallery - 1}.")
        if np.unique(items).size != items.size:
            raise InputError(f"The list of query {query} holds an item twice.")
        relevant, removed = truth.rows(np.array([query]))
        kept = items[~np.isin(items, removed.items)]
        hits = np.flatnonzero(np.isin(kept, relevant.items)) + 1
        found.append(hits if truth.reasons[query] == 0 else hits[:0])
    return Ranks(
        np.concatenate([np.empty(0, np.int64), *found]),
        np.concatenate([[0], np.cumsum([len(hits) for hits in found])]).astype(np.int64),
        truth.num_relevant,
        truth.gallery_sizes,
        truth.reasons,
        np.zeros(len(lists), dtype=bool),
        depth=longest if depth is None else depth,
    )
