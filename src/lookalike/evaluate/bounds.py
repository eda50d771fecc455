"""Float32 rows whose product orders items, and how far that product can be wrong.

A BLAS product of float32 rows is a filter: two scores further apart than the margin stand in their true order, closer
ones are decided by the exact score of the pair. The margin is rigorous for any order of summation: a sum of d
products of float32 numbers is off by at most γ_d |a| |b|, γ_d = d·u / (1 - d·u), u = 2⁻²⁴ (Higham, Accuracy and
Stability of Numerical Algorithms, 2002, section 3.1), and the rows' own rounding is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookalike.arrays import Scores, Vectors
from lookalike.errors import NonFiniteError
from lookalike.index.neighbours import Metric

_U = 2.0**-24
_U64 = 2.0**-53
_NEARLY_UNIT = 1e-6  # rows this close to length 1 are used as they are: a wider margin instead of a copy
_SAFE = (1e-9, 1e9)  # lengths whose products neither overflow nor vanish in float32
_ROWS = 4096  # rows converted to float64 at a time


@dataclass(frozen=True)
class Filter:
    """Rows whose float32 product, higher is better, orders the gallery of each query up to `margin`.

    With F the float64 product of two filter rows: a float32 product above F(query, item) + margin, however summed,
    belongs to an item that is truly above that item.
    """

    queries: Vectors
    gallery: Vectors
    margin: Scores
    """(q,) in the units of the product."""

    @property
    def symmetric(self) -> bool:
        """Query and gallery rows are the same array, so one product serves both directions."""
        return self.queries is self.gallery


def make_filter(queries: Vectors, gallery: Vectors, metric: Metric) -> Filter:
    """Prepare the filter rows; pass the same array twice where query and gallery are the same.

    Raises:
        NonFiniteError: a vector of length zero under cosine; the rows are named.
    """
    if metric == "l2":
        return _distances(queries, gallery)
    query_norms = lengths(queries)
    gallery_norms = query_norms if queries is gallery else lengths(gallery)
    if metric == "cosine":
        refuse_zero(query_norms, "queries")
        refuse_zero(gallery_norms, "gallery")
        return _cosines(queries, gallery, query_norms, gallery_norms)
    return _products(queries, gallery, query_norms, gallery_norms)


def wide_products(queries: Vectors, gallery: Vectors, metric: Metric) -> tuple[Scores, Scores]:
    """Return (q, n) float64 scores, higher is better, and (q,) how far each is from the exact score at most.

    The gallery is converted to float64 a few thousand rows at a time.
    """
    dim = queries.shape[1]
    centre = gallery.mean(axis=0, dtype=np.float64) if metric == "l2" else np.zeros(dim)
    left = queries - centre
    sizes = np.sqrt(np.einsum("qd,qd->q", left, left))
    if metric == "cosine":
        left /= sizes[:, None]
    out = np.empty((len(queries), len(gallery)))
    top = 0.0
    for start in range(0, len(gallery), _ROWS):
        right = gallery[start : start + _ROWS] - centre
        norms = np.sqrt(np.einsum("nd,nd->n", right, right))
        top = max(top, float(norms.max(initial=0)))
        part = out[:, start : start + _ROWS]
        np.matmul(left, right.T, out=part)
        if metric == "cosine":
            part /= norms
        elif metric == "l2":  # -|q - g|² = 2 q·g - |q|² - |g|²
            part *= 2
            part -= norms**2
            part -= sizes[:, None] ** 2
    scale = {"cosine": np.ones(len(queries)), "ip": sizes * top, "l2": (sizes + top) ** 2}[metric]
    return out, 8 * (dim + 16) * _U64 * scale


def lengths(vectors: Vectors) -> Scores:
    """Return (n,) row lengths in float64, without a float64 copy of the whole array."""
    out = np.empty(len(vectors))
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS].astype(np.float64)
        out[start : start + _ROWS] = np.sqrt(np.einsum("nd,nd->n", block, block))
    return out


def refuse_zero(norms: Scores, name: str) -> None:
    """Refuse vectors of length zero by row.

    Raises:
        NonFiniteError: the rows are named.
    """
    zero = np.flatnonzero(norms == 0)
    if zero.size:
        named = ", ".join(map(str, zero[:5])) + (f" and {zero.size - 5} more" if zero.size > 5 else "")
        raise NonFiniteError(
            f"{name} has vectors of length zero, which have no direction to compare: row {named}.",
            hint="Leave these pictures out, or use metric 'l2' or 'ip'.",
        )


def _gamma(terms: int) -> float:
    return terms * _U / (1 - terms * _U)


def _cosines(queries: Vectors, gallery: Vectors, query_norms: Scores, gallery_norms: Scores) -> Filter:
    dim = queries.shape[1]
    off = max(np.abs(query_norms - 1).max(initial=0), np.abs(gallery_norms - 1).max(initial=0))
    if off <= _NEARLY_UNIT:
        rounding = 2.1 * off
        left, right = queries, gallery
    else:
        rounding = 2.5 * _U
        left = _scaled(queries, query_norms)
        right = left if queries is gallery else _scaled(gallery, gallery_norms)
    margin = 1.001 * _gamma(dim + 4) + 2 * rounding + _tiny(dim)
    return Filter(left, right, np.full(len(queries), margin))


def _products(queries: Vectors, gallery: Vectors, query_norms: Scores, gallery_norms: Scores) -> Filter:
    dim = queries.shape[1]
    sizes = (query_norms.max(initial=0), gallery_norms.max(initial=0))
    left, right, rounding, scale = queries, gallery, 0.0, query_norms * sizes[1]
    if any(size and not _SAFE[0] < size < _SAFE[1] for size in sizes):
        top = max(sizes) if queries is gallery else None
        left = _scaled(queries, np.full(len(queries), top or sizes[0] or 1.0))
        right = left if queries is gallery else _scaled(gallery, np.full(len(gallery), sizes[1] or 1.0))
        rounding = 2.5 * _U
        scale = query_norms / (top or sizes[0] or 1.0)
    margin = (1.001 * _gamma(dim + 4) + 2 * rounding + _tiny(dim)) * scale + dim * 2.0**-120
    return Filter(left, right, margin)


def _distances(queries: Vectors, gallery: Vectors) -> Filter:
    """Order by q·g - |g|²/2, which falls as |q - g|² grows; one more column holds the second term.

    Rows are first moved by the gallery's mean: far from the origin the distances would drown in the lengths.
    """
    dim = queries.shape[1]
    centre = gallery.mean(axis=0, dtype=np.float64) if len(gallery) else np.zeros(dim)
    right = np.empty((len(gallery), dim + 1), dtype=np.float32)
    spread = _moved(gallery, centre, right)
    top = spread.max(initial=0) or 1.0
    right[:, :dim] /= np.float32(top)
    right[:, dim] = -((spread / top) ** 2) / 2
    left = np.empty((len(queries), dim + 1), dtype=np.float32)
    reach = np.maximum(_moved(queries, centre, left), top)
    left[:, :dim] /= reach[:, None].astype(np.float32)
    left[:, dim] = top / reach
    # Rounding of the move, of the divisions and of the last column: 3u for the first, 2u for each of the others.
    rounding = 12 * _U
    exact = 4 * dim * _U64 * (reach + top) ** 2 / (top * reach)  # the float64 distances themselves
    return Filter(left, right, 1.7 * _gamma(dim + 5) + 2 * rounding + _tiny(dim) + exact)


def _moved(vectors: Vectors, centre: Scores, out: Vectors) -> Scores:
    """Write the moved rows to the first columns of `out`, and return their float64 lengths."""
    norms = np.empty(len(vectors))
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS] - centre
        out[start : start + _ROWS, : block.shape[1]] = block
        norms[start : start + _ROWS] = np.sqrt(np.einsum("nd,nd->n", block, block))
    return norms


def _scaled(vectors: Vectors, norms: Scores) -> Vectors:
    out = np.empty_like(vectors)
    for start in range(0, len(vectors), _ROWS):
        out[start : start + _ROWS] = vectors[start : start + _ROWS] / norms[start : start + _ROWS, None]
    return out


def _tiny(dim: int) -> float:
    """Float64 rounding of exact scores and thresholds, and products that vanish in float32."""
    return 8 * (dim + 16) * _U64 + dim * 2.0**-120
