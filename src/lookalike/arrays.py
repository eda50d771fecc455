"""Array types of the whole package, and the checks made once, at the border.

Inside the package every array has passed here: two-dimensional C-contiguous float32 vectors without NaN, int64 ids,
int64 label codes (-1 where the label is missing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lookalike.errors import InputError, InputTypeError, NonFiniteError, ShapeError

Vectors: TypeAlias = npt.NDArray[np.float32]
"""(n, d) float32, C-contiguous, finite."""
Scores: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.int64]
"""Labels as whole numbers from 0; -1 where the label is missing."""
Mask: TypeAlias = npt.NDArray[np.bool_]
Rgb: TypeAlias = npt.NDArray[np.uint8]
"""(h, w, 3) uint8, upright."""

_NAMED = 5  # rows named in an error before "and N more"


def as_vectors(values: npt.ArrayLike, *, name: str = "vectors", dim: int | None = None) -> Vectors:
    """Check and convert to (n, d) float32, C-contiguous and finite.

    float64, float16, integers and non-contiguous arrays are converted; a single vector is (1, d), not (d,).

    Raises:
        ShapeError: not two-dimensional, no columns, or not `dim` columns.
        NonFiniteError: NaN or infinity, also after conversion to float32; the rows are named.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise InputTypeError(f"{name} must hold numbers, not {array.dtype}.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ShapeError(f"{name} must have shape (n, d), not {array.shape}.")
    if dim is not None and array.shape[1] != dim:
        raise ShapeError(f"{name} has {array.shape[1]} columns where {dim} were expected.")
    with np.errstate(over="ignore"):  # a float64 beyond float32 becomes inf and is refused by name below
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        raise NonFiniteError(f"{name} holds NaN or infinity in {_rows(bad)}.")
    return vectors


def unit(vectors: Vectors, *, name: str = "vectors") -> Vectors:
    """Scale every row to length 1, computed in float64.

    Raises:
        NonFiniteError: a row of length zero has no direction; the rows are named.

    >>> unit(np.array([[3, 4]], dtype=np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    zero = np.flatnonzero(norms == 0)
    if zero.size:
        raise NonFiniteError(f"{name} has length zero in {_rows(zero)}, which has no direction to compare.")
    scaled: Vectors = (vectors / norms[:, None]).astype(np.float32)
    return scaled


def as_ids(values: npt.ArrayLike, n: int, *, name: str = "ids") -> Ids:
    """Check (n,) whole numbers, each once.

    Raises:
        ShapeError: not one id per row.
        InputTypeError: not whole numbers.
        InputError: an id stands twice.
    """
    array = np.asarray(values)
    if array.shape != (n,):
        raise ShapeError(f"{name} must have shape ({n},), one per vector, not {array.shape}.")
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must be whole numbers, not {array.dtype}.")
    ids = array.astype(np.int64)
    if np.unique(ids).size != n:
        raise InputError(f"{name} holds an id twice; an id names one item.")
    return ids


def wanted_ids(values: npt.ArrayLike, *, name: str = "ids") -> Ids:
    """Return (n,) ids somebody asks for; one id is (1,), and an id may stand twice.

    Raises:
        InputTypeError: not whole numbers: 1.5 is not taken for 1.
        InputError: a number beyond 64 bits, which no item has.

    >>> wanted_ids([3, 3]).tolist(), wanted_ids(7).tolist(), wanted_ids([]).tolist()
    ([3, 3], [7], [])
    """
    array = np.asarray(values).ravel()
    if not array.size:
        return np.empty(0, np.int64)
    if array.dtype.kind == "O" and all(isinstance(each, int) and not isinstance(each, bool) for each in array):
        raise InputError(f"{name} holds a number of more than 64 bits; no item has such an id.")
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must be whole numbers, not {array.dtype}.")
    if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} holds {array.max()}; no item has such an id.")
    return array.astype(np.int64)


def check_paths(paths: Sequence[str], *, name: str = "paths") -> None:
    """Raise InputTypeError unless these are several texts: one text is not taken for a list of letters."""
    if isinstance(paths, str | bytes):
        raise InputTypeError(f"{name} must be a list of paths, not the single {paths!r}.")
    for path in paths:
        if not isinstance(path, str):
            raise InputTypeError(f"{name} must hold text, not {type(path).__name__}.")


def factorise(*columns: Sequence[Any] | npt.NDArray[Any]) -> tuple[Codes, ...]:
    """Give equal labels of all columns the same code; a missing label (None, NaN, "") gets -1.

    Labels are strings or whole numbers and are never turned into floats: 2**24 and 2**24 + 1 stay apart. The string
    "1" and the number 1 are different labels only where one column holds both; a column of digits read from a file
    matches a column of integers.

    Raises:
        InputTypeError: a label that is a float with a fraction, or no scalar.

    >>> [c.tolist() for c in factorise(["cat", "dog", None], ["dog", "owl"])]
    [[0, 1, -1], [1, 2]]
    """
    codes: dict[str, int] = {}
    result = []
    for column in columns:
        out = np.empty(len(column), dtype=np.int64)
        for i, label in enumerate(column):
            key = label_key(label)
            out[i] = -1 if key is None else codes.setdefault(key, len(codes))
        result.append(out)
    return tuple(result)


def label_key(label: Any) -> str | None:
    """Return the label as text, or None where it is missing.

    Raises:
        InputTypeError: a float with a fraction, or no scalar.
    """
    if label is None:
        return None
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool | int):
        return str(int(label))
    if isinstance(label, float):
        if np.isnan(label):
            return None
        if label.is_integer():  # a column of integers with gaps is read as floats by every table library
            return str(int(label))
        raise InputTypeError(f"A label must be text or a whole number, not the float {label!r}.")
    if isinstance(label, str):
        return label or None
    raise InputTypeError(f"A label must be text or a whole number, not {type(label).__name__}.")


def same_length(**columns: Sequence[Any] | npt.NDArray[Any] | None) -> int:
    """Return the common length of the named columns (None is passed over).

    Raises:
        ShapeError: two lengths differ; both columns are named.
    """
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ShapeError(f"These must have one entry per row: {listed}.")
    return next(iter(lengths.values()), 0)


def _rows(rows: npt.NDArray[np.intp]) -> str:
    listed = ", ".join(map(str, rows[:_NAMED]))
    more = f" and {rows.size - _NAMED} more" if rows.size > _NAMED else ""
    return f"row {listed}{more}" if rows.size == 1 else f"rows {listed}{more}"
