"""Which vectors hang together: groups linked by pairs of at least some cosine, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.index.neighbours import pair_scores
from lookalike.index.structure import prepared

BLOCK = 2_048
"""Rows of a block: 16 MiB of scores at a time."""
_ROUNDING = 2.0**-24


def components(vectors: Vectors, at_least: float, *, progress: Callable[[int, int], None] | None = None) -> Ids:
    """Return (n,) the smallest row number each row is linked to, itself where it is alone.

    Two rows are linked where their cosine is at least `at_least`, or through rows that are (single linkage): a chain
    of small steps is one group, however far its ends are apart. All pairs are looked at, n² / 2 products; pairs that
    float32 leaves in doubt are decided in float64. `progress(done, total)` counts blocks.

    >>> components(np.array([[1, 0], [0, 1], [2, 0.02]], dtype=np.float32), 0.999).tolist()
    [0, 1, 0]
    """
    n = len(vectors)
    labels = np.arange(n)
    starts = range(0, n, BLOCK)
    total = len(starts) * (len(starts) + 1) // 2
    done = 0
    margin = (vectors.shape[1] + 4) * _ROUNDING
    for first in starts:
        left = prepared(vectors[first : first + BLOCK], "cosine")
        for second in range(first, n, BLOCK):
            right = left if second == first else prepared(vectors[second : second + BLOCK], "cosine")
            rows, columns = _linked(left, right, at_least, margin, same=second == first)
            labels = _merged(labels, rows + first, columns + second)
            done += 1
            if progress is not None:
                progress(done, total)
    return _smallest(labels)


def _linked(left: Vectors, right: Vectors, at_least: float, margin: float, *, same: bool) -> tuple[Ids, Ids]:
    """Return the pairs (row of left, row of right) that are linked; each pair once, none with itself."""
    scores = left @ right.T
    rows, columns = np.nonzero(scores >= at_least - margin)
    if same:
        upper = rows < columns
        rows, columns = rows[upper], columns[upper]
    doubtful = scores[rows, columns] < at_least + margin
    for pair in np.flatnonzero(doubtful):
        exact = pair_scores(left[rows[pair]], right[columns[pair]][None], "cosine")[0]
        doubtful[pair] = exact < at_least
    return rows[~doubtful], columns[~doubtful]


def _merged(labels: Ids, rows: Ids, columns: Ids) -> Ids:
    """Join the groups of linked rows."""
    a, b = labels[rows], labels[columns]
    apart = a != b
    if not apart.any():
        return labels
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(labels)
    links = np.unique(np.stack([a[apart], b[apart]]), axis=1)
    graph = coo_matrix((np.ones(links.shape[1], np.int8), (links[0], links[1])), shape=(n, n))
    _, joined = connected_components(graph, directed=False)
    return np.asarray(joined[labels], dtype=np.int64)


def _smallest(labels: Ids) -> Ids:
    """Name each group by its first row."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[group], dtype=np.int64)
