"""Pillow as our decoding threads need it: silent, and with the caller's limit of pixels instead of a global one.

Pillow warns about odd EXIF, TIFF and MPO data through `warnings.warn`. Where warnings are errors that loses a readable
picture, and elsewhere it litters the terminal. It also refuses large pictures by `Image.MAX_IMAGE_PIXELS`, a setting
of the whole process. `warnings.catch_warnings` and setting that number both change what every other thread sees.
Therefore the few Pillow modules concerned get stand-ins that act only while the calling thread is inside
`guarded()`; everybody else's use of Pillow warns and refuses as before.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from PIL import Image

WARNING_MODULES = (
    "PIL.Image",
    "PIL.IcoImagePlugin",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.TiffImagePlugin",
)
"""Every Pillow module on our reading path that calls `warnings.warn` (a test looks for new ones)."""

_local = threading.local()
_lock = threading.Lock()
_installed = threading.Event()


class _Warnings:
    """Stands for the module `warnings` inside Pillow; all but `warn` is handed through."""

    def warn(self, message: Any, category: Any = None, stacklevel: int = 1, **options: Any) -> None:
        if _limit() is None:
            warnings.warn(message, category, stacklevel=stacklevel + 1, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)


def _limit() -> int | None:
    """Return the limit of pixels of this thread, None outside `guarded()`."""
    limit: int | None = getattr(_local, "limit", None)
    return limit


def _install() -> None:
    with _lock:
        if _installed.is_set():
            return
        for name in WARNING_MODULES:
            module = importlib.import_module(name)
            if getattr(module, "warnings", None) is warnings:
                module.warnings = _Warnings()  # type: ignore[attr-defined]
        theirs = getattr(Image, "_decompression_bomb_check", None)
        if theirs is not None:

            def check(size: tuple[int, int], **options: Any) -> None:
                limit = _limit()
                if limit is None:
                    theirs(size, **options)
                elif size[0] * size[1] > limit:
                    raise Image.DecompressionBombError(too_large(size, limit))

            Image._decompression_bomb_check = check
        _installed.set()


def too_large(size: tuple[int, int], limit: int) -> str:
    """Say how many pixels there are and how many are allowed.

    >>> too_large((30000, 30000), 200_000_000)
    '30000 x 30000 is 900,000,000 pixels, the limit is 200,000,000'
    """
    return f"{size[0]} x {size[1]} is {size[0] * size[1]:,} pixels, the limit is {limit:,}"


@contextlib.contextmanager
def guarded(max_pixels: int) -> Iterator[None]:
    """Drop Pillow's warnings and apply `max_pixels`, in this thread, while the block runs."""
    if not _installed.is_set():
        _install()
    before = _limit()
    _local.limit = max_pixels
    try:
        yield
    finally:
        _local.limit = before
