"""Several looks at one picture, crops and mirror images, and the one vector that comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Vectors
from lookalike.embed.rows import normalise as unit_rows


def stacked(prepared: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], int]:
    """Return one batch, (n · views, …), and the number of views of a picture; pictures stay together.

    >>> stacked([np.zeros((3, 8, 8, 3), np.uint8)] * 2)[0].shape
    (6, 8, 8, 3)
    """
    batch = np.stack(prepared)
    if batch.ndim == 5:
        return batch.reshape(-1, *batch.shape[2:]), batch.shape[1]
    return batch, 1


def mirrored(batch: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Mirror pictures left to right: (n, h, w, 3) grey levels, or (n, 3, h, w) as a library has scaled them."""
    axis = 2 if batch.shape[-1] == 3 else 3
    return np.ascontiguousarray(np.flip(batch, axis=axis))


def combined(rows: Sequence[Vectors], views: int, *, unit: bool) -> Vectors:
    """Return one vector a picture, (n, d), from the rows of each look at them, (n · views, d) each.

    With `unit`, each look counts alike, whatever the length of its vector, and the result has length 1; otherwise
    the raw vectors are averaged.

    >>> both = combined([np.array([[2, 0]], np.float32), np.array([[0, 1]], np.float32)], 1, unit=True)
    >>> [round(value, 4) for value in both[0].tolist()]
    [0.7071, 0.7071]
    """
    if len(rows) == 1 and views == 1:
        return unit_rows(rows[0]) if unit else rows[0]
    looks = np.stack([unit_rows(part) if unit else part for part in rows], axis=1)
    looks = looks.reshape(-1, views * len(rows), looks.shape[-1])
    mean = looks.mean(axis=1, dtype=np.float64).astype(np.float32)
    return unit_rows(mean) if unit else mean
