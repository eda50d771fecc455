"""Compiled inner loops of the ranking: scores of single pairs, and counts over tiles of scores.

Every comparison that decides a rank is made on `key`: a float64 number whose bits depend on the two rows alone,
because its sum runs in a fixed order. Tiles of float32 products only decide what is clearly above or below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Mask, Scores, Vectors

COSINE, IP, L2 = 0, 1, 2
_CHUNK = 2048  # floats of one row scanned for all its thresholds while they stay in the first-level cache (8 kB)


F = TypeVar("F", bound=Callable[..., object])


def _compile(function: F) -> F:
    """Compile without the interpreter lock; cache on disk where the disk allows it."""
    try:
        return cast(F, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # numba finds no writable place for its cache, as in a read-only installation
        return cast(F, numba.njit(nogil=True)(function))


class Rows(NamedTuple):
    """The vectors as given, from which exact scores are made."""

    queries: Vectors
    gallery: Vectors
    query_norms: Scores
    gallery_norms: Scores
    ids: Ids
    """(n,) ids of the gallery; the smaller id wins a tie."""
    metric: int


class Thresholds(NamedTuple):
    """The relevant items of each query as scores to count against; CSR, `low` ascending in each row."""

    offsets: Ids
    items: Ids
    keys: Scores
    low: npt.NDArray[np.float32]
    """A filter score below this is certainly below the item's."""
    high: npt.NDArray[np.float32]
    """A filter score above this is certainly above the item's."""


@_compile
def dot(a: Vectors, b: Vectors) -> float:
    """Sum a·b in float64 in four lanes, always in the same order."""
    s0 = s1 = s2 = s3 = 0.0
    full = len(a) // 4 * 4
    for k in range(0, full, 4):
        s0 += np.float64(a[k]) * np.float64(b[k])
        s1 += np.float64(a[k + 1]) * np.float64(b[k + 1])
        s2 += np.float64(a[k + 2]) * np.float64(b[k + 2])
        s3 += np.float64(a[k + 3]) * np.float64(b[k + 3])
    for k in range(full, len(a)):
        s0 += np.float64(a[k]) * np.float64(b[k])
    return (s0 + s1) + (s2 + s3)


@_compile
def squared(a: Vectors, b: Vectors) -> float:
    """Sum (a - b)² in float64 in four lanes, always in the same order."""
    s0 = s1 = s2 = s3 = 0.0
    full = len(a) // 4 * 4
    for k in range(0, full, 4):
        s0 += (np.float64(a[k]) - np.float64(b[k])) ** 2
        s1 += (np.float64(a[k + 1]) - np.float64(b[k + 1])) ** 2
        s2 += (np.float64(a[k + 2]) - np.float64(b[k + 2])) ** 2
        s3 += (np.float64(a[k + 3]) - np.float64(b[k + 3])) ** 2
    for k in range(full, len(a)):
        s0 += (np.float64(a[k]) - np.float64(b[k])) ** 2
    return (s0 + s1) + (s2 + s3)


@_compile
def key(rows: Rows, query: int, item: int) -> float:
    """Score one pair exactly; higher is better (squared distances are negated)."""
    if rows.metric == L2:
        return -squared(rows.queries[query], rows.gallery[item])
    product: float = dot(rows.queries[query], rows.gallery[item])
    if rows.metric == IP:
        return product
    return product / float(rows.query_norms[query] * rows.gallery_norms[item])


@_compile
def norms(vectors: Vectors) -> Scores:
    """Return (n,) lengths in float64."""
    out = np.empty(len(vectors))
    for row in range(len(vectors)):
        out[row] = np.sqrt(dot(vectors[row], vectors[row]))
    return out


@_compile
def pair_keys(rows: Rows, queries: Ids, items: Ids) -> Scores:
    """Return (p,) exact scores of single pairs."""
    out = np.empty(len(items))
    for p in range(len(items)):
        out[p] = key(rows, queries[p], items[p])
    return out


@_compile
def pair_dots(left: Vectors, right: Vectors, queries: Ids, items: Ids) -> Scores:
    """Return (p,) float64 products of filter rows, the scale the thresholds live on."""
    out = np.empty(len(items))
    for p in range(len(items)):
        out[p] = dot(left[queries[p]], right[items[p]])
    return out


