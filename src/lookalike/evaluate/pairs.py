"""Sets of (query, item) pairs that are never written out as a whole.

A set answers for some queries at a time: by comparing codes, by looking up label sets, or from a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from lookalike.arrays import Codes, Ids, Mask

BLOCK_PAIRS = 1 << 20
"""Pairs written out at a time (16 MB of row and item numbers)."""


class Csr(NamedTuple):
    """Items of some queries: row i is `items[offsets[i]:offsets[i + 1]]`, ascending, each once."""

    offsets: Ids
    items: Ids

    @property
    def counts(self) -> Ids:
        """(r,) number of items of each row."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Ids:
        """(total,) the row each item belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)


class Pairs(Protocol):
    """A set of (query, item) pairs over a gallery of `num_items`."""

    @property
    def num_items(self) -> int:
        """Size of the gallery."""

    def counts(self) -> Ids:
        """Return (q,) number of items of each query."""

    def of(self, queries: Ids) -> Csr:
        """Return the items of these queries, ascending."""

    def has(self, queries: Ids, items: Ids) -> Mask:
        """Return, for each pair, whether it is in the set."""


@dataclass(frozen=True)
class SameCode:
    """Query and item carry the same code; -1 matches nothing."""

    queries: Codes
    items: Codes

    def __post_init__(self) -> None:
        order = np.argsort(self.items, kind="stable")
        top = int(max(self.items.max(initial=-1), self.queries.max(initial=-1))) + 1
        bounds = np.searchsorted(self.items[order], np.arange(top + 1))
        object.__setattr__(self, "_order", order)
        object.__setattr__(self, "_bounds", bounds)

    _order: Ids = None  # type: ignore[assignment]
    _bounds: Ids = None  # type: ignore[assignment]

    @property
    def num_items(self) -> int:
        """Size of the gallery."""
        return len(self.items)

    def counts(self) -> Ids:
        """Return (q,) number of items of each query."""
        return self._span(self.queries)[1]

    def of(self, queries: Ids) -> Csr:
        """Return the items of these queries, ascending."""
        starts, sizes = self._span(self.queries[queries])
        offsets = _offsets(sizes)
        return Csr(offsets, self._order[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)])

    def has(self, queries: Ids, items: Ids) -> Mask:
        """Return, for each pair, whether it is in the set."""
        codes = self.queries[queries]
        return np.asarray((codes == self.items[items]) & (codes >= 0))

    def _span(self, codes: Codes) -> tuple[Ids, Ids]:
        known = np.where(codes >= 0, codes, 0)
        if len(self._bounds) == 1:  # no label anywhere
            return np.zeros_like(codes), np.zeros_like(codes)
        starts = self._bounds[known]
        return starts, np.where(codes >= 0, self._bounds[known + 1] - starts, 0)


@dataclass(frozen=True)
class Listed:
    """The pairs of a list."""

    csr: Csr
    num_items: int

    @classmethod
    def from_pairs(cls, queries: Ids, items: Ids, num_queries: int, num_items: int) -> Listed:
        """Sort the pairs and drop repeats."""
        return cls(_csr_from_keys(np.unique(queries * np.int64(num_items) + items), num_queries, num_items), num_items)

    def counts(self) -> Ids:
        """Return (q,) number of items of each query."""
        return self.csr.counts

    def of(self, queries: Ids) -> Csr:
        """Return the items of these queries, ascending."""
        starts, sizes = self.csr.offsets[queries], self.csr.counts[queries]
        offsets = _offsets(sizes)
        return Csr(offsets, self.csr.items[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)])

    def has(self, queries: Ids, items: Ids) -> Mask:
        """Return, for each pair, whether it is in the set."""
        return contains(self, queries, items)


@dataclass(frozen=True)
class SharedLabels:
    """Query and item carry sets of codes and share one of them, or the item carries all of the query's."""

    queries: Csr
    """Row = query, item = label code."""
    holders: Csr
    """Row = label code, item = gallery item that carries it."""
    num_items: int
    every: bool
    """The item must carry all labels of the query."""

    def counts(self) -> Ids:
        """Return (q,) number of items of each query."""
        sizes = [self.of(rows).counts for rows in blocks(self._upper_counts())]
        return np.concatenate(sizes) if sizes else np.empty(0, np.int64)

    def of(self, queries: Ids) -> Csr:
        """Return the items of these queries, ascending."""
        labels = Listed(self.queries, 0).of(queries)
        held = Listed(self.holders, 0).of(labels.items)
        rows = np.repeat(labels.rows, held.counts)
        keys, found = np.unique(rows * np.int64(self.num_items) + held.items, return_counts=True)
        if self.every:
            keys = keys[found == labels.counts[keys // self.num_items]]
        return _csr_from_keys(keys, len(queries), self.num_items)

    def has(self, queries: Ids, items: Ids) -> Mask:
        """Return, for each pair, whether it is in the set."""
        return contains(self, queries, items)

    def _upper_counts(self) -> Ids:
        held = self.holders.counts[self.queries.items]
        return np.bincount(self.queries.rows, weights=held, minlength=len(self.queries.offsets) - 1).astype(np.int64)


def contains(pairs: Pairs, queries: Ids, items: Ids) -> Mask:
    """Look each pair up in the items of its query."""
    if queries.size == 0:
        return np.zeros(0, dtype=bool)
    asked, position = np.unique(queries, return_inverse=True)
    csr = pairs.of(asked)
    keys = csr.rows * np.int64(pairs.num_items) + csr.items
    return member(keys, position * np.int64(pairs.num_items) + items)


def member(keys: Ids, wanted: Ids) -> Mask:
    """Return whether each wanted key stands among the ascending keys."""
    if keys.size == 0:
        return np.zeros(wanted.shape, dtype=bool)
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.asarray(keys[place] == wanted)


def union(sets: Sequence[Pairs], queries: Ids, num_items: int) -> Csr:
    """Return the items of these queries that are in any of the sets."""
    found = [pairs.of(queries) for pairs in sets]
    if len(found) == 1:
        return found[0]
    keys = [csr.rows * np.int64(num_items) + csr.items for csr in found]
    return _csr_from_keys(np.unique(np.concatenate([np.empty(0, np.int64), *keys])), len(queries), num_items)


def without(csr: Csr, removed: Csr, num_items: int) -> Csr:
    """Return the items of the first that are not among those of the second, row by row."""
    if removed.items.size == 0:
        return csr
    keys = csr.rows * np.int64(num_items) + csr.items
    gone = member(removed.rows * np.int64(num_items) + removed.items, keys)
    return _csr_from_keys(keys[~gone], len(csr.offsets) - 1, num_items) if gone.any() else csr


def blocks(counts: Ids, limit: int = BLOCK_PAIRS) -> Iterator[Ids]:
    """Cut the queries 0..q-1 into runs of at most `limit` pairs (always at least one query)."""
    start, total = 0, 0
    for row, count in enumerate(counts.tolist()):
        if total and total + count > limit:
            yield np.arange(start, row)
            start, total = row, 0
        total += max(count, 1)
    if len(counts) > start:
        yield np.arange(start, len(counts))


def _csr_from_keys(keys: Ids, rows: int, num_items: int) -> Csr:
    width = max(num_items, 1)
    return Csr(_offsets(np.bincount(keys // width, minlength=rows)), keys % width)


def _offsets(sizes: Ids) -> Ids:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
