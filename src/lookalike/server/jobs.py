"""Long work in threads: one of a kind at a time, watched by events, ended by asking."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from lookalike.errors import LookalikeError
from lookalike.server.problems import RefusedError, problem_of
from lookalike.server.schemas.base import Problem
from lookalike.server.schemas.jobs import Job, JobEvent, JobKind, JobProgress, JobState

_KEPT = 50
"""Finished jobs remembered; what they saved stays on the disk."""
_EVENTS = 2_000
"""Events of a job remembered; later watchers get the last ones."""
_BEAT_S = 10.0
"""A watcher hears something this often, so that a dead connection is noticed."""
_log = logging.getLogger("lookalike.server")


class Cancelled(Exception):  # noqa: N818 - no error
    """Raised inside a job that was asked to end."""


class Work:
    """What the function of a job sees of it."""

    def __init__(self, watch: Watched) -> None:
        self._watch = watch

    def check(self) -> None:
        """End the job here where that was asked for."""
        if self._watch.cancel.is_set():
            raise Cancelled

    def cancelled(self) -> bool:
        """Tell whether the job was asked to end."""
        return self._watch.cancel.is_set()

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Say how far it is; ends the job where that was asked for."""
        self.check()
        self._watch.note(JobProgress(done=done, total=total, text=text))

    def epoch(self, record: dict[str, Any]) -> None:
        """Publish one epoch of training."""
        self._watch.publish("epoch", data=record)


class Watched:
    """A job, its events, and those who wait for the next one."""

    def __init__(self, kind: JobKind, request: dict[str, Any], command: str) -> None:
        self.id, self.kind, self.request, self.command = secrets.token_hex(8), kind, request, command
        self.state: JobState = "running"
        self.cancel = threading.Event()
        self.abandoned = False
        """The server is stopping: watchers are let go at once."""
        self.thread: threading.Thread | None = None
        self.result: dict[str, Any] | None = None
        self.problem: Problem | None = None
        self._progress = JobProgress(done=0, total=None, text="started")
        self._events: list[JobEvent] = []
        self._number = 0
        self._changed = threading.Lock()
        self._started, self._ended = time.monotonic(), 0.0
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def over(self) -> bool:
        """Whether its thread has nothing left to do."""
        return self.state in ("done", "failed", "cancelled")

    def note(self, progress: JobProgress) -> None:
        """Take down how far it is."""
        self._progress = progress
        self.publish("progress")

    def publish(self, event: Any, *, data: dict[str, Any] | None = None) -> None:
        """Add an event and wake the watchers."""
        with self._changed:
            self._number += 1
            self._events.append(JobEvent(number=self._number, event=event, progress=self._progress, data=data))
            del self._events[:-_EVENTS]
        self.ring()

    def ring(self) -> None:
        """Wake the watchers."""
        with self._changed:
            waiting = list(self._waiting)
        for loop, bell in waiting:
            with contextlib.suppress(RuntimeError):  # the loop has ended with its watcher
                loop.call_soon_threadsafe(bell.set)

    def finish(self, state: JobState, result: dict[str, Any] | None = None, problem: Problem | None = None) -> None:
        """Note the end."""
        with self._changed:
            self.result, self.problem, self._ended = result, problem, time.monotonic()
            self.state = state
        data = result if problem is None else problem.model_dump(mode="json")
        self.publish(state, data=data)

    def ask_to_end(self) -> None:
        """Ask it to end; one that is over stays as it is."""
        with self._changed:
            if self.state == "running":
                self.state = "cancelling"
                self.cancel.set()

    def show(self) -> Job:
        """Return the job as it is now."""
        end = self._ended or time.monotonic()
        return Job(
            id=self.id, kind=self.kind, state=self.state, progress=self._progress,
            seconds=round(end - self._started, 3), request=self.request, result=self.result, problem=self.problem,
            command=self.command,
        )  # fmt: skip

    async def events(self, after: int) -> AsyncIterator[JobEvent | None]:
        """Yield the events after a number as they come, until the last; None when nothing has come for a while."""
        bell = asyncio.Event()
        entry = (asyncio.get_running_loop(), bell)
        with self._changed:
            self._waiting.add(entry)
        try:
            while True:
                bell.clear()
                with self._changed:
                    fresh, over = [each for each in self._events if each.number > after], self.over
                for event in fresh:
                    after = event.number
                    yield event
                if (over or self.abandoned) and not fresh:
                    return
                if not fresh:
                    try:
                        await asyncio.wait_for(bell.wait(), _BEAT_S)
                    except TimeoutError:
                        yield None
        finally:
            with self._changed:
                self._waiting.discard(entry)


