"""FAISS, loaded at first use; untyped, because its stubs describe the C++ classes and not the Python layer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def faiss() -> Any:
    """Return the module."""
    import faiss as module

    return module


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Hold FAISS to one thread in the calling thread, and give it back what it had."""
    library = faiss()
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(1)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)
