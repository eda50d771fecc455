"""Read the pools of many queries back from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors
from lookalike.catalogue.store import Store
from lookalike.errors import InputError, ShapeError
from lookalike.index.neighbours import Metric, Neighbours

_BLOCK_BYTES = 64 << 20  # vectors held at once; an item in several pools of a block is read once


def pools(store: Store, neighbours: Neighbours) -> Iterator[tuple[Ids, Scores, Vectors]]:
    """Give every query's (n,) ids and scores with their (n, d) vectors, a bounded number of vectors at a time."""
    per_block = max(1, _BLOCK_BYTES // (4 * store.dim * max(1, int(neighbours.lengths.max(initial=1)))))
    for start in range(0, len(neighbours), per_block):
        rows = [neighbours[row] for row in range(start, min(start + per_block, len(neighbours)))]
        if len(rows) == 1:
            ids, scores = rows[0]
            yield ids, scores, store.vectors(ids)
            continue
        unique, positions = np.unique(np.concatenate([ids for ids, _ in rows]), return_inverse=True)
        vectors = store.vectors(unique)
        first = 0
        for ids, scores in rows:
            yield ids, scores, vectors[positions[first : first + len(ids)]]
            first += len(ids)


def members(own: Ids | None, ids: Ids, queries: int) -> tuple[Ids, Ids]:
    """Return (q,) the row of a store's ascending `ids` that each query is (-1: none), and the queries that are none.

    Raises:
        ShapeError: `own` has not one entry a query.
        InputError: an item the store does not hold.
    """
    if own is None:
        return np.full(queries, -1, np.int64), np.arange(queries)
    named = np.asarray(own, dtype=np.int64)
    if named.shape != (queries,):
        raise ShapeError(f"own must have shape ({queries},), one item a query, not {named.shape}.")
    rows = np.searchsorted(ids, named)
    inside = named >= 0
    wrong = inside & (ids[np.minimum(rows, len(ids) - 1)] != named)
    if wrong.any():
        raise InputError(f"A query is said to be item {named[wrong][0]}, which the store does not hold.")
    return np.where(inside, rows, -1), np.flatnonzero(~inside)


def reorder(
    store: Store,
    neighbours: Neighbours,
    score: Callable[[Ids, Scores, Vectors], Scores],
    metric: Metric,
) -> Neighbours:
    """Score every pool anew and sort it by the direction of `metric`; equal scores stay in retrieved order.

    One BLAS thread: products of a pool are too small to share, and on a busy machine two threads wait for each other
    twenty times as long as one works.
    """
    rows = []
    with processors.blas(1):
        for ids, scores, vectors in pools(store, neighbours):
            if not len(ids):
                rows.append((ids, scores))
                continue
            new = score(ids, scores, vectors)
            order = np.argsort(new if metric == "l2" else -new, kind="stable")
            rows.append((ids[order], new[order]))
    return Neighbours.from_rows(rows, metric)
