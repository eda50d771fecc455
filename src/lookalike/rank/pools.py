"""Read the pools of many queries back from a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors
from lookalike.catalogue.store import Store
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
