"""A bare function `images -> (n, d)` as an encoder."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Rgb, Vectors
from lookalike.embed.encoder import Card
from lookalike.embed.rows import as_rows, normalise
from lookalike.errors import InputTypeError

ImageFunction: TypeAlias = Callable[[Sequence[Rgb]], npt.ArrayLike]

_PROBE = (224, 224, 3)


class FunctionEncoder:
    """Any function from a list of (h, w, 3) uint8 pictures to (n, d) numbers.

    Its identity is its module, its name and, where Python can find it, its source text: an edited function is another
    encoder. Values it closes over and files it reads are not seen; name a new function when those change.
    Without `dim` the function is called once on a grey picture when the card is first asked for.

    >>> def mean_colour(images):
    ...     return [image.mean(axis=(0, 1)) for image in images]
    >>> red = np.zeros((2, 2, 3), np.uint8)
    >>> red[..., 0] = 255
    >>> FunctionEncoder(mean_colour).encode_images([red]).tolist()
    [[1.0, 0.0, 0.0]]
    """

    def __init__(
        self, function: ImageFunction, *, name: str | None = None, dim: int | None = None, unit_rows: bool = True
    ) -> None:
        if not callable(function):
            raise InputTypeError(f"An encoder function must be callable, not {type(function).__name__}.")
        self._function = function
        self._name = name or f"python:{_module(function)}:{_qualname(function)}"
        self._dim = dim
        self._unit_rows = unit_rows

    @property
    def card(self) -> Card:
        """Which encoder this is."""
        if self._dim is None:
            self.encode_images([np.full(_PROBE, 127, dtype=np.uint8)])
        return Card(
            name=self._name,
            weights=_digest(self._function),
            dim=self._dim or 0,
            pooling="function",
            preprocessing="upright RGB of any size",
            normalised=self._unit_rows,
        )

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, d) float32.

        Raises:
            ShapeError: the function did not return one row a picture.
            InputTypeError: it did not return numbers.
        """
        if len(images) == 0 and self._dim is not None:
            return np.empty((0, self._dim), dtype=np.float32)
        rows = as_rows(self._function(images), len(images), source=self._name)
        self._dim = rows.shape[1]
        return normalise(rows) if self._unit_rows else rows


def _module(function: Any) -> str:
    return str(getattr(function, "__module__", None) or type(function).__module__)


def _qualname(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _digest(function: Any) -> str:
    """BLAKE2b over module, qualified name and source text; the text is empty where Python cannot find it."""
    try:
        source = inspect.getsource(function if hasattr(function, "__qualname__") else type(function))
    except (OSError, TypeError):
        source = ""
    identity = "\0".join((_module(function), _qualname(function), source))
    return hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
