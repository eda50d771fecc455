"""Rows fresh from a network: brought to length 1, and the useless ones found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Mask, Vectors
from lookalike.errors import InputTypeError, ShapeError


def as_rows(values: npt.ArrayLike, n: int, *, source: str) -> Vectors:
    """Check that an encoder gave (n, d) numbers and return them as float32.

    NaN, infinity and zero rows pass: a batch is not lost for one picture, `unusable` names it later. A torch tensor
    may still hang on its graph, lie on another device or be half precision.

    Raises:
        ShapeError: not one row for each of the n pictures, or no columns.
        InputTypeError: not numbers.
    """
    array = np.asarray(values.detach().cpu().float() if hasattr(values, "detach") else values)
    if array.ndim != 2 or array.shape[0] != n or array.shape[1] == 0:
        raise ShapeError(f"{source} returned shape {array.shape} for {n} pictures; expected ({n}, d).")
    if array.dtype.kind not in "fiu":
        raise InputTypeError(f"{source} returned {array.dtype}; expected numbers.")
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf and is reported by name
        return np.ascontiguousarray(array, dtype=np.float32)


def normalise(rows: Vectors) -> Vectors:
    """Scale every row to length 1, in float64; a row without a direction (zero, NaN, infinite) comes out as NaN.

    >>> normalise(np.array([[3, 4], [0, 0]], dtype=np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [nan, nan]]
    """
    wide = rows.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
        scaled: Vectors = (wide / lengths).astype(np.float32)
    return scaled


def unusable(rows: Vectors) -> Mask:
    """Tell which rows hold NaN or infinity, or are zero throughout: (n,) bool."""
    found: Mask = np.logical_or(~np.isfinite(rows).all(axis=1), ~rows.any(axis=1))
    return found
