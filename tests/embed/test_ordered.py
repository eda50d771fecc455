"""Threads change when work is done, never the order of what comes out, and never more than a bound is in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.embed.ordered import ordered_map

PREFIX = "lookalike-embed"


def pool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(PREFIX)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 4), st.integers(1, 9))
def test_results_come_in_input_order_however_long_each_takes(waits: list[int], threads: int, ahead: int) -> None:
    def slow(pair: tuple[int, int]) -> int:
        time.sleep(pair[1] / 2000)
        return pair[0]

    assert list(ordered_map(slow, enumerate(waits), threads=threads, ahead=ahead)) == list(range(len(waits)))


@pytest.mark.parametrize(("threads", "ahead"), [(1, 5), (2, 1), (2, 5), (4, 16)])
def test_no_more_than_ahead_items_are_taken_before_one_is_yielded(threads: int, ahead: int) -> None:
    taken = yielded = 0
    excess = []

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(60):
            taken += 1
            excess.append(taken - yielded)
            yield number

    for _ in ordered_map(abs, items(), threads=threads, ahead=ahead):
        yielded += 1
    assert max(excess) <= ahead
    assert yielded == 60


def test_heavy_results_stop_the_run_ahead() -> None:
    taken = yielded = 0
    excess = []

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(40):
            taken += 1
            excess.append(taken - yielded)
            yield number

    for _ in ordered_map(abs, items(), threads=2, ahead=30, weigh=lambda result: 10, budget=45):
        yielded += 1
    assert yielded == 40
    assert max(excess) == 5  # four results of 10 fit into 45, the fifth does not; the first four come unseen


def test_results_heavier_than_the_budget_still_keep_every_thread_busy() -> None:
    both = threading.Barrier(2, timeout=30)

    def together(number: int) -> int:
        both.wait()  # broken, and an error, unless two run at once
        return number

    done = ordered_map(together, range(12), threads=2, ahead=30, weigh=lambda result: 1000, budget=1)
    assert list(done) == list(range(12))


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_goes_to_the_caller_and_every_thread_is_joined(threads: int) -> None:
    def fails(number: int) -> int:
        if number == 5:
            raise KeyError("five")
        return number

    out = []
    with pytest.raises(KeyError, match="five"):
        out.extend(ordered_map(fails, range(1000), threads=threads, ahead=8))
    assert pool_threads() == []


def test_closing_early_drops_what_has_not_begun_and_joins() -> None:
    begun = []

    def note(number: int) -> int:
        begun.append(number)
        time.sleep(0.005)
        return number

    results = ordered_map(note, range(1000), threads=2, ahead=50)
    assert next(results) == 0
    results.close()
    assert pool_threads() == []
    assert len(begun) < 60


def test_a_keyboard_interrupt_while_waiting_joins_the_threads() -> None:
    def items() -> Iterator[int]:
        yield from range(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(abs, items(), threads=2, ahead=4))
    assert pool_threads() == []


def test_one_thread_means_the_callers_own() -> None:
    names = set(ordered_map(lambda _: threading.current_thread().name, range(5), threads=1, ahead=4))
    assert names == {threading.current_thread().name}
