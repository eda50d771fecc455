"""How long to wait for an engine, and how often to ask again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lookalike.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Time-outs and retries of a client.

    Raises:
        InputError: a time that is not above 0, or fewer than one attempt.
    """

    connect_s: float = 10.0
    """The longest to wait for a connection."""
    answer_s: float = 60.0
    """The longest one search or one chunk of writing may take; building an index may take longer."""
    attempts: int = 5
    """How often a step is tried while the engine is away; every step can be repeated without harm."""
    first_wait_s: float = 0.2
    """Before the second attempt; each further wait is twice as long, up to `longest_wait_s`, give or take a quarter."""
    longest_wait_s: float = 5.0

    def __post_init__(self) -> None:
        for name in ("connect_s", "answer_s", "first_wait_s", "longest_wait_s"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}={getattr(self, name)} must be above 0 seconds.")
        if self.attempts < 1:
            raise InputError(f"attempts={self.attempts} must be at least 1.")


PATIENCE = Patience()


def retrying(
    step: Callable[[], T],
    *,
    transient: Callable[[Exception], bool],
    patience: Patience,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return what `step` returns, asking again with growing waits while its errors are transient.

    >>> tried = []
    >>> def step():
    ...     tried.append(1)
    ...     if len(tried) < 3:
    ...         raise ConnectionError
    ...     return len(tried)
    >>> retrying(step, transient=lambda error: True, patience=Patience(), sleep=lambda seconds: None)
    3
    """
    wait = patience.first_wait_s
    for _ in range(patience.attempts - 1):
        try:
            return step()
        except Exception as error:
            if not transient(error):
                raise
        sleep(wait * random.uniform(0.75, 1.25))  # clients that fell together do not all come back together
        wait = min(2 * wait, patience.longest_wait_s)
    return step()
