"""Anything a caller may call a picture, through the one loader."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from lookalike.arrays import Rgb
from lookalike.errors import ImageError, InputTypeError
from lookalike.images.colour import UnsupportedPixelsError, to_rgb
from lookalike.images.guard import guarded
from lookalike.images.load import MAX_PIXELS, Picture, Source, load

Item: TypeAlias = "Source | npt.NDArray[Any] | Image.Image"
"""A path, the bytes of a file, an (h, w), (h, w, 3) or (h, w, 4) uint8 array, or a Pillow image."""

Loader: TypeAlias = Callable[[Any, int | None], Picture]
"""(item, short side the encoder needs or None) -> picture; raises ImageError."""

_CHANNELS = {3, 4}
_LOCKS = tuple(threading.Lock() for _ in range(64))


def read(item: Item, short_side: int | None = None) -> Picture:
    """Return the picture behind a path, bytes, an array or a Pillow image.

    Raises:
        ImageError: it cannot be read.
        InputTypeError: it is none of these.

    >>> read(np.zeros((2, 3), np.uint8)).pixels.shape
    (2, 3, 3)
    """
    if isinstance(item, str | os.PathLike | bytes):
        return load(item, short_side=short_side)
    if isinstance(item, np.ndarray):
        return _array(item)
    if isinstance(item, Image.Image):
        return _pillow(item)
    raise InputTypeError(
        f"A picture is a path, bytes, a uint8 array or a Pillow image, not {type(item).__name__}.",
        hint="Pass a list with one of these an entry.",
    )


def name_of(item: object, position: int) -> str:
    """Return the path of a file; what lies in memory is called by its position."""
    if isinstance(item, str | os.PathLike):
        return os.fsdecode(item)
    return f"picture {position}"


def _array(item: npt.NDArray[Any]) -> Picture:
    shaped = item.ndim == 2 or (item.ndim == 3 and item.shape[2] in _CHANNELS)
    if item.dtype != np.uint8 or not shaped or item.size == 0:
        raise ImageError(
            "<array>", "unsupported", f"shape {item.shape}, {item.dtype}; expected (h, w[, 3 or 4]) uint8, not empty"
        )
    if item.ndim == 3 and item.shape[2] == 3:
        return _picture(np.ascontiguousarray(item), 1, ())
    notes: list[str] = []
    return _picture(np.asarray(to_rgb(Image.fromarray(item), bits=16, inverted=False, notes=notes)), 1, tuple(notes))


def _pillow(item: Image.Image) -> Picture:
    notes: list[str] = []
    try:
        with guarded(MAX_PIXELS), _LOCKS[id(item) % len(_LOCKS)]:
            item.load()  # a Pillow image reads its file only now, and not safely in two threads at once
            rgb = to_rgb(_upright(item), bits=16, inverted=False, notes=notes)
    except (MemoryError, Image.DecompressionBombError) as error:
        raise ImageError("<image>", "too-large", str(error) or "not enough memory to decode it") from error
    except UnsupportedPixelsError as error:
        raise ImageError("<image>", "unsupported", str(error)) from error
    except (OSError, ValueError, SyntaxError) as error:
        raise ImageError("<image>", "truncated", str(error)) from error
    return _picture(np.array(rgb), getattr(item, "n_frames", 1), tuple(notes))


def _upright(item: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(item)
    except Exception:  # a damaged EXIF block raises anything; the pixels are fine, as in the loader of files
        return item


def _picture(pixels: Rgb, frames: int, notes: tuple[str, ...]) -> Picture:
    return Picture(pixels, (pixels.shape[1], pixels.shape[0]), frames, "", notes)
