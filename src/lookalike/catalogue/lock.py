"""One writer at a time, and a name for the one who is told to wait."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from lookalike.errors import CatalogueError

_POLL_S = 0.02
_GRACE_S = 0.1  # somebody who only asks for the owner holds the lock for a moment


class Owner(NamedTuple):
    """Who holds the lock of a catalogue."""

    pid: int
    host: str
    purpose: str
    since: float
    """Seconds since the epoch."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.purpose}, for {duration(time.time() - self.since)})"


class WriterLock:
    """An exclusive lock on a file, held by the operating system, with its owner written inside.

    The system drops the lock when its process dies, however it dies: a stale lock cannot exist, only a stale name,
    which the next writer replaces. Within one process the lock is re-entrant per thread.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None
        self._depth = 0
        self._thread = threading.RLock()

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle is not None

    def acquire(self, purpose: str, *, wait: float = 0.0) -> None:
        """Take the lock, waiting at most `wait` seconds.

        Raises:
            CatalogueError: somebody else holds it (named, with its age), or the folder cannot be written.
        """
        deadline = time.monotonic() + max(wait, _GRACE_S)
        if not self._thread.acquire(timeout=max(wait, 0)):
            raise self._refusal()
        try:
            while self._handle is None and not self._try(purpose):
                if time.monotonic() >= deadline:
                    raise self._refusal()
                time.sleep(_POLL_S)
        except BaseException:
            self._thread.release()
            raise
        self._depth += 1

    def release(self) -> None:
        """Give back one acquisition."""
        self._depth -= 1
        if self._depth == 0 and self._handle is not None:
            handle, self._handle = self._handle, None
            os.ftruncate(handle, 0)
            os.close(handle)  # drops the system's lock
        self._thread.release()

    def owner(self) -> Owner | None:
        """Return who holds the lock now, or None where nobody does."""
        try:
            handle = os.open(self.path, os.O_RDWR)
        except OSError:
            return None
        try:
            if _lock(handle):
                return None
            return _read(handle)
        finally:
            os.close(handle)

    def _try(self, purpose: str) -> bool:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise CatalogueError(
                f"The catalogue {str(self.path.parent)!r} cannot be written: {error.strerror}.",
                hint="Open it with readonly=True, or give this user write access to the folder.",
            ) from error
        try:
            free = _lock(handle)
        except OSError as error:
            os.close(handle)
            raise CatalogueError(
                f"The file system of {str(self.path.parent)!r} cannot lock files: {error.strerror}.",
                hint="Keep catalogues on a local disk: two writers could damage this one.",
            ) from error
        if not free:
            os.close(handle)
            return False
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same, it only has no name
            _write(handle, Owner(os.getpid(), socket.gethostname(), purpose, time.time()))
        self._handle = handle
        return True

    def _refusal(self) -> CatalogueError:
        owner = _named(self.path)
        who = str(owner) if owner else "another writer"
        return CatalogueError(
            f"The catalogue {str(self.path.parent)!r} is being written by {who}.",
            hint="Reading works meanwhile; to write, wait for it to finish.",
        )

    def holding(self, purpose: str, *, wait: float = 0.0) -> _Holding:
        """Return a context manager that holds the lock."""
        return _Holding(self, purpose, wait)


class _Holding:
    def __init__(self, lock: WriterLock, purpose: str, wait: float) -> None:
        self._lock, self._purpose, self._wait = lock, purpose, wait

    def __enter__(self) -> WriterLock:
        self._lock.acquire(self._purpose, wait=self._wait)
        return self._lock

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def duration(seconds: float) -> str:
    """Write a length of time in its largest whole unit.

    >>> [duration(s) for s in (0.2, 59, 150, 7300, 200000)]
    ['0 s', '59 s', '2 min', '2 h', '2 days']
    """
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{int(seconds // size)} {unit}"
    return f"{max(int(seconds), 0)} s"


def _write(handle: int, owner: Owner) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps(owner._asdict()).encode())


def _named(path: Path) -> Owner | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _read(handle)
    finally:
        os.close(handle)


def _read(handle: int) -> Owner | None:
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        return Owner(**json.loads(os.read(handle, 4096)))
    except (OSError, ValueError, TypeError):
        return None  # between the lock and its name, or on a system that forbids reading a locked file


def _lock_posix(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_LOCK_BYTE = 1 << 30
"""Windows locks a range and forbids reading it: the range lies far behind the owner's name."""


def _lock_windows(handle: int) -> bool:
    import msvcrt

    os.lseek(handle, _LOCK_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return False
    return True


_lock: Callable[[int], bool] = _lock_windows if os.name == "nt" else _lock_posix
