"""The neighbourhoods of a gallery, computed once, so that one query is re-ranked against all of it in milliseconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors, as_vectors, unit
from lookalike.errors import CutOffError, InputError
from lookalike.index.neighbours import Metric, Neighbours, check_metric
from lookalike.rank.kreciprocal import KReciprocal, jaccard, mix
from lookalike.rank.kreciprocal_gallery import Encoding, encode, raw_features
from lookalike.rank.lists import RankingLists, Space, rank_rows, ranking_lists, settle, space

_QUERIES = 64  # queries whose distances to the whole gallery are held at once


@dataclass(frozen=True)
class GalleryGraph:
    """Ranking lists and k-reciprocal features of a gallery; a query is measured against them without joining them.

    The difference to `rerank_gallery`: there every query is a member of the set and changes its neighbours' lists,
    here the gallery stays as it is, so a query's answer does not depend on the other queries. A query has no feature of
    its own, only those over gallery items.
    """

    metric: Metric
    settings: KReciprocal
    points: Space
    lists: RankingLists

    @classmethod
    def build(
        cls,
        vectors: npt.ArrayLike,
        *,
        metric: Metric = "cosine",
        settings: KReciprocal | None = None,
        threads: int | None = 1,
    ) -> GalleryGraph:
        """Compute the graph of (n, d) vectors; time grows with n², memory with n.

        Raises:
            InputError: no vectors, or vectors or metric are refused.
        """
        rows = as_vectors(vectors)
        if not len(rows):
            raise InputError("The gallery is empty: there is nothing to rank.")
        chosen = settings or KReciprocal()
        points = space(rows, check_metric(metric))
        return cls(metric, chosen, points, ranking_lists(points, chosen.k1 + 1, threads=threads))

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def _raw(self) -> tuple[Ids, npt.NDArray[np.int32], Scores]:
        return raw_features(self.points, self.lists, self.settings)

    @cached_property
    def _encoding(self) -> Encoding:
        return encode(self.points, self.lists, self.settings)

    @cached_property
    def _index(self) -> tuple[Ids, npt.NDArray[np.int32], Scores]:
        from lookalike.rank import gallery_kernels

        return gallery_kernels.invert(*self._encoding.features, 0, len(self))

    @cached_property
    def _half(self) -> npt.NDArray[np.int32]:
        """(n, h + 1) reciprocal neighbours at half of k1, -1 where an entry of the list does not return the favour."""
        names = self.lists.names[:, : round((self.lists.names.shape[1] - 1) / 2) + 1]
        returned = (names[names] == np.arange(len(self), dtype=np.int32)[:, None, None]).any(axis=2)
        return np.where(returned, names, -1).astype(np.int32)

    def rerank(
        self, queries: npt.ArrayLike, k: int, *, exclude: npt.ArrayLike | None = None, threads: int | None = 1
    ) -> Neighbours:
        """Rank the whole gallery for each of (q, d) queries by final distances in [0, 1], lower is better.

        Ids are gallery rows, equal distances by row; `exclude`, (q,), names one row a query never gets, or -1.

        Raises:
            ShapeError, NonFiniteError: the queries are refused.
            CutOffError: k below 1.
        """
        if k < 1:
            raise CutOffError(k, len(self))
        skip = None if exclude is None else np.asarray(exclude, dtype=np.int64)
        answers: list[tuple[Ids, Scores]] = []

        def best(query: int, final: Scores) -> None:
            if skip is not None and skip[query] >= 0:
                final[skip[query]] = np.inf
            cut = np.flatnonzero(final <= np.partition(final, min(k, len(final)) - 1)[min(k, len(final)) - 1])
            order = cut[np.argsort(final[cut], kind="stable")][:k]
            order = order[np.isfinite(final[order])]
            answers.append((order.astype(np.int64), final[order]))

        self.visit(as_vectors(queries, name="queries", dim=self.points.vectors.shape[1]), best, threads=threads)
        return Neighbours.from_rows(answers, "l2")

    def distances(self, queries: npt.ArrayLike, *, threads: int | None = 1) -> Scores:
        """(q, d) queries -> (q, n) final distances in float64.

        Raises:
            ShapeError, NonFiniteError: the queries are refused.
        """
        rows = as_vectors(queries, name="queries", dim=self.points.vectors.shape[1])
        out = np.empty((len(rows), len(self)))

        def keep(query: int, final: Scores) -> None:
            out[query] = final

        self.visit(rows, keep, threads=threads)
        return out

    def visit(
        self,
        queries: Vectors,
        use: Callable[[int, Scores], None],
        *,
        at: Ids | None = None,
        threads: int | None = 1,
    ) -> None:
        """Call `use(query, final)` with the (n,) final distances of one checked (q, d) query after another.

        `at`, (q,), is the row of the gallery that a query is, or -1: a member is measured by the feature it has, as
        `rerank_within` does.
        """
        rows = unit(queries, name="queries") if self.metric == "cosine" else queries
        with processors.blas(threads):
            for start in range(0, len(rows), _QUERIES):
                block = rows[start : start + _QUERIES]
                for offset, tile in enumerate(self._original(block)):
                    member = -1 if at is None else int(at[start + offset])
                    final = self._final(block[offset], tile) if member < 0 else self._final_of_member(member, tile)
                    use(start + offset, final)

    def _final_of_member(self, row: int, original: Vectors) -> Scores:
        from lookalike.rank import gallery_kernels

        offsets, columns, weights = self._encoding.features
        part = slice(offsets[row], offsets[row + 1])
        shared = gallery_kernels.shared_from(columns[part], weights[part], self._index, len(self))
        scaled = np.minimum(original.astype(np.float64) / self.lists.scale[row], 1.0)
        return mix(jaccard(shared), scaled, self.settings.lambda_value)

    def _original(self, block: Vectors) -> Vectors:
        """Distances of (b, d) prepared queries to the gallery, (b, n) float32."""
        points = self.points
        shifted = block - points.mean
        tile = shifted @ points.centred.T
        tile *= -2
        tile += points.squares
        if points.largest_product >= 0:
            tile += np.float32(points.largest_product)
        else:
            tile += np.einsum("bd,bd->b", shifted, shifted, dtype=np.float64).astype(np.float32)[:, None]
        return np.maximum(tile, 0, out=tile)

    def _final(self, query: Vectors, original: Vectors) -> Scores:
        from lookalike.rank import gallery_kernels

        near, exact = self._nearest(query, original)
        farthest = float(self._exact(query, np.array([original.argmax()]))[0])
        scale = farthest if farthest > 0 else 1.0
        columns, weights = self._feature(query, near, exact, scale)
        shared = gallery_kernels.shared_from(columns.astype(np.int32), weights, self._index, len(self))
        apart = 1.0 - shared / (float(weights.sum()) + 1.0 - shared)  # a query in nobody's list weighs less than 1
        return mix(apart, np.minimum(original.astype(np.float64) / scale, 1.0), self.settings.lambda_value)

    def _nearest(self, query: Vectors, original: Vectors) -> tuple[Ids, Scores]:
        """The first k1 gallery items and their exact distances, equal ones by row."""
        k1 = min(self.settings.k1, len(self))
        edge = np.partition(original, k1 - 1)[k1 - 1] + 2 * self.points.error
        names = np.flatnonzero(original <= edge)
        exact = self._exact(query, names)
        order = np.lexsort((names, exact))[:k1]
        return names[order], exact[order]

    def _exact(self, query: Vectors, names: npt.NDArray[np.integer]) -> Scores:
        a, b = query.astype(np.float64), self.points.vectors[names].astype(np.float64)
        if self.points.largest_product >= 0:
            return np.asarray(np.maximum(2 * (self.points.largest_product - np.einsum("d,nd->n", a, b)), 0))
        return np.asarray(np.einsum("nd,nd->n", b - a, b - a))

    def _feature(self, query: Vectors, near: Ids, exact: Scores, scale: float) -> tuple[Ids, Scores]:
        """The query's sparse feature over gallery columns, expanded and averaged as a member's would be."""
        own = near[exact <= self.lists.distances[near, -1]]  # those in whose list the query would stand
        inside = np.zeros(len(self) + 1, dtype=bool)  # the last entry stands for -1
        inside[own] = True
        half = self._half[own]
        sizes = (half >= 0).sum(axis=1)
        shared = inside[half].sum(axis=1)
        accepted = 3 * shared > 2 * sizes if self.settings.strict_overlap else 3 * shared >= 2 * sizes
        inside[half[accepted].ravel()] = True
        inside[-1] = False
        columns = np.flatnonzero(inside)
        weights = np.exp(-self._exact(query, columns) / scale)
        if len(columns):
            weights /= weights.sum()
        k2 = min(self.settings.k2, self.settings.k1, len(near) + 1)
        if k2 == 1:
            return columns, weights
        offsets, all_columns, all_weights = self._raw
        parts = [slice(offsets[row], offsets[row + 1]) for row in np.sort(near[: k2 - 1])]
        names = np.concatenate([columns, *(all_columns[part] for part in parts)])
        values = np.concatenate([weights, *(all_weights[part] for part in parts)])
        unique, places = np.unique(names, return_inverse=True)
        return unique, np.asarray(np.bincount(places, values) / k2)

    def add(self, vectors: npt.ArrayLike, *, threads: int | None = 1, block: int = 2048) -> GalleryGraph:
        """Return the graph with (m, d) vectors appended: the same as building it anew, for m·n instead of n² distances.

        Raises:
            ShapeError, NonFiniteError: the vectors are refused.
        """
        from lookalike.rank import gallery_kernels

        new = as_vectors(vectors, dim=self.points.vectors.shape[1])
        old, count = len(self), min(self.settings.k1 + 1, len(self) + len(new))
        joined = np.concatenate([self.points.vectors, unit(new) if self.metric == "cosine" else new])
        points = space(joined, "l2" if self.metric == "cosine" else self.metric, self.points.mean)
        if self.lists.names.shape[1] < count:  # the lists were cut short by a small gallery: start over
            return dataclasses.replace(self, points=points, lists=ranking_lists(points, count, threads=threads))
        kept = np.full((len(points), count + 8), np.inf, np.float32)
        names = np.full(kept.shape, -1, np.int32)
        kept[:old, : count - 1] = self.lists.distances[:, 1:]
        names[:old, : count - 1] = self.lists.names[:, 1:]
        far = np.full(len(points), -np.inf, np.float32)
        farthest = np.arange(len(points), dtype=np.int32)
        far[:old], farthest[:old] = points.pairs(np.arange(old), self.lists.farthest), self.lists.farthest
        if points.largest_product >= 0:  # a longer vector moves every inner-product distance alike
            pairs = points.pairs(np.repeat(np.arange(old), count - 1), self.lists.names[:, 1:].ravel())
            kept[:old, : count - 1] = pairs.reshape(old, count - 1)
        with processors.blas(threads):
            for left in range(old, len(points), block):
                for top in (*range(0, old, block), *range(old, left + 1, block)):
                    stop = min(top + block, old) if top < old else top + block
                    tile = points.centred[top:stop] @ points.centred[left : left + block].T
                    gallery_kernels.scan_tile(tile, points.squares, top, left, kept, names, far, farthest)
        return dataclasses.replace(self, points=points, lists=settle(points, kept, names, farthest, count))

    def remove(self, rows: npt.ArrayLike) -> GalleryGraph:
        """Return the graph without these rows, later rows moved up: the same as building it anew.

        Only rows whose list or farthest item is gone are ranked again.

        Raises:
            InputError: a row that is not there, or none would be left.
        """
        gone = np.unique(np.asarray(rows, dtype=np.int64))
        if len(gone) and not (gone[0] >= 0 and gone[-1] < len(self)):
            raise InputError(f"Rows to remove must lie in 0..{len(self) - 1}.")
        keep = np.setdiff1d(np.arange(len(self)), gone)
        if not len(keep):
            raise InputError("Removing every row would leave an empty gallery.")
        moved = np.full(len(self), -1, np.int32)
        moved[keep] = np.arange(len(keep), dtype=np.int32)
        metric: Metric = "l2" if self.metric == "cosine" else self.metric
        points = space(self.points.vectors[keep], metric, self.points.mean)
        names, farthest = moved[self.lists.names[keep]], moved[self.lists.farthest[keep]]
        count = min(self.lists.names.shape[1], len(keep))
        stale = np.flatnonzero((names < 0).any(axis=1) | (farthest < 0))
        fresh = rank_rows(points, stale, count)
        names = names[:, :count].copy()
        names[stale], farthest[stale] = fresh.names, fresh.farthest
        distances = points.pairs(np.repeat(np.arange(len(keep)), count), names.ravel()).reshape(names.shape)
        scale = points.pairs(np.arange(len(keep)), farthest)
        lists = RankingLists(names, distances, farthest, np.where(scale > 0, scale, 1.0))
        return dataclasses.replace(self, points=points, lists=lists)
