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
Places: TypeAlias = npt.NDArray[np.uint8]
Columns: TypeAlias = npt.NDArray[np.int32]
Sparse: TypeAlias = tuple[Ids, Columns, Scores]
"""Rows of features: (n + 1,) offsets, ascending columns and their weights."""


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


_SMALL = 1_024  # a table of places of that many elements is a megabyte; larger sets search the lists themselves


@numba.njit(cache=True)
def _places(lists: Lists) -> Places:
    """(n, n) the place of every element in every list, from 1; 0 where it is not in it; empty for a large set."""
    n, count = lists.shape
    if n > _SMALL or count > 255:
        return np.zeros((0, 0), np.uint8)
    places = np.zeros((n, n), np.uint8)
    for row in range(n):
        for place in range(count):
            places[row, lists[row, place]] = place + 1
    return places


@numba.njit(cache=True)
def _reciprocal(lists: Lists, places: Places, row: int, count: int, out: Columns) -> int:
    """R(row): entries of its list whose own list holds `row`; written to `out`, their number returned."""
    size = 0
    if places.size:
        for place in range(count):  # written every time and kept only where it counts: no branch to guess wrong
            other = lists[row, place]
            out[size] = other
            size += 0 < places[other, row] <= count
        return size
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
    places = _places(lists)
    full = np.empty(count, np.int32)
    halves = np.empty((n, half_count), np.int32)
    sizes = np.empty(n, np.int32)
    for row in range(n):
        sizes[row] = _reciprocal(lists, places, row, half_count, halves[row])
    in_full = np.full(n, -1, np.int32)
    in_union = np.full(n, -1, np.int32)
    total = 0
    for row in range(n):
        size = _reciprocal(lists, places, row, count, full)
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


def announce() -> None:
    """Log one line where the kernels are not in numba's cache yet: the next call compiles them, once."""
    if not any(Path(str(expanded_sets.stats.cache_path)).glob("kernels.*.nbi")):
        logging.getLogger("lookalike").info("compiling the re-ranking kernels; kept on disk, so this happens once")


announce()
