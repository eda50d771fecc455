"""Approximate indexes over a catalogue: built from the vector file, switched whole, current without a rebuild."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.catalogue import cards, generations, view
from lookalike.catalogue.cards import Stamp, StoredEncoder
from lookalike.catalogue.database import Database
from lookalike.catalogue.generations import Generation
from lookalike.catalogue.view import View
from lookalike.errors import CatalogueError, InputError, LookalikeError, NotFoundError
from lookalike.index import saved
from lookalike.index.ann import DEAD_SHARE, TAIL_ROWS, TAIL_SHARE, AnnIndex, build
from lookalike.index.fresh import Changes
from lookalike.index.kinds import Settings, settings_dict, settings_for
from lookalike.index.neighbours import Metric

KIND = "index"
_VECTORS = "vectors.npy"
_log = logging.getLogger("lookalike")


@dataclass(frozen=True)
class IndexInfo:
    """What is known of the index in use."""

    kind: str
    settings: Mapping[str, Any]
    overlap: Mapping[str, Any] | None
    """Overlap with exact search measured at build, with its interval."""
    notices: tuple[str, ...]
    items: int
    """Rows it was built over."""
    revision: int
    """Revision of the vectors it was built from; newer ones are searched exactly beside it."""
    bytes: int
    """Size of its own files, without the vectors it shares."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**vars(self), "notices": list(self.notices)}


def make(
    database: Database,
    encoder: StoredEncoder,
    metric: Metric,
    settings: Settings,
    *,
    seed: int,
    progress: Callable[[int], None] | None,
) -> None:
    """Build an index over the present vectors and switch to it; the caller holds the writer's lock.

    Raises:
        InputError: there is nothing to index, or the settings are impossible for these vectors.
        CatalogueError: it cannot be written; the index that was in use still answers.
    """
    source = _vector_file(database, encoder)
    files = view.mapped(source, encoder.card.dim)
    if files is None:
        raise CatalogueError(f"The vector file in {source.folder} cannot be read.", hint="Delete it and try again.")
    ids, vectors = files
    if not len(ids):
        raise InputError("There is nothing to index: the catalogue has no items with vectors of this encoder.")

    def fill(folder: Path) -> Mapping[str, Any]:
        # The rows of an index mean nothing without the vectors they were built from: it keeps them by a second name.
        _share(source.folder / _VECTORS, folder / _VECTORS)
        index = build(vectors, ids, kind=settings, metric=metric, seed=seed, progress=progress)
        _save(index, folder)
        return {
            "kind": index.kind,
            "settings": settings_dict(index.settings),
            "asked": settings_dict(settings),
            "seed": seed,
            "overlap": None if index.overlap is None else vars(index.overlap),
            "notices": list(index.notices),
            "items": len(ids),
            "bytes": sum(path.stat().st_size for path in (folder / KIND).rglob("*") if path.is_file()),
        }

    generations.switch(database, encoder, KIND, generations.prepare(database, encoder, KIND, source.stamp, fill))


def info(database: Database, encoder: StoredEncoder) -> IndexInfo | None:
    """Describe the index in use, or None where search is exact."""
    made = generations.current(database, encoder, KIND)
    if made is None:
        return None
    details = made.details
    return IndexInfo(
        kind=details["kind"],
        settings=details["settings"],
        overlap=details["overlap"],
        notices=tuple(details["notices"]),
        items=details["items"],
        revision=made.stamp.revision,
        bytes=details["bytes"],
    )


@dataclass(frozen=True)
class Open:
    """An index as it answers at one state of the vectors."""

    folder: Path
    stamp: Stamp
    index: AnnIndex


def opened(
    database: Database, connection: sqlite3.Connection, encoder: StoredEncoder, present: View, last: Open | None
) -> Open | None:
    """Return the index in use with everything newer than it, or None where there is none that can be read."""
    made = generations.current(database, encoder, KIND)
    if made is None:
        return None
    if last is not None and last.folder == made.folder:
        if last.stamp == present.stamp:
            return last
        base = last.index
    else:
        try:
            base = saved.load(made.folder / KIND)
        except (CatalogueError, NotFoundError) as error:
            _log.warning("%s Searching exactly meanwhile.", error.message)
            return None
    changes = Changes.none(encoder.card.dim)
    if made.stamp != present.stamp:
        since = made.stamp.revision
        dead = view.gone(connection, encoder, base.indexed_ids, since)
        fresh = view.changed(connection, encoder, since)
        changes = Changes(dead if dead.any() else None, fresh, present.rows(fresh))
    return Open(made.folder, present.stamp, _with(base, changes))


def _with(base: AnnIndex, changes: Changes) -> AnnIndex:
    return AnnIndex(
        base.gallery,
        base.indexed_ids,
        base.structure,
        base.settings,
        asked=base.asked,
        seed=base.seed,
        notices=base.notices,
        overlap=base.overlap,
        changes=changes,
    )


def refresh(database: Database, encoder: StoredEncoder, metric: Metric) -> bool:
    """Rebuild the index where it is worn, damaged or deleted; a failure costs speed, not answers, and is logged."""
    made = generations.recorded(database, encoder, KIND)
    if made is None or (_readable(made) and not _worn(database, encoder, made)):
        return False
    settings = settings_for(made.details["kind"], made.details["asked"])
    try:
        make(database, encoder, metric, settings, seed=made.details["seed"], progress=None)
    except (CatalogueError, InputError) as error:
        _log.warning("%s", error)
        return False
    return True


def _readable(made: Generation) -> bool:
    try:
        saved.load(made.folder / KIND, mapped=True)
    except (CatalogueError, NotFoundError):
        return False
    return True


def _worn(database: Database, encoder: StoredEncoder, made: Generation) -> bool:
    """Whether so much has changed that searching beside the index costs more than building it."""
    with database.reading() as connection:
        if made.stamp == cards.stamp(connection, encoder):
            return False
        live, fresh = view.counts(connection, encoder, made.stamp.revision)
    size = made.details["items"]
    gone = max(size + fresh - live, 0)
    return bool(fresh > TAIL_ROWS + TAIL_SHARE * size or gone > DEAD_SHARE * size)


def _vector_file(database: Database, encoder: StoredEncoder) -> Generation:
    """Return the vector file of the present vectors, written where it is missing or older."""
    made = generations.current(database, encoder, view.KIND)
    with database.reading() as connection:
        present = cards.stamp(connection, encoder)
    if made is not None and made.stamp == present and view.mapped(made, encoder.card.dim) is not None:
        return made
    return view.remake(database, encoder)


def _save(index: AnnIndex, folder: Path) -> None:
    try:
        saved.save(index, folder / KIND, vectors_file=folder / _VECTORS)
    except RuntimeError as error:
        full = os.strerror(errno.ENOSPC) in str(error)  # FAISS has one exception for everything
        if isinstance(error, LookalikeError) or not full:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def _share(source: Path, target: Path) -> None:
    try:
        os.link(source, target)  # no second copy on the disk
    except OSError:
        shutil.copyfile(source, target)  # a file system without links