@_compile
def transpose(tile: Vectors, out: Vectors) -> None:
    """Write the tile's columns as rows, one cache line at a time."""
    height, width = tile.shape
    for i0 in range(0, height, 16):
        for j0 in range(0, width, 16):
            for j in range(j0, min(j0 + 16, width)):
                for i in range(i0, min(i0 + 16, height)):
                    out[j, i] = tile[i, j]


@_compile
def _among(items: Ids, start: int, stop: int, item: int) -> bool:
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if items[middle] < item:
            start = middle + 1
        else:
            stop = middle
    return start < end and items[start] == item


@_compile
def count_tile(
    tile: Vectors,
    queries: Ids,
    first_item: int,
    rows: Rows,
    thresholds: Thresholds,
    relevant_offsets: Ids,
    relevant: Ids,
    removed_offsets: Ids,
    removed: Ids,
    counts: Ids,
    tied: Mask,
) -> None:
    """Add to `counts` the items of the tile that rank above each threshold, removed items included.

    tile (b, w) float32: filter scores of b queries against the items from `first_item` on. `queries` (b,): their row
    in the threshold, relevant and removed lists; `rows.queries` is indexed the same way.
    """
    height, width = tile.shape
    for start in range(0, width, _CHUNK):
        stop = min(start + _CHUNK, width)
        for i in range(height):
            query = queries[i]
            scores = tile[i, start:stop]
            for t in range(thresholds.offsets[query], thresholds.offsets[query + 1]):
                low, high = thresholds.low[t], thresholds.high[t]
                near, above = np.int32(0), np.int32(0)
                for j in range(len(scores)):  # two plain comparisons: this loop is vectorised
                    near = np.int32(near + np.int32(scores[j] >= low))
                    above = np.int32(above + np.int32(scores[j] > high))
                if near == 0:
                    break  # thresholds ascend: nothing here reaches the others either
                counts[t] += above
                if near == above:
                    continue
                own = thresholds.items[t]
                for j in range(len(scores)):
                    if scores[j] >= low and not scores[j] > high:
                        item = first_item + start + j
                        if item == own:
                            continue
                        exact = key(rows, query, item)
                        if exact > thresholds.keys[t]:
                            counts[t] += 1
                        elif exact == thresholds.keys[t]:
                            counts[t] += rows.ids[item] < rows.ids[own]
                            if not tied[query]:
                                tied[query] = not _among(
                                    relevant, relevant_offsets[query], relevant_offsets[query + 1], item
                                ) and not _among(removed, removed_offsets[query], removed_offsets[query + 1], item)


@_compile
def removed_above(rows: Rows, thresholds: Thresholds, removed_offsets: Ids, removed: Ids, counts: Ids) -> None:
    """Take the removed items that rank above each threshold out of `counts`."""
    for query in range(len(removed_offsets) - 1):
        first, last = thresholds.offsets[query], thresholds.offsets[query + 1]
        if first == last:
            continue
        for r in range(removed_offsets[query], removed_offsets[query + 1]):
            item = removed[r]
            exact = key(rows, query, item)
            for t in range(first, last):
                if exact > thresholds.keys[t] or (
                    exact == thresholds.keys[t] and rows.ids[item] < rows.ids[thresholds.items[t]]
                ):
                    counts[t] -= 1


@_compile
def best_items(rows: Rows, tile: Vectors, margin: Scores, offsets: Ids, items: Ids, out: Ids) -> None:
    """Write the best relevant item of each query (-1 where it has none), from its filter scores over all items."""
    for query in range(len(offsets) - 1):
        top = -np.inf
        for p in range(offsets[query], offsets[query + 1]):
            top = max(top, np.float64(tile[query, items[p]]))
        out[query], best = -1, -np.inf
        for p in range(offsets[query], offsets[query + 1]):
            item = items[p]
            if tile[query, item] >= top - 2 * margin[query]:
                exact = key(rows, query, item)
                if out[query] < 0 or exact > best or (exact == best and rows.ids[item] < rows.ids[out[query]]):
                    out[query], best = item, exact
