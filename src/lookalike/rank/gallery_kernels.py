# mypy: disallow-untyped-decorators=False
"""Compiled loops over tiles of a whole gallery: distances into lists, features into sums; each has a twin in the tests.

As `kernels`: imported only inside functions, single-threaded; only `pair_distances` may reorder its sums, the same way
for every pair.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.rank.kernels import Columns, Sparse

Inverted: TypeAlias = tuple[Ids, Columns, Scores]
"""Sparse rows by column: (n + 1,) offsets, and the rows that are not zero there with their values."""


@numba.njit(cache=True)
def _shared_mass(columns: Columns, weights: Scores, index: Inverted, out: Scores) -> None:
    """Set `out`, (rows,), to the sum over columns of min(one feature, every row's feature)."""
    offsets, rows, values = index
    out[:] = 0.0
    for position in range(columns.size):
        weight = weights[position]
        for entry in range(offsets[columns[position]], offsets[columns[position] + 1]):
            out[rows[entry]] += min(weight, values[entry])


@numba.njit(cache=True)
def shared_from(columns: Columns, weights: Scores, index: Inverted, width: int) -> Scores:
    """(width,) sums of minima of one sparse feature with every row of the index."""
    out = np.empty(width, np.float64)
    _shared_mass(columns, weights, index, out)
    return out


@numba.njit(cache=True)
def shared_at(features: Sparse, first: int, index: Inverted, wanted: Columns, width: int) -> Scores:
    """(r, m) sums of minima of the features `first`.. with the rows of the index named in `wanted`, (r, m)."""
    offsets, columns, weights = features
    out = np.empty(wanted.shape, np.float64)
    shared = np.empty(width, np.float64)
    for row in range(wanted.shape[0]):
        start, stop = offsets[first + row], offsets[first + row + 1]
        _shared_mass(columns[start:stop], weights[start:stop], index, shared)
        for place in range(wanted.shape[1]):
            out[row, place] = shared[wanted[row, place]]
    return out


@numba.njit(cache=True)
def dot_tile(
    offsets: Columns, columns: Columns, weights: Vectors, place: Columns, rows: Columns, values: Vectors, out: Vectors
) -> None:
    """Add the products of sparse rows, (b + 1,) offsets, with all columns of an inverted index to `out`, (b, n)."""
    for row in range(offsets.size - 1):
        for position in range(offsets[row], offsets[row + 1]):
            weight = weights[position]
            for entry in range(place[columns[position]], place[columns[position] + 1]):
                out[row, rows[entry]] += weight * values[entry]


@numba.njit(cache=True)
def final_tile(
    tile: Vectors,
    squares: Vectors,
    others: Vectors,
    scale: Scores,
    features: Sparse,
    first: int,
    index: Inverted,
    lambda_value: float,
) -> None:
    """Turn inner products of the elements `first`.. with the rows of the index into final distances, in place.

    `squares` and `others` are the squared lengths of the tile's rows and columns, `scale` the rows' largest distances.
    """
    offsets, columns, weights = features
    shared = np.empty(tile.shape[1], np.float64)
    for row in range(tile.shape[0]):
        start, stop = offsets[first + row], offsets[first + row + 1]
        _shared_mass(columns[start:stop], weights[start:stop], index, shared)
        share = lambda_value / scale[row]
        for column in range(tile.shape[1]):
            mass = shared[column]
            distance = max(np.float32(0), squares[row] + others[column] - np.float32(2) * tile[row, column])
            final = (1.0 - lambda_value) * (1.0 - mass / (2.0 - mass)) + share * distance
            tile[row, column] = min(1.0, max(0.0, final))


@numba.njit(cache=True)
def smallest_in_rows(tile: Vectors, count: int) -> tuple[Vectors, Columns]:
    """The `count` smallest of every row with their columns, ascending, equal values by column."""
    kept = np.full((tile.shape[0], count), np.float32(np.inf), np.float32)
    names = np.full((tile.shape[0], count), np.int32(-1), np.int32)
    for row in range(tile.shape[0]):
        for column in range(tile.shape[1]):
            if tile[row, column] < kept[row, count - 1]:
                _keep(kept, names, row, tile[row, column], column)
    return kept, names


@numba.njit(cache=True)
def invert(offsets: Ids, columns: Columns, weights: Scores, first: int, width: int) -> Inverted:
    """Turn sparse rows from `first` on into an inverted index over `width` columns; rows are counted from `first`."""
    start = offsets[first]
    out_offsets = np.zeros(width + 1, np.int64)
    for entry in range(start, offsets[-1]):
        out_offsets[columns[entry] + 1] += 1
    out_offsets = np.cumsum(out_offsets)
    place = out_offsets[:-1].copy()
    rows = np.empty(offsets[-1] - start, np.int32)
    values = np.empty(rows.size, np.float64)
    for row in range(first, offsets.size - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            column = columns[entry]
            rows[place[column]] = row - first
            values[place[column]] = weights[entry]
            place[column] += 1
    return out_offsets, rows, values


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def pair_distances(vectors: Vectors, rows: Ids, columns: Columns, largest_product: float) -> Scores:
    """Distance of each pair in float64, alone: the same pair gives the same bits in any company.

    Squared Euclidean where `largest_product` is negative, otherwise twice what an inner product lacks to it.
    """
    out = np.empty(rows.size, np.float64)
    for pair in range(rows.size):
        a, b = vectors[rows[pair]], vectors[columns[pair]]
        total = 0.0
        if largest_product < 0:
            for axis in range(a.size):
                step = np.float64(a[axis]) - np.float64(b[axis])
                total += step * step
        else:
            for axis in range(a.size):
                total += np.float64(a[axis]) * np.float64(b[axis])
            total = max(0.0, 2.0 * (largest_product - total))
        out[pair] = 0.0 if rows[pair] == columns[pair] else total
    return out


@numba.njit(cache=True)
def _keep(kept: Vectors, names: Columns, row: int, value: float, name: int) -> None:
    place = kept.shape[1] - 1
    while place > 0 and kept[row, place - 1] > value:
        kept[row, place] = kept[row, place - 1]
        names[row, place] = names[row, place - 1]
        place -= 1
    kept[row, place] = value
    names[row, place] = name


@numba.njit(cache=True)
def scan_tile(
    tile: Vectors,
    squares: Vectors,
    top: int,
    left: int,
    kept: Vectors,
    names: Columns,
    far: Vectors,
    far_names: Columns,
) -> None:
    """Turn a tile of inner products into distances and offer each to the lists and maxima of its row and its column.

    `kept`, `names` (n, m): the m smallest distances of every element so far, ascending; `far`, `far_names` (n,): the
    largest. On the diagonal (`top == left`) each pair stands twice in the tile and is offered once each time.
    """
    height, width = tile.shape
    last = kept.shape[1] - 1
    step = 32
    for i in range(height):
        row = top + i
        for start in range(0, width, step):
            stop = min(start + step, width)
            limit, most = kept[row, last], far[row]
            news = 0
            for j in range(start, stop):
                value = squares[row] + squares[left + j] - np.float32(2) * tile[i, j]
                tile[i, j] = value
                news += (value < limit) | (value > most) | (value < kept[left + j, last]) | (value > far[left + j])
            if news:
                for j in range(start, stop):
                    value, column = tile[i, j], left + j
                    if row == column:
                        continue
                    if value < kept[row, last]:
                        _keep(kept, names, row, value, column)
                    if value > far[row]:
                        far[row], far_names[row] = value, column
                    if top != left:
                        if value < kept[column, last]:
                            _keep(kept, names, column, value, row)
                        if value > far[column]:
                            far[column], far_names[column] = value, row
