"""How much is computed at the same time, how much waits, and how long."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lookalike.server.problems import RefusedError

T = TypeVar("T")


class Gate:
    """Runs functions in a few threads of its own; a bounded number waits, none for ever."""

    def __init__(self, parallel: int, waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(parallel, thread_name_prefix="lookalike-answer")
        self._room = parallel + waiting
        self._seconds = seconds
        self._inside = 0
        self._guard = threading.Lock()

    async def run(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Return what the function returns.

        Raises:
            RefusedError: too many are waiting (503), or it took too long (504); its thread is busy until it ends.
        """
        with self._guard:
            if self._inside >= self._room:
                raise RefusedError(
                    503, f"{self._inside} requests are being answered already.", hint="Ask again in a few seconds."
                )
            self._inside += 1
        future = self._pool.submit(functools.partial(function, *args, **options))
        future.add_done_callback(lambda _: self._leave())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            raise RefusedError(
                504, f"The answer took longer than {self._seconds:g} s.", hint="Ask for less, or build an index."
            ) from None

    def _leave(self) -> None:
        with self._guard:
            self._inside -= 1

    def close(self) -> None:
        """Drop what waits and let what runs end."""
        self._pool.shutdown(wait=True, cancel_futures=True)
