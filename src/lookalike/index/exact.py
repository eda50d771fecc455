"""Exact nearest neighbours, in bounded memory.

A float32 product decides which items cannot be among the first k; the rest are scored pair by pair in float64, so
equal vectors tie exactly and neither block size nor thread count changes a digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lookalike import threads as thread_counts
from lookalike.arrays import Ids, Scores, Vectors, as_ids, as_vectors
from lookalike.errors import InputError, InputTypeError, NonFiniteError, ShapeError
from lookalike.index.neighbours import Metric, Neighbours, check_metric, pair_scores

DEFAULT_BUDGET = 256 << 20
"""Bytes of working memory, beyond the vectors and the answer."""
_U = 2.0**-24  # unit roundoff of float32
_MOST_QUERIES = 256
_CANDIDATE_BYTES = 96  # place, bounds and score of one candidate, and their copies while they are sorted
_SAFE = (1e-12, 1e12)  # row lengths whose squares neither overflow nor vanish in float32


def topk(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    k: int,
    *,
    metric: Metric = "cosine",
    ids: npt.ArrayLike | None = None,
    exclude: Sequence[npt.ArrayLike] | None = None,
    threads: int | None = None,
    memory_budget: int = DEFAULT_BUDGET,
) -> Neighbours:
    """Return the k best items of each query, best first, equal scores in id order.

    queries (q, d), gallery (n, d); `ids` (n,) name the items, by default their positions. `exclude`: for each query
    the ids removed from its gallery; they take no place. Fewer than k come back where fewer exist.

    Raises:
        InputError: k below 1, or a budget below one byte.
        ShapeError: dimensions differ, or `exclude` has not one entry a query.
        NonFiniteError: NaN, infinity, or under cosine a vector of length zero; the rows are named.

    >>> found = topk([[1.0, 0.0]], [[0.0, 1.0], [3.0, 0.0], [2.0, 0.0]], 2)
    >>> found.ids.tolist(), found.scores.tolist()
    ([1, 2], [1.0, 1.0])
    """
    check_metric(metric)
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputTypeError(f"k must be a whole number, not {k!r}.")
    if k < 1:
        raise InputError(f"k={k}: at least one neighbour must be asked for.")
    if memory_budget < 1:
        raise InputError(f"memory_budget={memory_budget} bytes: at least one is needed.")
    left = as_vectors(queries, name="queries")
    right = left if gallery is queries else as_vectors(gallery, name="gallery", dim=left.shape[1])
    names = np.arange(len(right)) if ids is None else as_ids(ids, len(right))
    if exclude is not None and len(exclude) != len(left):
        raise ShapeError(f"exclude has {len(exclude)} entries for {len(left)} queries; one each is needed.")
    if metric == "cosine":
        _refuse_zero(left, "queries")
        _refuse_zero(right, "gallery")
    removed = None if exclude is None else _positions(exclude, names)
    rows: list[tuple[Ids, Scores]] = []
    size = int(np.clip(memory_budget // (_CANDIDATE_BYTES * min(int(k), len(right)) + 1), 1, _MOST_QUERIES))
    with thread_counts.blas(threads):
        for start in range(0, len(left), size):
            gone = [] if removed is None else removed[start : start + size]
            search = _Search(left[start : start + size], right, int(k), metric, names, gone)
            rows.extend(search.run(memory_budget))
    return Neighbours.from_rows(rows, metric)


class _Search:
    """The candidates of one block of queries, narrowed gallery block by gallery block."""

    def __init__(
        self, queries: Vectors, gallery: Vectors, k: int, metric: Metric, ids: Ids, excluded: Sequence[Ids]
    ) -> None:
        self.queries, self.gallery, self.metric, self.ids = queries, gallery, metric, ids
        self.excluded = excluded
        self.k = min(k, len(gallery))
        self.lengths = np.sqrt(np.einsum("qd,qd->q", queries, queries, dtype=np.float64))
        self.items = [np.empty(0, dtype=np.int64) for _ in range(len(queries))]
        self.lower = [np.empty(0, dtype=np.float64) for _ in range(len(queries))]
        self.upper = [np.empty(0, dtype=np.float64) for _ in range(len(queries))]
        self.bar = np.full(len(queries), -np.inf)
        """(q,) what k items reach for certain: whatever cannot reach it is out."""

    def run(self, budget: int) -> list[tuple[Ids, Scores]]:
        """Return ids and scores of each query."""
        dim = self.gallery.shape[1]
        # a score, its copy for the partition, and the float32 rows where they must be scaled
        size = max(1, budget // (16 * len(self.queries) + 8 * dim))
        for start in range(0, len(self.gallery), size):
            self._narrow(start, self.gallery[start : start + size])
        step = max(1, budget // (32 * dim))
        return [self._answer(query, step) for query in range(len(self.queries))]

    def _narrow(self, start: int, block: Vectors) -> None:
        scores, margins = self._filter(block)
        for query, removed in enumerate(self.excluded):
            scores[query, removed[(removed >= start) & (removed < start + len(block))] - start] = -np.inf
        near = min(self.k, len(block))
        for query, row in enumerate(scores):
            margin = margins[query]
            sure = np.partition(row, len(row) - near)[len(row) - near] if near < len(row) else -np.inf
            bar = max(self.bar[query], float(sure) - margin)
            least = np.nextafter(np.float32(bar - margin), np.float32(-np.inf))
            kept = np.flatnonzero(row >= least) if np.isfinite(least) else np.flatnonzero(row > -np.inf)
            self._merge(query, kept + start, row[kept].astype(np.float64), margin)

    def _merge(self, query: int, items: Ids, scores: Scores, margin: float) -> None:
        """Join the candidates, raise the bar, and drop what cannot reach it."""
        items = np.concatenate([self.items[query], items])
        lower = np.concatenate([self.lower[query], scores - margin])
        upper = np.concatenate([self.upper[query], scores + margin])
        if len(items) > self.k:
            self.bar[query] = max(self.bar[query], np.partition(lower, len(lower) - self.k)[len(lower) - self.k])
            kept = upper >= self.bar[query]
            items, lower, upper = items[kept], lower[kept], upper[kept]
        self.items[query], self.lower[query], self.upper[query] = items, lower, upper

    def _filter(self, block: Vectors) -> tuple[Vectors, Scores]:
        """Return (q, b) float32 scores, higher is better, and (q,) how far each can be wrong."""
        norms = np.sqrt(np.einsum("nd,nd->n", block, block))
        top = float(norms.max())
        extreme = not (_SAFE[0] < float(norms.min()) and top < _SAFE[1])
        reach = self.lengths.max(initial=0.0)
        if extreme or not reach < _SAFE[1]:
            return self._everything(block)
        gamma = (block.shape[1] + 8) * _U
        gamma = gamma / (1 - gamma)
        tiny = block.shape[1] * 2.0**-120
        if self.metric == "cosine":
            units = (self.queries / self.lengths[:, None]).astype(np.float32)
            scores = units @ block.T
            scores /= norms
            return scores, np.full(len(units), 2.5 * gamma + tiny / _SAFE[0])
        scores = self.queries @ block.T
        if self.metric == "ip":
            return scores, gamma * self.lengths * top + tiny
        scores *= 2
        scores -= norms**2
        # |q|² is the same for every item and is left out; twice the dot, the square, and the float64 distance itself
        far = (self.lengths + top) ** 2
        return scores, gamma * (2 * self.lengths * top + 2 * top**2) + _U * far * 2 + tiny

    def _everything(self, block: Vectors) -> tuple[Vectors, Scores]:
        """Keep all: these lengths leave the range in which a float32 product means anything."""
        return np.zeros((len(self.queries), len(block)), dtype=np.float32), np.full(len(self.queries), np.inf)

    def _answer(self, query: int, step: int) -> tuple[Ids, Scores]:
        items = self.items[query]
        parts = [
            pair_scores(self.queries[query], self.gallery[items[start : start + step]], self.metric)
            for start in range(0, len(items), step)
        ]
        scores = np.concatenate(parts) if parts else np.empty(0)
        names = self.ids[items]
        order = np.lexsort((names, scores if self.metric == "l2" else -scores))[: self.k]
        return names[order], scores[order]


def _positions(exclude: Sequence[npt.ArrayLike], ids: Ids) -> list[Ids]:
    """Turn excluded ids into gallery positions; ids the gallery has not are passed over."""
    order = np.argsort(ids, kind="stable")
    ascending = ids[order]
    rows = []
    for listed in exclude:
        wanted = np.atleast_1d(np.asarray(listed))
        if wanted.size and wanted.dtype.kind not in "iu":
            raise InputTypeError(f"Excluded ids must be whole numbers, not {wanted.dtype}.")
        wanted = wanted.astype(np.int64)
        place = np.searchsorted(ascending, wanted)
        known = place < len(ids)
        known[known] = ascending[place[known]] == wanted[known]
        rows.append(order[place[known]])
    return rows


def _refuse_zero(vectors: Vectors, name: str) -> None:
    zero = np.flatnonzero(~vectors.any(axis=1))
    if zero.size:
        named = ", ".join(map(str, zero[:5])) + (f" and {zero.size - 5} more" if zero.size > 5 else "")
        raise NonFiniteError(
            f"{name} has vectors of length zero, which have no direction to compare: row {named}.",
            hint="Leave these pictures out, or use metric 'l2' or 'ip'.",
        )
