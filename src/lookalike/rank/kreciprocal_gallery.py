"""k-reciprocal re-ranking of queries and gallery together, as in the paper, without any (n, n) matrix in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors, as_vectors
from lookalike.catalogue.store import Store
from lookalike.errors import CutOffError, InputError, ShapeError
from lookalike.index.neighbours import Metric, Neighbours, check_metric
from lookalike.rank.kreciprocal import KReciprocal, jaccard, mix
from lookalike.rank.lists import BLOCK, SPARE, RankingLists, Space, ranking_lists, space
from lookalike.rank.pools import members

_TILE_BYTES = 64 << 20
_INSERTED = 256  # lists longer than this are cut out of a sorted row, shorter ones found by insertion


@dataclass(frozen=True)
class Encoding:
    """The k-reciprocal features of a set, as sparse rows, and what turns them into final distances."""

    points: Space
    scale: Scores
    """(n,) the largest distance of each row."""
    features: tuple[Ids, npt.NDArray[np.int32], Scores]
    """Offsets, columns, weights; every row sums to 1."""
    settings: KReciprocal


def encode(points: Space, lists: RankingLists, settings: KReciprocal) -> Encoding:
    """Build the features of every element from the ranking lists of the set (equations 3, 4, 7 and 11)."""
    offsets, columns, weights = raw_features(points, lists, settings)
    k2 = min(settings.k2, lists.names.shape[1] - 1)
    if k2 > 1:
        from lookalike.rank import kernels

        names = np.ascontiguousarray(lists.names[:, :k2])
        offsets, columns, weights = kernels.average_rows(names, offsets, columns, weights)
    return Encoding(points, lists.scale, (offsets, columns, weights), settings)


def raw_features(
    points: Space, lists: RankingLists, settings: KReciprocal
) -> tuple[Ids, npt.NDArray[np.int32], Scores]:
    """Features before the local query expansion, as sparse rows that sum to 1."""
    from lookalike.rank import kernels

    k1 = lists.names.shape[1] - 1
    offsets, columns = kernels.expanded_sets(lists.names, round(k1 / 2) + 1, settings.strict_overlap)
    rows = np.repeat(np.arange(len(points)), np.diff(offsets))
    weights = points.pairs(rows, columns)
    weights /= lists.scale[rows]
    np.exp(-weights, out=weights)
    kernels.normalise_rows(offsets, weights)
    return offsets, columns, weights


def rerank_gallery(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    k: int,
    *,
    metric: Metric = "cosine",
    settings: KReciprocal | None = None,
    exclude: npt.ArrayLike | None = None,
    threads: int | None = 1,
    block: int = BLOCK,
) -> Neighbours:
    """Rank the gallery for every query by final distances over queries and gallery together.

    (q, d) and (g, d) in; ids of the result are gallery rows, scores final distances in [0, 1], lower is better (its
    metric reads `l2`), equal ones by row. `exclude`, (q,), names one gallery row a query never gets, or -1. A `k`
    beyond the gallery returns the whole of it. Memory grows with the vectors and the sparse sets; `block` changes no
    result.

    Raises:
        InputError: vectors, metric or exclusions are refused.
        CutOffError: k below 1.

    Queries are part of the set: another query more or less can change a ranking. Where the queries are gallery items,
    ask `rerank_within`, or each of them stands in the set twice.
    """
    q, g = _pair(queries, gallery)
    skip = _exclusions(exclude, len(q), len(g))
    encoding = _encoded(np.concatenate([q, g]), metric, settings, threads, block)
    return _top(encoding, len(q), len(q), k, skip, threads)


def rerank_within(
    vectors: npt.ArrayLike,
    k: int,
    *,
    metric: Metric = "cosine",
    settings: KReciprocal | None = None,
    threads: int | None = 1,
    block: int = BLOCK,
) -> Neighbours:
    """Rank the other rows for every row of one (n, d) set, each left out of its own answer; otherwise `rerank_gallery`.

    Raises:
        InputError: vectors or metric are refused.
        CutOffError: k below 1.
    """
    rows = as_vectors(vectors)
    encoding = _encoded(rows, metric, settings, threads, block)
    return _top(encoding, len(rows), 0, k, np.arange(len(rows)), threads)


def gallery_distances(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    path: str | Path,
    *,
    metric: Metric = "cosine",
    settings: KReciprocal | None = None,
    threads: int | None = 1,
    block: int = BLOCK,
) -> np.memmap:
    """Write the (q, g) float32 matrix of final distances to a `.npy` file and return it, mapped read-only.

    Raises:
        InputError: vectors or metric are refused.
    """
    q, g = _pair(queries, gallery)
    encoding = _encoded(np.concatenate([q, g]), metric, settings, threads, block)
    out = np.lib.format.open_memmap(Path(path), mode="w+", dtype=np.float32, shape=(len(q), len(g)))
    with processors.blas(threads):
        for start, tile in _tiles(encoding, len(q), len(q)):
            out[start : start + len(tile)] = tile
    out.flush()
    del out
    return np.lib.format.open_memmap(Path(path), mode="r")


def rerank_jointly(
    store: Store,
    queries: Vectors,
    neighbours: Neighbours,
    settings: KReciprocal | None = None,
    *,
    own: Ids | None = None,
) -> Neighbours:
    """Re-rank retrieved neighbours by final distances over all queries and the whole gallery; nothing else is found.

    Scores are final distances in [0, 1], lower is better; equal ones stay in retrieved order. `own`, (q,), names the
    item of the store that a query is, or -1: such a query joins the set once, as that item.

    Raises:
        ShapeError: not one query a row of neighbours.
        InputError: a neighbour or an own item the store does not hold.
    """
    from lookalike.rank import gallery_kernels

    ids = store.ids()
    q, g = _pair(queries, store.vectors(ids))
    if len(q) != len(neighbours):
        raise ShapeError(f"There are {len(q)} queries for {len(neighbours)} rows of neighbours.")
    if not np.isin(neighbours.ids, ids).all():
        raise InputError("The store lacks some of the neighbours.", hint="Retrieve them from the store as it is now.")
    at, guests = members(own, ids, len(q))
    at = np.where(at >= 0, at + len(guests), np.cumsum(at < 0) - 1)  # the guests stand first, in their order
    encoding = _encoded(np.concatenate([q[guests], g]), store.metric, settings, 1, BLOCK)
    index = gallery_kernels.invert(*encoding.features, len(guests), len(encoding.points))
    answers: list[tuple[Ids, Scores]] = []
    for row, (found, _) in zip(at.tolist(), neighbours, strict=True):
        names = np.searchsorted(ids, found).astype(np.int32)[None]
        shared = gallery_kernels.shared_at(encoding.features, row, index, names, len(g))
        final = _exact(encoding, row, len(guests), names, shared)[0]
        order = np.argsort(final, kind="stable")
        answers.append((found[order], final[order]))
    return Neighbours.from_rows(answers, "l2")


def _pair(queries: npt.ArrayLike, gallery: npt.ArrayLike) -> tuple[Vectors, Vectors]:
    g = as_vectors(gallery, name="gallery")
    if not len(g):
        raise InputError("The gallery is empty: there is nothing to rank.")
    return as_vectors(queries, name="queries", dim=g.shape[1]), g


def _exclusions(exclude: npt.ArrayLike | None, queries: int, gallery: int) -> Ids:
    if exclude is None:
        return np.full(queries, -1, np.int64)
    rows = np.asarray(exclude)
    if rows.shape != (queries,):
        raise ShapeError(f"exclude must have shape ({queries},), one gallery row a query, not {rows.shape}.")
    if rows.dtype.kind not in "iu" or (rows.size and (rows.min() < -1 or rows.max() >= gallery)):
        raise InputError(f"exclude must hold gallery rows from 0 to {gallery - 1}, or -1 for none.")
    return rows.astype(np.int64)


def _encoded(
    vectors: Vectors, metric: Metric, settings: KReciprocal | None, threads: int | None, block: int
) -> Encoding:
    chosen = settings or KReciprocal()
    points = space(vectors, check_metric(metric))
    return encode(points, ranking_lists(points, chosen.k1 + 1, threads=threads, block=block), chosen)


def _tiles(encoding: Encoding, queries: int, first: int) -> Iterator[tuple[int, Vectors]]:
    """Final distances of the elements 0..queries to the elements from `first` on, a few rows at a time."""
    from lookalike.rank import gallery_kernels

    points, scale = encoding.points, encoding.scale
    index = gallery_kernels.invert(*encoding.features, first, len(points))
    height = max(1, _TILE_BYTES // (4 * max(1, len(points) - first)))
    for start in range(0, queries, height):
        rows = slice(start, min(start + height, queries))
        tile = points.centred[rows] @ points.centred[first:].T
        gallery_kernels.final_tile(
            tile,
            points.squares[rows],
            points.squares[first:],
            scale[rows],
            encoding.features,
            start,
            index,
            encoding.settings.lambda_value,
        )
        yield start, tile


def _top(encoding: Encoding, queries: int, first: int, k: int, skip: Ids, threads: int | None) -> Neighbours:
    """Cut the best k out of each tile in float32, with a few to spare, and order them in float64."""
    from lookalike.rank import gallery_kernels

    gallery = len(encoding.points) - first
    if k < 1:
        raise CutOffError(k, gallery)
    index = gallery_kernels.invert(*encoding.features, first, len(encoding.points))
    count = min(k + SPARE + 1, gallery)
    rows: list[tuple[Ids, Scores]] = []
    with processors.blas(threads):
        for start, tile in _tiles(encoding, queries, first):
            kept, names = (
                gallery_kernels.smallest_in_rows(tile, count) if count <= _INSERTED else _sorted_rows(tile, count)
            )
            shared = gallery_kernels.shared_at(encoding.features, start, index, names, gallery)
            final = _exact(encoding, start, first, names, shared)
            for row in range(len(tile)):
                ids, scores = _best(names[row], final[row], skip[start + row], k)
                if count < gallery and _undecided(encoding, start + row, float(scores[-1]), float(kept[row, -1])):
                    ids, scores = _row_anew(encoding, start + row, first, index, skip[start + row], k)
                rows.append((ids, scores))
    return Neighbours.from_rows(rows, "l2")


def _exact(encoding: Encoding, start: int, first: int, names: npt.NDArray[np.int32], shared: Scores) -> Scores:
    """Final distances of (r, m) pairs in float64, each pair alone."""
    probes = np.repeat(np.arange(start, start + len(names)), names.shape[1])
    original = encoding.points.pairs(probes, names.ravel() + first) / encoding.scale[probes]
    return mix(jaccard(shared), original.reshape(names.shape), encoding.settings.lambda_value)


def _best(names: npt.NDArray[np.int32], final: Scores, skip: int, k: int) -> tuple[Ids, Scores]:
    allowed = np.flatnonzero(names != skip)
    order = allowed[np.lexsort((names[allowed], final[allowed]))[:k]]
    return names[order].astype(np.int64), final[order]


def _undecided(encoding: Encoding, probe: int, worst: float, edge: float) -> bool:
    """Whether something float32 left out, all of it at `edge` or beyond, could be better than the worst kept."""
    share = encoding.settings.lambda_value
    if share == 0 and worst == 1:  # nothing shared: exactly 1 in either precision, and equal ones came by row already
        return False
    return worst > edge - share * encoding.points.error / float(encoding.scale[probe]) - 2.0**-23


def _row_anew(
    encoding: Encoding, probe: int, first: int, index: tuple[Ids, npt.NDArray[np.int32], Scores], skip: int, k: int
) -> tuple[Ids, Scores]:
    """Rank the whole gallery for one probe in float64, where float32 cannot decide what belongs among the best."""
    from lookalike.rank import gallery_kernels

    gallery = len(encoding.points) - first
    names = np.arange(gallery, dtype=np.int32)[None]
    shared = gallery_kernels.shared_at(encoding.features, probe, index, names, gallery)
    return _best(names[0], _exact(encoding, probe, first, names, shared)[0], skip, k)


def _sorted_rows(tile: Vectors, count: int) -> tuple[Vectors, npt.NDArray[np.int32]]:
    names = np.argsort(tile, axis=1, kind="stable")[:, :count].astype(np.int32)
    return np.take_along_axis(tile, names, 1), names
