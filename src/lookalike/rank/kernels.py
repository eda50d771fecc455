"""Compiled loops over neighbour lists and sparse sets; each has a plain numpy or set-based twin in the tests.

Imported only inside functions, so that plain search never loads numba. Single-threaded and without fast-math: sums run
in ascending column order, so equal inputs give equal bits wherever a row stands.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Scores, Vectors

Lists: TypeAlias = npt.NDArray[np.int32]
"""(n, k + 1) the first entries of every element's ranking list, itself first."""
Columns: TypeAlias = npt.NDArray[np.int32]
Sparse: TypeAlias = tuple[Ids, Columns, Scores]
"""Rows of features: (n + 1,) offsets, ascending columns and their weights."""
Inverted: TypeAlias = tuple[Ids, Columns, Scores]
"""The same by column: offsets, and the rows that are not zero there with their values."""


@numba.njit(cache=True)
def pool_matrix(products: Scores, squares: Scores, probe: Scores, step: float) -> Scores:
    """(n, n) inner products of the candidates -> (n + 1, n + 1) distances, the probe's own first.

    Candidate to candidate `squares[i] + squares[j] - 2 products[i, j]`, rounded to whole multiples of `step`.
    """
    n = squares.size
    out = np.zeros((n + 1, n + 1), np.float64)
    inverse = 1.0 / step
    for i in range(n):
        out[0, i + 1] = out[i + 1, 0] = max(0.0, probe[i])
        for j in range(n):
            out[i + 1, j + 1] = max(0.0, np.rint((squares[i] + squares[j] - 2.0 * products[i, j]) * inverse) * step)
        out[i + 1, i + 1] = 0.0
    return out


@numba.njit(cache=True)
def nearest_lists(distances: Scores, edges: Vectors, count: int) -> Lists:
    """(n, n) distances -> the first `count` entries of every row, itself first, equal distances by index.

    `edges`, (n,), is at least the `count`-th smallest value of each row: numpy finds it several times faster than a
    loop here.
    """
    n = distances.shape[0]
    lists = np.empty((n, count), np.int32)
    kept = np.empty(count, np.float64)
    near = np.empty(n + 1, np.int32)
    for row in range(n):
        size = 0
        for column in range(n):  # written every time and kept only where it counts: no branch to guess wrong
            near[size] = column
            size += (distances[row, column] <= edges[row]) & (column != row)
        lists[row, 0] = row
        kept[0] = -np.inf
        kept[1:] = np.inf
        for column in near[:size]:
            value = distances[row, column]
            if value < kept[count - 1]:
                place = count - 1
                while kept[place - 1] > value:
                    kept[place] = kept[place - 1]
                    lists[row, place] = lists[row, place - 1]
                    place -= 1
                kept[place] = value
                lists[row, place] = column
    return lists


@numba.njit(cache=True)
def _in_list(lists: Lists, row: int, count: int, wanted: int) -> bool:
    for place in range(count):  # noqa: SIM110  # any() over a generator does not compile
        if lists[row, place] == wanted:
            return True
    return False


@numba.njit(cache=True)
def _reciprocal(lists: Lists, row: int, count: int, out: Columns) -> int:
    """R(row): entries of its list whose own list holds `row`; written to `out`, their number returned."""
    size = 0
    for place in range(count):
        other = lists[row, place]
        if _in_list(lists, other, count, row):
            out[size] = other
            size += 1
    return size


@numba.njit(cache=True)
def _ascend(values: Columns, start: int, stop: int) -> None:
    """Sort a short stretch in place, by insertion: numba's own sort costs more than the sets it is used on."""
    for entry in range(start + 1, stop):
        value = values[entry]
        place = entry
        while place > start and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@numba.njit(cache=True)
def expanded_sets(lists: Lists, half_count: int, strict: bool) -> tuple[Ids, Columns]:
    """R*(p) of every element as (n + 1,) offsets and ascending members (Eq. 3 and 4 of Zhong et al.).

    `half_count` is the length of the prefix of each list that stands for half of k1, the element itself included.
    """
    n, count = lists.shape
    offsets = np.zeros(n + 1, np.int64)
    members = np.empty(max(n * count * 2, 16), np.int32)
    full = np.empty(count, np.int32)
    halves = np.empty((n, half_count), np.int32)
    sizes = np.empty(n, np.int32)
    for row in range(n):
        sizes[row] = _reciprocal(lists, row, half_count, halves[row])
    in_full = np.full(n, -1, np.int32)
    in_union = np.full(n, -1, np.int32)
    total = 0
    for row in range(n):
        size = _reciprocal(lists, row, count, full)
        bound = total + size * (half_count + 1)
        if bound > members.size:
            grown = np.empty(max(2 * members.size, bound), np.int32)
            grown[:total] = members[:total]
            members = grown
        for place in range(size):
            in_full[full[place]] = row
            in_union[full[place]] = row
            members[total + place] = full[place]
        end = total + size
        for place in range(size):
            other = full[place]
            own = sizes[other]
            shared = 0
            for position in range(own):
                shared += in_full[halves[other, position]] == row
            if shared < own and (3 * shared > 2 * own or (not strict and 3 * shared == 2 * own)):
                for position in range(own):
                    joined = halves[other, position]
                    if in_union[joined] != row:
                        in_union[joined] = row
                        members[end] = joined
                        end += 1
        _ascend(members, total, end)
        total = end
        offsets[row + 1] = total
    return offsets, members[:total].copy()


