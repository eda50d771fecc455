"""Derived files, generation by generation: written aside, then switched to by one row of the database."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.catalogue.cards import Stamp, StoredEncoder
from lookalike.catalogue.database import Database
from lookalike.errors import CatalogueError

FOLDER = "derived"


@dataclass(frozen=True)
class Generation:
    """One finished set of derived files, and the state of the vectors they were made from."""

    folder: Path
    stamp: Stamp
    details: Mapping[str, Any]


def current(database: Database, encoder: StoredEncoder, kind: str) -> Generation | None:
    """Return the generation in use, or None where there is none or its files were deleted."""
    made = recorded(database, encoder, kind)
    return made if made is not None and made.folder.is_dir() else None


def recorded(database: Database, encoder: StoredEncoder, kind: str) -> Generation | None:
    """Return the generation the database names, whether its files are still there or not."""
    with database.reading() as connection:
        row = connection.execute(
            "SELECT folder, revision, token, details FROM derived WHERE encoder = ? AND kind = ?", (encoder.id, kind)
        ).fetchone()
    if row is None:
        return None
    return Generation(database.folder / FOLDER / row[0], Stamp(row[1], row[2]), json.loads(row[3]))


def prepare(
    database: Database,
    encoder: StoredEncoder,
    kind: str,
    stamp: Stamp,
    fill: Callable[[Path], Mapping[str, Any]],
) -> Generation:
    """Let `fill` write the files of a new generation into an empty folder; `switch` puts it to use.

    `fill` returns the details to keep. Until the switch, and whatever goes wrong before it, the old generation answers.
    The caller holds the writer's lock.

    Raises:
        CatalogueError: the disk is full or the folder cannot be written; the old generation is still in use.
    """
    folder = database.folder / FOLDER / f"{kind}-{encoder.id}-{stamp.revision}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True)
        details = dict(fill(folder))
        _flush(folder)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CatalogueError(
            f"The {kind} file of {str(database.folder)!r} could not be written: {_reason(error)}.",
            hint="What was there before is unchanged and still answers.",
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Generation(folder, stamp, details)


def switch(database: Database, encoder: StoredEncoder, kind: str, made: Generation) -> Generation:
    """Put a prepared generation to use by one row of the database, and delete what no row names."""
    with database.commit(revise=False) as connection:
        connection.execute(
            "INSERT OR REPLACE INTO derived VALUES (?, ?, ?, ?, ?, ?)",
            (encoder.id, kind, made.folder.name, made.stamp.revision, made.stamp.token, json.dumps(made.details)),
        )
    collect(database)
    return made


def forget(database: Database, encoder: StoredEncoder, kind: str) -> None:
    """Stop using a generation and delete its files."""
    with database.commit(revise=False) as connection:
        connection.execute("DELETE FROM derived WHERE encoder = ? AND kind = ?", (encoder.id, kind))
    collect(database)


def collect(database: Database) -> list[str]:
    """Delete the folders no row names: old generations, and what a killed build left. Return their names.

    A reader that still maps an old file keeps it until it lets go; where the system forbids deleting a mapped file,
    the next collection does it.
    """
    with database.reading() as connection:
        used = {row[0] for row in connection.execute("SELECT folder FROM derived")}
    parent = database.folder / FOLDER
    with contextlib.suppress(FileNotFoundError):
        unused = [entry for entry in parent.iterdir() if entry.name not in used]
        for entry in unused:
            shutil.rmtree(entry, ignore_errors=True)
        return [entry.name for entry in unused]
    return []


def _flush(folder: Path) -> None:
    """Put the files on the disk before the database names them."""
    for path in [*folder.iterdir(), folder]:
        if path.is_dir() and os.name == "nt":
            continue  # Windows cannot open a folder
        handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _reason(error: OSError) -> str:
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error.strerror or error)
