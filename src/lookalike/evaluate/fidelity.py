"""How far the vectors of one encoder are from another's: what an 8-bit or half-precision copy costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookalike.arrays import as_vectors
from lookalike.errors import InputError, ShapeError
from lookalike.index.exact import topk
from lookalike.index.overlap import Overlap, overlap

K = 10


@dataclass(frozen=True)
class Fidelity:
    """The same pictures by two encoders: shared neighbours, and how alike each picture's two vectors are."""

    overlap: Overlap
    """Share of the original's neighbours that the copy finds among as many."""
    least_cosine: float
    """Cosine between the two vectors of the picture that changed most; NaN where the dimensions differ."""
    mean_cosine: float

    def __str__(self) -> str:
        return (
            f"{self.overlap.value:.1%} of the {self.overlap.k} nearest neighbours are the same "
            f"[{self.overlap.low:.1%}, {self.overlap.high:.1%}] over {self.overlap.queries} pictures; "
            f"cosine to the original {self.mean_cosine:.4f} on average, {self.least_cosine:.4f} at least"
        )


def fidelity(original: npt.ArrayLike, copy: npt.ArrayLike, *, k: int = K, seed: int = 0) -> Fidelity:
    """Compare two encoders on the same n pictures, row i for picture i; a picture is not its own neighbour.

    Raises:
        ShapeError: not the same number of pictures.
        InputError: fewer than two pictures.

    >>> vectors = np.random.default_rng(0).normal(size=(50, 8))
    >>> fidelity(vectors, 2 * vectors).overlap.value
    1.0
    """
    left, right = as_vectors(original, name="original"), as_vectors(copy, name="copy")
    if len(left) != len(right):
        raise ShapeError(
            f"There are {len(left)} original vectors and {len(right)} of the copy; one a picture is needed."
        )
    if len(left) < 2:
        raise InputError(f"{len(left)} pictures have no neighbours to compare.")
    depth = min(k, len(left) - 1)
    ids = np.arange(len(left), dtype=np.int64)
    own = [ids[row : row + 1] for row in ids]
    exact, found = (topk(side, side, depth, metric="cosine", ids=ids, exclude=own) for side in (left, right))
    cosines = np.full(1, np.nan)
    if left.shape == right.shape:
        a, b = left.astype(np.float64), right.astype(np.float64)
        cosines = (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return Fidelity(overlap(found, exact, depth, seed=seed), float(cosines.min()), float(cosines.mean()))