@numba.njit(cache=True)
def normalise_rows(offsets: Ids, weights: Scores) -> None:
    """Scale the weights of every row to a sum of 1, in place."""
    for row in range(offsets.size - 1):
        total = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            total += weights[entry]
        for entry in range(offsets[row], offsets[row + 1]):
            weights[entry] /= total


@numba.njit(cache=True)
def gaussian_weights(offsets: Ids, columns: Columns, distances: Scores, scale: Scores) -> Scores:
    """Weight exp(-distance / scale) of every member (Eq. 7), each row scaled to a sum of 1."""
    weights = np.empty(columns.size, np.float64)
    for row in range(offsets.size - 1):
        for entry in range(offsets[row], offsets[row + 1]):
            weights[entry] = np.exp(-distances[row, columns[entry]] / scale[row])
    normalise_rows(offsets, weights)
    return weights


@numba.njit(cache=True)
def average_rows(lists: Lists, offsets: Ids, columns: Columns, weights: Scores) -> Sparse:
    """Mean of the sparse rows named in each list (Eq. 11), summed in ascending row order."""
    n, count = lists.shape
    out_offsets = np.zeros(n + 1, np.int64)
    out_columns = np.empty(max(2 * columns.size, 16), np.int32)
    out_weights = np.empty(out_columns.size, np.float64)
    dense = np.zeros(offsets.size - 1, np.float64)
    seen = np.full(offsets.size - 1, -1, np.int32)
    total = 0
    for row in range(n):
        order = np.sort(lists[row])
        bound = total
        for source in order:
            bound += offsets[source + 1] - offsets[source]
        if bound > out_columns.size:
            grown_columns = np.empty(max(2 * out_columns.size, bound), np.int32)
            grown_weights = np.empty(grown_columns.size, np.float64)
            grown_columns[:total] = out_columns[:total]
            grown_weights[:total] = out_weights[:total]
            out_columns, out_weights = grown_columns, grown_weights
        end = total
        for source in order:
            for entry in range(offsets[source], offsets[source + 1]):
                column = columns[entry]
                if seen[column] != row:
                    seen[column] = row
                    dense[column] = 0.0
                    out_columns[end] = column
                    end += 1
                dense[column] += weights[entry]
        out_columns[total:end].sort()
        for entry in range(total, end):
            out_weights[entry] = dense[out_columns[entry]] / count
        total = end
        out_offsets[row + 1] = total
    return out_offsets, out_columns[:total].copy(), out_weights[:total].copy()


@numba.njit(cache=True)
def shared_with(lists: Lists, offsets: Ids, columns: Columns, weights: Scores, queries: int) -> Scores:
    """(q, n - q) sums of minima of the averaged features of the first q elements with those of all later ones.

    The average of each list's rows (Eq. 11) is taken on the fly and only in the columns where the query has weight:
    `average_rows` followed by the sums, without its output.
    """
    n, count = lists.shape
    order = lists.copy()
    for row in range(n):
        _ascend(order[row], 0, count)
    out = np.zeros((queries, n - queries), np.float64)
    probe = np.zeros(n, np.float64)
    sums = np.zeros(n, np.float64)
    place = np.full(n, -1, np.int32)  # where a column stands among the query's own
    touches = np.empty(n, np.bool_)
    for query in range(queries):
        for source in order[query]:
            for entry in range(offsets[source], offsets[source + 1]):
                probe[columns[entry]] += weights[entry]
        own = np.flatnonzero(probe)
        for position in range(own.size):
            place[own[position]] = position
        for source in range(n):
            touches[source] = False
            for entry in range(offsets[source], offsets[source + 1]):
                if place[columns[entry]] >= 0:
                    touches[source] = True
                    break
        for row in range(queries, n):
            found = False
            for source in order[row]:
                if touches[source]:
                    found = True
                    for entry in range(offsets[source], offsets[source + 1]):
                        position = place[columns[entry]]
                        if position >= 0:
                            sums[position] += weights[entry]
            if found:
                total = 0.0
                for position in range(own.size):
                    total += min(probe[own[position]], sums[position])
                    sums[position] = 0.0
                out[query, row - queries] = total / count
        for column in own:
            probe[column] = 0.0
            place[column] = -1
    return out


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


def announce() -> None:
    """Log one line where the kernels are not in numba's cache yet: the next call compiles them, once."""
    if not any(Path(str(expanded_sets.stats.cache_path)).glob("kernels.*.nbi")):
        logging.getLogger("lookalike").info("compiling the re-ranking kernels; kept on disk, so this happens once")


announce()
