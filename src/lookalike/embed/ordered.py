"""Work spread over threads whose results come back in the order of the input, with a bound on what is in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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

    Nothing more is begun either while results that wait for their turn weigh more than `budget`. `items` is read by
    the calling thread, never further than that. With one thread there is no pool: everything runs in the caller.
    When the consumer stops (an error, Ctrl-C, `close()`), what has not begun is dropped and the threads are joined
    before the exception goes on.

    >>> list(ordered_map(abs, [-3, -1, -2], threads=2, ahead=2))
    [3, 1, 2]
    """
    if threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="lookalike-embed")
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            while waiting and (len(waiting) >= ahead or _held(waiting, weigh) > budget):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _held(waiting: Iterable[Future[R]], weigh: Callable[[R], int]) -> int:
    return sum(weigh(future.result()) for future in waiting if future.done() and not future.exception())
