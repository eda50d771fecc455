"""The tables of `catalogue.db`, the steps between their versions, and how a connection is opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from lookalike.errors import CatalogueError, NotFoundError

APPLICATION_ID = 0x6C6F6F6B
"""`look` in ASCII, in SQLite's own header field: a catalogue is told from any other database."""
PAGE_BYTES = 16_384
"""Three 1280-d float32 vectors fill a page to 94 %; 4,096 would chain overflow pages, 8,192 would waste a third."""
WAL_LIMIT_BYTES = 64 << 20
BUSY_MS = 5_000
OLDEST_SQLITE = (3, 35)
"""The first with RETURNING and DROP COLUMN (March 2021)."""

# Step i turns version i into version i + 1; a step that has been released is never edited, only followed by another.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
        "CREATE TABLE roots (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path NOT NULL)",
        # A path that is not UTF-8 is a BLOB of its bytes, any other is TEXT; the column has no affinity on purpose.
        """CREATE TABLE items (
             id INTEGER PRIMARY KEY AUTOINCREMENT,
             root INTEGER NOT NULL REFERENCES roots(id),
             path NOT NULL,
             content BLOB,
             size INTEGER,
             mtime_ns INTEGER,
             width INTEGER,
             height INTEGER,
             frames INTEGER,
             revision INTEGER NOT NULL,
             UNIQUE (root, path)
           )""",
        "CREATE INDEX items_content ON items(content) WHERE content IS NOT NULL",
        """CREATE TABLE encoders (
             id INTEGER PRIMARY KEY,
             name TEXT NOT NULL,
             digest TEXT NOT NULL UNIQUE,
             dim INTEGER NOT NULL,
             dtype TEXT NOT NULL CHECK (dtype IN ('float32', 'float16')),
             card TEXT NOT NULL,
             revision INTEGER NOT NULL,
             token TEXT NOT NULL
           )""",
        """CREATE TABLE failures (
             root INTEGER NOT NULL REFERENCES roots(id),
             path NOT NULL,
             reason TEXT NOT NULL,
             detail TEXT NOT NULL,
             PRIMARY KEY (root, path)
           ) WITHOUT ROWID""",
        """CREATE TABLE columns (
             id INTEGER PRIMARY KEY AUTOINCREMENT,
             name TEXT NOT NULL UNIQUE,
             type TEXT NOT NULL CHECK (type IN ('text', 'integer', 'real', 'boolean')),
             indexed INTEGER NOT NULL DEFAULT 0
           )""",
    ),
    (
        # Which derived files belong to which state of the vectors; a row is the switch to a finished generation.
        """CREATE TABLE derived (
             encoder INTEGER NOT NULL REFERENCES encoders(id) ON DELETE CASCADE,
             kind TEXT NOT NULL,
             folder TEXT NOT NULL,
             revision INTEGER NOT NULL,
             token TEXT NOT NULL,
             details TEXT NOT NULL,
             PRIMARY KEY (encoder, kind)
           ) WITHOUT ROWID""",
    ),
)
VERSION = len(MIGRATIONS)


def vector_table(encoder: int) -> tuple[str, ...]:
    """Return the statements that make the vector table of one encoder: one row an item, in id order on disk."""
    return (
        f"""CREATE TABLE vectors_{encoder} (
              item INTEGER PRIMARY KEY REFERENCES items(id) ON DELETE CASCADE,
              revision INTEGER NOT NULL,
              data BLOB NOT NULL
            )""",
        # Also the cheap way to list the ids: the table itself holds kilobytes a row.
        f"CREATE INDEX vectors_{encoder}_revision ON vectors_{encoder}(revision)",
    )


def create(path: Path) -> sqlite3.Connection:
    """Make a new database file with the present schema and return a connection to it."""
    _require_sqlite()
    with translated(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        _settle(connection)
        with transaction(connection):
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _migrate(connection, 0)
    return connection


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """Open an existing database, upgrading an older schema where writing is allowed.

    Raises:
        NotFoundError: no such file.
        CatalogueError: not a catalogue, written by a newer version, or older and not writable.
    """
    if not path.is_file():
        raise NotFoundError(
            f"There is no catalogue at {str(path.parent)!r}.", hint="Make one with: lookalike index NAME.la FOLDER"
        )
    _require_sqlite()
    with translated(path):
        connection = _readonly(path) if readonly else _writable(path)
        try:
            _check(connection, path, readonly=readonly)
        except BaseException:
            connection.close()
            raise
    return connection


def _require_sqlite() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise CatalogueError(
            f"This Python was built with SQLite {sqlite3.sqlite_version}; a catalogue needs 3.35 or newer.",
            hint="Use a newer build of Python.",
        )


def _writable(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    _settle(connection)
    return connection


def _readonly(path: Path) -> sqlite3.Connection:
    """Open for reading; on a medium where not even the reader's shared memory can be made, as unchanging."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None,
                                 check_same_thread=False)  # fmt: skip
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        wal = path.with_name(path.name + "-wal")
        if os.access(path.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
            raise  # somebody may be writing: reading it as unchanging would show half of a change
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None,
                                     check_same_thread=False)  # fmt: skip
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return connection


def _settle(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")


def _check(connection: sqlite3.Connection, path: Path, *, readonly: bool) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise CatalogueError(f"{str(path)!r} is an SQLite database, but not a lookalike catalogue.")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise CatalogueError(
            f"{str(path.parent)!r} has catalogue format {version}; this version of lookalike reads up to {VERSION}.",
            hint="Upgrade lookalike: pip install -U lookalike",
        )
    if version == VERSION:
        return
    if readonly:
        raise CatalogueError(
            f"{str(path.parent)!r} has catalogue format {version}, older than {VERSION}, and cannot be upgraded "
            "because it is opened for reading only.",
            hint="Open it once with write access.",
        )
    with transaction(connection):  # another process may have upgraded it between the look and the lock
        _migrate(connection, connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for step in MIGRATIONS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold one write transaction: committed at the end of the block, rolled back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold one snapshot: every statement in the block sees the same revision. Nested blocks are one."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into one sentence that names the catalogue and the next step."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        message, hint = _explain(error)
        raise CatalogueError(f"The catalogue {str(path.parent)!r} {message}", hint=hint) from error


# SQLite's primary result code -> what happened, what to do
_CODES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "could not be written: the disk is full; nothing of the last step was stored.",
        "Free some space and run the same command again.",
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written: the folder or the file is read-only.",
        "Open it with readonly=True, or give this user write access to the folder.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened: the folder cannot be read or written.",
        "Check the permissions of the folder.",
    ),
    sqlite3.SQLITE_BUSY: (
        f"stayed locked by another process for {BUSY_MS // 1000} s.",
        "Wait for the other command to finish.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "is not an SQLite database.",
        "Point to a folder made by: lookalike index NAME.la FOLDER",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged.",
        "Restore a backup, or index the folder into a new catalogue; the pictures themselves are untouched.",
    ),
    sqlite3.SQLITE_IOERR: (
        "could not be read or written: the disk reported an error; nothing of the last step was stored.",
        "Check the disk and its free space, then run the same command again.",
    ),
}


def _explain(error: sqlite3.DatabaseError) -> tuple[str, str]:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    message, hint = _CODES.get(code, ("could not be used.", ""))
    return f"{message} (SQLite: {error})", hint
