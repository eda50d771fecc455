"""Queries as every step of a search needs them, prepared once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Scores, Vectors, as_vectors, unit
from lookalike.errors import InputTypeError, ShapeError
from lookalike.index.neighbours import Metric

CHUNK = 256  # queries searched together at least; fixed, so that answers do not depend on the number of threads
BLAS_FROM = 128_000  # FAISS multiplies matrices from this many numbers on (distance_compute_blas_threshold)


class Queries(NamedTuple):
    """The same q rows three times: as given, in float64, and as FAISS is handed them."""

    given: Vectors
    """(q, d)."""
    wide: Scores
    """(q, d) float64."""
    lengths: Scores
    """(q,)."""
    scaled: Vectors
    """(q, d), of length 1 where the metric is cosine."""

    @classmethod
    def of(cls, values: npt.ArrayLike, dim: int, metric: Metric) -> Queries:
        """Check and prepare; one pass over the numbers where nothing is wrong.

        Raises:
            ShapeError, NonFiniteError: not (q, dim), not finite, or of length zero where the metric is cosine.
        """
        if isinstance(values, np.ndarray) and values.dtype == np.float32 and values.flags.c_contiguous:
            given: Vectors = values if values.ndim == 2 and values.shape[1] == dim else _checked(values, dim)
        else:
            given = _checked(values, dim)
        wide = given.astype(np.float64)
        lengths = np.sqrt(np.einsum("qd,qd->q", wide, wide))
        low, high = (lengths.item(),) * 2 if len(lengths) == 1 else (lengths.min(initial=1), lengths.max(initial=1))
        if not high < np.inf:  # a square of a float32 cannot overflow float64, so something is NaN or infinite
            _checked(given, dim)
        if metric != "cosine":
            return cls(given, wide, lengths, given)
        if low == 0:
            unit(given, name="queries")
        return cls(given, wide, lengths, (wide / lengths[:, None]).astype(np.float32))

    def at(self, rows: slice | Ids) -> Queries:
        """Return some of the queries."""
        return Queries(self.given[rows], self.wide[rows], self.lengths[rows], self.scaled[rows])


def _checked(values: npt.ArrayLike, dim: int) -> Vectors:
    return as_vectors(values, name="queries", dim=dim)


def chunks(q: int, d: int) -> list[slice]:
    """Cut q queries into even parts of at least CHUNK and BLAS_FROM / d."""
    count = max(1, q // max(CHUNK, -(-BLAS_FROM // d)))
    edges = [i * q // count for i in range(count + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(edges)]


def as_allowed(values: npt.ArrayLike) -> Ids:
    """Check the ids a filter lets through; ascending, each once."""
    asked = np.asarray(values)
    if asked.size and asked.dtype.kind not in "iu":
        raise InputTypeError(f"allowed must be ids (whole numbers), not {asked.dtype}.")
    return np.unique(asked.astype(np.int64))


def as_exclusions(exclude: Sequence[npt.ArrayLike] | None, q: int) -> list[Ids] | None:
    """Check one array of ids a query."""
    if exclude is None:
        return None
    if len(exclude) != q:
        raise ShapeError(f"exclude has {len(exclude)} entries for {q} queries; give one array of ids a query.")
    return [np.asarray(ids, dtype=np.int64).reshape(-1) for ids in exclude]
