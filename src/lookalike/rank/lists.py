"""Ranking lists and row maxima of a whole set in one pass of blocked distances, nothing (n, n) held.

A float32 matrix product proposes; float64 distances of single pairs decide. So a tie at the end of a list is settled by
index, the same way at any block size and number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors, unit
from lookalike.index.neighbours import Metric

SPARE = 9
"""Neighbours kept beyond the list, so that float32 rounding cannot drop one that belongs in it."""
BLOCK = 2048
ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Space:
    """Vectors made ready for distances: squared Euclidean, of unit rows for `cosine`; `ip`: see `largest_product`."""

    vectors: Vectors
    """(n, d) float32, what distances of single pairs are computed from."""
    centred: Vectors
    """(n, d) float32, the same less their mean, for matrix products: no distance changes, less cancels."""
    mean: Vectors
    """(d,) float32, what was taken off."""
    squares: Vectors
    """(n,) float32: `squares[i] + squares[j] - 2 centred[i]·centred[j]` is the distance."""
    largest_product: float
    """For `ip`, the c in the distance 2(c - x·y), so that lists rank by inner product; -1 for the other metrics."""
    error: float
    """How far a float32 distance can lie from the exact one."""

    def __len__(self) -> int:
        return len(self.vectors)

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> Scores:
        """(m,) float64 distances of these pairs."""
        from lookalike.rank import gallery_kernels

        return gallery_kernels.pair_distances(
            self.vectors, rows.astype(np.int64), columns.astype(np.int32), self.largest_product
        )


def space(vectors: Vectors, metric: Metric, mean: Vectors | None = None) -> Space:
    """Prepare checked (n, d) vectors for distances in this metric; a given (d,) `mean` saves measuring one."""
    rows = unit(vectors) if metric == "cosine" else vectors
    dim = rows.shape[1]
    if metric == "ip":
        largest = float(np.einsum("nd,nd->n", rows, rows, dtype=np.float64).max(initial=0.0))
        squares = np.full(len(rows), largest, np.float32)
        return Space(rows, rows, np.zeros(dim, np.float32), squares, largest, _error(largest, dim))
    if mean is None:
        mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32) if len(rows) else np.zeros(dim, np.float32)
    centred = rows - mean
    norms = np.einsum("nd,nd->n", centred, centred, dtype=np.float64)
    return Space(rows, centred, mean, norms.astype(np.float32), -1.0, _error(float(norms.max(initial=0.0)), dim))


def _error(largest_square: float, dim: int) -> float:
    # a sum of d products is off by at most d·u·|a||b| (Higham, 2002, eq. 3.5); twice that, and the squares' own
    # rounding: centring moves each coordinate by u of its size, so two more d·u terms cover it
    return (4.0 * dim + 16.0) * ROUNDING * largest_square


@dataclass(frozen=True)
class RankingLists:
    """The head of every element's ranking list, itself first, equal distances by index, and its largest distance."""

    names: npt.NDArray[np.int32]
    """(n, count)."""
    distances: Scores
    """(n, count) float64, ascending."""
    farthest: npt.NDArray[np.int32]
    """(n,) the element at the largest distance."""
    scale: Scores
    """(n,) the largest distance of each row; 1 where all are zero."""


def ranking_lists(points: Space, count: int, *, threads: int | None = 1, block: int = BLOCK) -> RankingLists:
    """Rank every element's nearest `count` (itself first; capped at n) over the whole set."""
    from lookalike.rank import gallery_kernels

    n = len(points)
    count = min(count, n)
    width = min(count - 1 + SPARE, n - 1)
    kept = np.full((n, max(width, 1)), np.inf, np.float32)
    names = np.full((n, max(width, 1)), -1, np.int32)
    far, farthest = np.full(n, -np.inf, np.float32), np.arange(n, dtype=np.int32)
    with processors.blas(threads):
        for top in range(0, n, block):
            for left in range(top, n, block):
                tile = points.centred[top : top + block] @ points.centred[left : left + block].T
                gallery_kernels.scan_tile(tile, points.squares, top, left, kept, names, far, farthest)
    return settle(points, kept, names, farthest, count)


def settle(
    points: Space,
    kept: npt.NDArray[np.float32],
    names: npt.NDArray[np.int32],
    farthest: npt.NDArray[np.int32],
    count: int,
    rows: Ids | None = None,
) -> RankingLists:
    """Rescore proposed neighbours in float64 and order them; rows float32 cannot decide are ranked anew over the set.

    `names` (r, m) are the proposals of `rows` (all where None), `kept` their float32 distances, ascending.
    """
    rows = np.arange(len(points)) if rows is None else rows
    exact = np.where(
        names < 0, np.inf, points.pairs(np.repeat(rows, names.shape[1]), names.ravel()).reshape(names.shape)
    )
    order = np.lexsort((names, exact), axis=1)[:, : count - 1]
    exact, named = np.take_along_axis(exact, order, 1), np.take_along_axis(names, order, 1)
    if count > 1 and names.shape[1] < len(points) - 1:  # something was left out: could it belong in the list?
        for row in np.flatnonzero(exact[:, -1] + points.error >= kept[:, -1]):
            exact[row], named[row] = _ranked_anew(points, rows[row], count - 1)
    lists = np.concatenate([rows[:, None].astype(np.int32), named], axis=1)
    distances = np.concatenate([np.zeros((len(rows), 1)), exact], axis=1)
    scale = points.pairs(rows, farthest)
    return RankingLists(lists, distances, farthest, np.where(scale > 0, scale, 1.0))


def rank_rows(points: Space, rows: Ids, count: int, *, block: int = 256) -> RankingLists:
    """Rank the set for some elements only: the same lists as `ranking_lists` has in those rows."""
    from lookalike.rank import gallery_kernels

    count = min(count, len(points))
    width = max(1, min(count - 1 + SPARE, len(points) - 1))
    kept, names = np.empty((len(rows), width), np.float32), np.empty((len(rows), width), np.int32)
    farthest = np.empty(len(rows), np.int32)
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        tile = points.centred[rows[part]] @ points.centred.T
        tile *= -2
        tile += points.squares
        tile += points.squares[rows[part], None]
        tile[np.arange(len(tile)), rows[part]] = -np.inf
        farthest[part] = tile.argmax(axis=1)
        tile[np.arange(len(tile)), rows[part]] = np.inf
        kept[part], names[part] = gallery_kernels.smallest_in_rows(tile, width)
    return settle(points, kept, names, farthest, count, rows)


def _ranked_anew(points: Space, row: int, count: int) -> tuple[Scores, npt.NDArray[np.int32]]:
    others = np.delete(np.arange(len(points), dtype=np.int32), row)
    exact = points.pairs(np.full(len(others), row), others)
    order = np.lexsort((others, exact))[:count]
    return exact[order], others[order]
