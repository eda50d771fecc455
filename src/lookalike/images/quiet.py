"""Pillow without its warnings, inside the threads that decode for us and nowhere else.

Pillow warns about odd EXIF, TIFF and MPO data through `warnings.warn`. Where warnings are errors that loses a readable
picture, and elsewhere it litters the terminal. `warnings.catch_warnings` swaps a list of the whole process and is not
safe in threads (its own documentation says so), therefore the few Pillow modules that warn see a stand-in that drops
a warning only while the calling thread is inside `quiet()`. Everybody else's use of Pillow warns as before.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

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


class _Warnings:
    """Stands for the module `warnings` inside Pillow; all but `warn` is handed through."""

    def warn(self, message: Any, category: Any = None, stacklevel: int = 1, **options: Any) -> None:
        if not getattr(_local, "depth", 0):
            warnings.warn(message, category, stacklevel=stacklevel + 1, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)


_stand_in = _Warnings()
_installed: list[bool] = []


def _install() -> None:
    with _lock:
        if not _installed:
            for name in WARNING_MODULES:
                module = importlib.import_module(name)
                if getattr(module, "warnings", None) is warnings:
                    module.warnings = _stand_in  # type: ignore[attr-defined]
            _installed.append(True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop Pillow's warnings in this thread while the block runs."""
    if not _installed:
        _install()
    _local.depth = getattr(_local, "depth", 0) + 1
    try:
        yield
    finally:
        _local.depth -= 1