class Jobs:
    """All jobs of this server."""

    def __init__(self) -> None:
        self._jobs: dict[str, Watched] = {}
        self._guard = threading.Lock()
        self._closed = False

    def start(
        self, kind: JobKind, request: Mapping[str, Any], command: str, function: Callable[[Work], dict[str, Any]]
    ) -> Watched:
        """Run a function in a thread.

        Raises:
            RefusedError: another job of this kind is running (named), or the server is stopping.
        """
        with self._guard:
            if self._closed:
                raise RefusedError(503, "The server is stopping.")
            busy = next((job for job in self._jobs.values() if job.kind == kind and not job.over), None)
            if busy is not None:
                raise RefusedError(
                    409, f"Another {kind} job is running.", hint=f"Wait for it, or DELETE /api/v1/jobs/{busy.id}.",
                    job=busy.id,
                )  # fmt: skip
            watched = Watched(kind, dict(request), command)
            self._jobs[watched.id] = watched
            self._forget()
            name = f"lookalike-{kind}-{watched.id}"
            watched.thread = threading.Thread(target=_run, args=(watched, function), name=name, daemon=True)
            watched.thread.start()
            return watched

    def find(self, number: str) -> Watched:
        """Return a job.

        Raises:
            RefusedError: none of this number (404).
        """
        with self._guard:
            if number not in self._jobs:
                raise RefusedError(404, f"There is no job {number!r}.", hint="GET /api/v1/jobs lists those there are.")
            return self._jobs[number]

    def cancel(self, number: str) -> Watched:
        """Ask a job to end; one that is over stays as it is."""
        watched = self.find(number)
        watched.ask_to_end()
        return watched

    def all(self) -> list[Watched]:
        """Return the jobs, newest first."""
        with self._guard:
            return list(self._jobs.values())[::-1]

    def stop(self) -> None:
        """Start no more, ask every job to end, and let the watchers go."""
        with self._guard:
            self._closed = True
            for job in self._jobs.values():
                job.abandoned = True
                if not job.over:
                    job.cancel.set()
                job.ring()

    def close(self, seconds: float) -> None:
        """Stop, and wait so long for all jobs together."""
        self.stop()
        with self._guard:
            running = [job for job in self._jobs.values() if not job.over]
        deadline = time.monotonic() + seconds
        for job in running:
            if job.thread is not None:
                job.thread.join(max(0.0, deadline - time.monotonic()))

    def _forget(self) -> None:
        over = [number for number, job in self._jobs.items() if job.over]
        for number in over[: max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[number]


def _run(watched: Watched, function: Callable[[Work], dict[str, Any]]) -> None:
    try:
        result = function(Work(watched))
        # What a sync has committed by then is its result, though it was asked to end.
        watched.finish("cancelled" if result.get("cancelled") else "done", result=result)
    except Cancelled:
        watched.finish("cancelled")
    except LookalikeError as error:
        watched.finish("failed", problem=problem_of(error))
    except Exception as error:
        _log.error("the %s job failed", watched.kind, exc_info=error)
        problem = Problem(
            title="InternalError", status=500, detail=f"{type(error).__name__}: {error}",
            hint="This is a fault of lookalike's own: please report it.",
        )  # fmt: skip
        watched.finish("failed", problem=problem)
