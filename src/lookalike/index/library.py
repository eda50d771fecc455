"""FAISS, loaded at first use; untyped, because its stubs describe the C++ classes and not the Python layer."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def faiss() -> Any:
    """Return the module."""
    import faiss as module

    return module


class single_thread:  # noqa: N801  # used as a statement, like contextlib.suppress
    """Hold FAISS to one thread in the calling thread, and give it back what it had.

    (A class, because a generator-based context manager costs more than preparing a query.)
    """

    __slots__ = ("before",)

    def __enter__(self) -> None:
        library = faiss()
        self.before = library.omp_get_max_threads()
        if self.before != 1:
            library.omp_set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        if self.before != 1:
            faiss().omp_set_num_threads(self.before)
