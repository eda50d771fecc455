"""One number of threads for decoding, BLAS and search."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

from lookalike.errors import InputError


def usable() -> int:
    """Return the number of processors this process may use (affinity, not the machine's total).

    >>> usable() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve(threads: int | None) -> int:
    """Return `threads`, or all usable processors where it is None.

    Raises:
        InputError: fewer than one.
    """
    if threads is None:
        return usable()
    if threads < 1:
        raise InputError(f"threads={threads}: at least one thread is needed.")
    return threads


@contextlib.contextmanager
def blas(threads: int | None) -> Iterator[int]:
    """Hold BLAS and OpenMP to `threads` (all usable processors where None) inside the block."""
    count = resolve(threads)
    with _controller(tuple(name for name in _BRING_POOLS if name in sys.modules)).limit(limits=count):
        yield count


_BRING_POOLS = ("numpy", "scipy", "faiss", "torch", "cv2", "sklearn")  # libraries that bring thread pools of their own


@functools.lru_cache(maxsize=8)
def _controller(_loaded: tuple[str, ...]) -> Any:
    """Return what limits the pools loaded so far; looking for them takes 0.8 ms, so only when there may be new ones."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()
