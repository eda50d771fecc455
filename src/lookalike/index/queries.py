"""Queries as every step of a search needs them, prepared once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Scores, Vectors, as_vectors, unit
from lookalike.index.neighbours import Metric


@dataclass(frozen=True)
class Queries:
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
        if not np.isfinite(lengths).all():  # a square of a float32 cannot overflow float64
            _checked(given, dim)
        if metric != "cosine":
            return cls(given, wide, lengths, given)
        if not lengths.all():
            unit(given, name="queries")
        return cls(given, wide, lengths, (wide / lengths[:, None]).astype(np.float32))

    def __len__(self) -> int:
        return len(self.given)

    def at(self, rows: slice | Ids) -> Queries:
        """Return some of the queries."""
        return Queries(self.given[rows], self.wide[rows], self.lengths[rows], self.scaled[rows])


def _checked(values: npt.ArrayLike, dim: int) -> Vectors:
    return as_vectors(values, name="queries", dim=dim)
