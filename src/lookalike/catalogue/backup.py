"""A copy of a catalogue, taken while it is in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.catalogue import database, indexes, schema
from lookalike.catalogue.aside import whole
from lookalike.errors import CatalogueError

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue


SETTINGS = "lookalike.toml"
"""What the user chose for this catalogue: not derived, so it is copied."""


def backup(catalogue: Catalogue, destination: str | os.PathLike[str]) -> Path:
    """Copy a catalogue as of one commit to a new folder, which is itself a catalogue; writers go on meanwhile.

    Derived files are not copied: the copy answers without them and makes them again at its next sync, the index with
    its settings. The folder appears whole or, when the copy is killed or fails, not at all.

    Raises:
        CatalogueError: the destination exists, lies in the catalogue itself, cannot be written, or the disk is full.
    """
    target = Path(destination)
    if catalogue.folder.resolve() in target.resolve().parents:
        raise CatalogueError(
            f"{str(target)!r} lies in the catalogue itself and would be lost with it.", hint="Choose another place."
        )
    if target.exists():
        raise CatalogueError(f"{str(target)!r} exists; a backup does not overwrite.", hint="Choose another name.")
    try:
        with whole(target) as out:
            out.mkdir()
            _copy(catalogue, out / database.NAME)
            settings = catalogue.folder / SETTINGS
            if settings.exists():
                shutil.copyfile(settings, out / SETTINGS)
    except OSError as error:
        raise CatalogueError(f"The backup {str(target)!r} cannot be written: {error.strerror}.") from error
    return target


def _copy(catalogue: Catalogue, file: Path) -> None:
    with schema.translated(file):
        copy = sqlite3.connect(file, isolation_level=None)
        try:
            with catalogue.database.reading() as connection:
                connection.backup(copy)  # one step: one snapshot, and a writer does not make it start again
            copy.execute("DELETE FROM derived WHERE kind <> ?", (indexes.KIND,))  # an index is remembered, not copied
            copy.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            copy.close()
    handle = os.open(file, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
