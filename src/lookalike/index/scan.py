"""Exact neighbours among chosen rows of vectors that may lie in a file: float32 shortlist, float64 decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookalike.arrays import Ids, Mask, Scores, Vectors
from lookalike.index.library import faiss
from lookalike.index.neighbours import Metric, higher_is_better
from lookalike.index.queries import Queries
from lookalike.index.rescore import in_order, true_scores
from lookalike.index.structure import prepared

BLOCK_BYTES = 64 << 20  # rows copied at once where they must be gathered or scaled
PAD = 8  # shortlisted beyond k; grows eightfold wherever rounding could have hidden a better row
NEARLY_ONE = 1e-6  # rows this close to length 1 are not scaled again; the margin covers what it hides
_ROUNDING = 2.0**-24  # half an ulp of 1 in float32


@dataclass(frozen=True)
class Gallery:
    """Vectors to scan, and what makes scanning them cheap and safe."""

    vectors: Vectors
    """(n, d) as the caller gave them: true scores are computed from these."""
    metric: Metric
    ready: Vectors | None
    """The rows as a float32 product should see them: the vectors themselves, or a copy of length 1; None: scaled block
    by block while scanning."""
    longest: float
    """Length of the longest row."""

    @classmethod
    def of(cls, vectors: Vectors, metric: Metric, *, scale: bool = False) -> Gallery:
        """Measure the rows; with `scale`, keep a scaled copy where cosine needs one (4·n·d bytes)."""
        shortest, longest = length_range(vectors)
        if metric != "cosine" or max(longest - 1, 1 - shortest) <= NEARLY_ONE:
            return cls(vectors, metric, vectors, longest)
        return cls(vectors, metric, prepared(vectors, metric) if scale else None, longest)


def scan(queries: Queries, gallery: Gallery, k: int, *, rows: Ids | None = None) -> tuple[Ids, Scores]:
    """Return the (q, k) nearest row numbers and true scores, best first, equal scores by row number.

    k is at most the number of rows looked at. `rows`, ascending, limits the search to them. The float32 shortlist is
    trusted only as far as d · 2⁻²⁴ · |q| · |v|, the rounding of a dot product; a query whose k-th result lies closer to
    the cut than that is shortlisted again, longer.
    """
    vectors, metric = gallery.vectors, gallery.metric
    total = len(vectors) if rows is None else len(rows)
    found = np.empty((len(queries.given), k), dtype=np.int64)
    scores = np.empty((len(queries.given), k), dtype=np.float64)
    pending, pad = np.arange(len(queries.given)), PAD
    margins = _margins(queries, metric, gallery.longest)
    while pending.size and k:
        length = min(total, k + pad)
        short, edge = _shortlist(queries.scaled[pending], gallery, length, rows)
        exact = true_scores(queries.at(pending), vectors, short, metric)
        short, exact = in_order(short, exact, metric)
        found[pending], scores[pending] = short[:, :k], exact[:, :k]
        if length == total:
            break
        pending = pending[~_settled(exact[:, k - 1], edge, margins[pending], metric)]
        pad *= 8
    return found, scores


def length_range(vectors: Vectors) -> tuple[float, float]:
    """Return the lengths of the shortest and the longest row (1, 1 where there are none)."""
    step = max(1, BLOCK_BYTES // (4 * vectors.shape[1]))
    low, high = np.inf, 0.0
    for start in range(0, len(vectors), step):
        block = vectors[start : start + step]
        squares = np.einsum("nd,nd->n", block, block, dtype=np.float64)
        low, high = min(low, float(squares.min())), max(high, float(squares.max()))
    return (float(np.sqrt(low)), float(np.sqrt(high))) if len(vectors) else (1.0, 1.0)


def _margins(queries: Queries, metric: Metric, longest: float) -> Scores:
    d, lengths = queries.given.shape[1], queries.lengths
    if metric == "cosine":
        return np.full(len(queries.given), (d + 4) * _ROUNDING + 2 * NEARLY_ONE)
    if metric == "ip":
        return np.asarray(d * _ROUNDING * lengths * longest)
    return np.asarray((d + 4) * _ROUNDING * (lengths + longest) ** 2)


def _settled(kth: Scores, edge: Scores, margins: Scores, metric: Metric) -> Mask:
    better_by = kth - edge if higher_is_better(metric) else edge - kth
    return np.asarray(better_by > margins)


def _shortlist(scaled: Vectors, gallery: Gallery, length: int, rows: Ids | None) -> tuple[Ids, Scores]:
    """Return (q, length) rows, unordered, and the (q,) worst float32 score among them."""
    metric, ready = gallery.metric, gallery.ready
    source = gallery.vectors if ready is None else ready
    total = len(source) if rows is None else len(rows)
    step = max(length, BLOCK_BYTES // (4 * source.shape[1]))
    if rows is None and ready is not None:
        step = max(total, 1)  # nothing is copied, so nothing needs to be cut
    best_rows = np.empty((len(scaled), 0), dtype=np.int64)
    best = np.empty((len(scaled), 0), dtype=np.float32)
    for start in range(0, total, step):
        stop = min(start + step, total)
        block = source[start:stop] if rows is None else source[rows[start:stop]]
        block = prepared(block, metric) if ready is None else block
        values, where = _knn(scaled, block, min(length, stop - start), metric)
        where = where + start if rows is None else rows[start:stop][where]
        best_rows, best = np.concatenate([best_rows, where], 1), np.concatenate([best, values], 1)
        if best.shape[1] > length:
            keep = np.argpartition(-best if higher_is_better(metric) else best, length - 1, axis=1)[:, :length]
            best_rows, best = np.take_along_axis(best_rows, keep, 1), np.take_along_axis(best, keep, 1)
    edge = best.min(axis=1) if higher_is_better(metric) else best.max(axis=1)
    return best_rows, edge.astype(np.float64)


def _knn(queries: Vectors, block: Vectors, k: int, metric: Metric) -> tuple[Vectors, Ids]:
    library = faiss()
    measure = library.METRIC_INNER_PRODUCT if higher_is_better(metric) else library.METRIC_L2
    values, rows = library.knn(queries, block, k, metric=measure)
    return values, rows
