"""Work spread over threads whose results come back in the order of the input, with a bound on what is in flight."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    threads: int,
    ahead: int,
    weigh: Callable[[R], int] = lambda result: 0,
    budget: int = 0,
) -> Generator[R]:
    """Yield `function(item)` in input order, at most `ahead` items begun and not yet yielded.

    Nor is more begun than keeps every thread busy while the results that wait for their turn, and those on their way
    at the weight of the last one, come to more than `budget`. `items` is read by the calling thread, never further
    than that. With one thread there is no pool: everything runs in the caller. When the consumer stops (an error,
    Ctrl-C, `close()`), what has not begun is dropped and the threads are joined before the exception goes on.

    >>> list(ordered_map(abs, [-3, -1, -2], threads=2, ahead=2))
    [3, 1, 2]
    """
    if threads == 1:
        yield from map(function, items)
        return
    scales = _Scales(function, weigh, threads, budget)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="lookalike-embed")
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(scales.work, item))
            while waiting and (len(waiting) >= ahead or scales.too_heavy(len(waiting))):
                yield scales.take(waiting.popleft().result())
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Scales(Generic[T, R]):
    """Weighs results as they are finished and as they leave."""

    def __init__(self, function: Callable[[T], R], weigh: Callable[[R], int], threads: int, budget: int) -> None:
        self._function = function
        self._weigh = weigh
        self._threads = threads
        self._budget = budget
        self._lock = threading.Lock()
        self._finished = 0
        self._weight = 0
        self._last: int | None = None

    def work(self, item: T) -> R:
        """Run the function in a pool thread."""
        result = self._function(item)
        with self._lock:
            self._finished += 1
            self._weight += self._weigh(result)
        return result

    def take(self, result: R) -> R:
        """Hand a result over; its weight no longer counts."""
        self._last = self._weigh(result)
        with self._lock:
            self._finished -= 1
            self._weight -= self._last
        return result

    def too_heavy(self, begun: int) -> bool:
        """Tell whether the `begun` results, finished or not, are more than may be held."""
        if begun <= self._threads:
            return False
        if self._last is None:  # nothing is known yet: do not fill the queue with what may be huge
            return begun > 2 * self._threads
        with self._lock:
            return self._weight + (begun - self._finished) * self._last > self._budget
