"""One catalogue's database: a connection a thread, one writer, and a revision for every commit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from lookalike.catalogue import schema
from lookalike.catalogue.lock import WriterLock
from lookalike.errors import CatalogueError

NAME = "catalogue.db"
LOCK = "catalogue.lock"

# Free pages are given back to the disk once they are this share of the file, and at least this many.
_FREE_SHARE = 0.2
_FREE_PAGES = 64


class Database:
    """Reading through snapshots, writing through `writing` (the lock) and `commit` (a transaction, a new revision)."""

    def __init__(self, folder: Path, *, readonly: bool) -> None:
        self.folder = folder
        self.file = folder / NAME
        self.readonly = readonly
        self.lock = WriterLock(folder / LOCK)
        self._local = threading.local()
        self._all: dict[threading.Thread, sqlite3.Connection] = {}
        self._guard = threading.Lock()
        self._closed = False
        self._connection()  # refuses at once what cannot be opened

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise CatalogueError(f"The catalogue {str(self.folder)!r} is closed.")
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = schema.connect(self.file, readonly=self.readonly)
            self._local.connection = connection
            with self._guard:
                for thread in [thread for thread in self._all if not thread.is_alive()]:
                    self._all.pop(thread).close()
                self._all[threading.current_thread()] = connection
        return connection

    def close(self) -> None:
        """Close the connections of every thread; the object cannot be used afterwards."""
        self._closed = True
        with self._guard:
            for connection in self._all.values():
                connection.close()
            self._all.clear()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hold one snapshot: every statement in the block sees the same revision."""
        connection = self._connection()
        with schema.translated(self.file), schema.reading(connection):
            yield connection

    @contextlib.contextmanager
    def writing(self, purpose: str, *, wait: float = 0.0) -> Iterator[None]:
        """Be the one writer for the length of the block; commits happen inside, one or many.

        Raises:
            CatalogueError: opened for reading, or somebody else is writing (named, with the age of the lock).
        """
        if self.readonly:
            raise CatalogueError(
                f"The catalogue {str(self.folder)!r} is open for reading only.", hint="Open it with write access."
            )
        with self.lock.holding(purpose, wait=wait):
            yield

    @contextlib.contextmanager
    def commit(self, *, revise: bool = True) -> Iterator[sqlite3.Connection]:
        """Write in one transaction that also bumps the revision; a commit inside a commit is part of it."""
        connection = self._connection()
        if not self.lock.held:
            raise CatalogueError("A commit needs the writer's lock.")  # a mistake of ours, not of the user
        with schema.translated(self.file):
            if connection.in_transaction:
                yield connection
                return
            with schema.transaction(connection):
                if revise:
                    connection.execute("UPDATE settings SET value = value + 1 WHERE name = 'revision'")
                yield connection

    def revision(self) -> int:
        """Return the revision of the last commit (of the commit in progress, inside one)."""
        with self.reading() as connection:
            return int(setting(connection, "revision"))

    def settle(self) -> None:
        """Give free pages back to the disk and fold the write-ahead log into the database; never fails a writer."""
        connection = self._connection()
        with contextlib.suppress(sqlite3.OperationalError):  # a long reader or a full disk: the next writer settles
            free, pages = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count")
            )
            if free > max(_FREE_PAGES, _FREE_SHARE * pages):
                # Each step frees one page and returns a row without columns, where execute() stops; a script goes on.
                connection.executescript("PRAGMA incremental_vacuum")
            connection.execute("PRAGMA busy_timeout = 100")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {schema.BUSY_MS}")


def setting(connection: sqlite3.Connection, name: str) -> str | int:
    """Return one setting."""
    row = connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise CatalogueError(f"The catalogue has no setting {name!r}: it is damaged.")
    value: str | int = row[0]
    return value
