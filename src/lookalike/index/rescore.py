"""True scores of candidate rows, and their order."""

from __future__ import annotations

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.index.library import faiss
from lookalike.index.neighbours import Metric, higher_is_better
from lookalike.index.queries import Queries

WORKSPACE = 2 << 20  # bytes of float64 candidates at once: they are read three times, so they should stay in cache


def true_scores(queries: Queries, vectors: Vectors, rows: Ids, metric: Metric) -> Scores:
    """Score q queries against the (q, k) rows of vectors named for each, in float64.

    The same pair gives the same bits as `neighbours.pair_scores`, in any company. Row -1 gets the worst score there is.
    """
    q, k = rows.shape
    per_query = max(1, k * vectors.shape[1] * 8)
    if q * per_query <= WORKSPACE or (q == 1 and k == 1):
        return _true_scores(queries, vectors, rows, metric)
    if per_query > WORKSPACE and k > 1:
        half = k // 2
        parts = [true_scores(queries, vectors, part, metric) for part in (rows[:, :half], rows[:, half:])]
        return np.concatenate(parts, axis=1)
    step = max(1, WORKSPACE // per_query)
    blocks = [slice(start, start + step) for start in range(0, q, step)]
    return np.concatenate([_true_scores(queries.at(at), vectors, rows[at], metric) for at in blocks])


def _true_scores(queries: Queries, vectors: Vectors, rows: Ids, metric: Metric) -> Scores:
    items = vectors[rows].astype(np.float64)  # row -1 reads the last vector; it is overwritten below
    scores: Scores
    if metric == "l2":
        items -= queries.wide[:, None]
        scores = np.einsum("qkd,qkd->qk", items, items)
    else:
        scores = np.einsum("qd,qkd->qk", queries.wide, items)
        if metric == "cosine":
            lengths = np.einsum("qkd,qkd->qk", items, items)
            np.sqrt(lengths, out=lengths)
            lengths *= queries.lengths[:, None]
            scores /= lengths
    if rows.min(initial=0) < 0:
        scores[rows < 0] = -np.inf if higher_is_better(metric) else np.inf
    return scores


def in_order(rows: Ids, scores: Scores, metric: Metric) -> tuple[Ids, Scores]:
    """Sort each row best first, equal scores by row number (rows are kept in id order, so by id)."""
    order = np.lexsort((rows, scores if metric == "l2" else -scores))
    if len(rows) == 1:
        return rows[:, order[0]], scores[:, order[0]]
    at = np.arange(len(rows))[:, None]
    return rows[at, order], scores[at, order]


def nearest_of(queries: Vectors, vectors: Vectors, rows: Ids, k: int, metric: Metric) -> Ids:
    """Return the k best of (q, c) candidate rows by float32 scores on the vectors, read where they lie.

    Queries and vectors have length 1 where the metric is cosine. Only candidates are touched: `vectors` may be a map.
    """
    library = faiss()
    found = np.empty(rows.shape, dtype=np.float32)
    measure = library.fvec_inner_products_by_idx if higher_is_better(metric) else library.fvec_L2sqr_by_idx
    measure(
        *(library.swig_ptr(array) for array in (found, queries, vectors)),
        library.swig_ptr(np.ascontiguousarray(rows)),
        queries.shape[1],
        len(queries),
        rows.shape[1],
    )
    worst_first = found if higher_is_better(metric) else -found
    worst_first[rows < 0] = -np.inf
    if k >= rows.shape[1]:
        return rows
    best = np.argpartition(-worst_first, k - 1, axis=1)[:, :k]
    chosen: Ids = np.take_along_axis(rows, best, 1)
    return chosen
