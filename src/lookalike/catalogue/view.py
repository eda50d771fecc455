"""The vectors of one encoder in one state: a mapped file of most of them, and what has changed since it was written."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Ids, Mask, Vectors
from lookalike.catalogue import cards, generations, items
from lookalike.catalogue.cards import Stamp, StoredEncoder
from lookalike.catalogue.database import Database
from lookalike.errors import CatalogueError, InputError
from lookalike.index.ann import AnnIndex
from lookalike.index.fresh import Changes
from lookalike.index.kinds import settings_for
from lookalike.index.neighbours import Metric
from lookalike.index.scan import NEARLY_ONE, Gallery, length_range

KIND = "vectors"
_ROWS = 4_096
_log = logging.getLogger("lookalike")

# The file is written again once this share of it (and at least this many rows) is out of date: a changed row costs
# fifty rows of writing in the long run, and a search never looks through more than these beside the file.
STALE_SHARE = 0.02
STALE_ROWS = 64


@dataclass(frozen=True)
class Part:
    """Some vectors with their ids, ready to be scanned."""

    ids: Ids
    """(n,) ascending."""
    gallery: Gallery
    """(n, d) vectors."""
    dead: Mask
    """(n,) rows deleted or replaced since."""

    @property
    def vectors(self) -> Vectors:
        """(n, d)."""
        return self.gallery.vectors

    @classmethod
    def of(cls, ids: Ids, vectors: Vectors, metric: Metric) -> Part:
        """Make a part whose rows are all live."""
        return cls(ids, Gallery.of(vectors, metric), np.zeros(len(ids), np.bool_))


@dataclass(frozen=True)
class View:
    """Live vectors: the rows of `base` that are not dead, and the `tail`, which is newer."""

    stamp: Stamp
    base: Part
    """Mapped from a file, or all there is, read from the database."""
    tail: Part
    """None of its ids is a live row of the base."""
    made: Stamp | None
    """State of the mapped file; None where the base was read from the database."""

    @cached_property
    def flat(self) -> AnnIndex:
        """Exact search over the live rows."""
        changes = Changes(self.base.dead if self.base.dead.any() else None, self.tail.ids, self.tail.vectors)
        return AnnIndex(self.base.gallery, self.base.ids, None, settings_for("flat"), changes=changes)

    @property
    def ids(self) -> Ids:
        """Ids of the live items, ascending."""
        if not len(self.tail.ids) and not self.base.dead.any():
            return self.base.ids
        return np.sort(np.concatenate([self.base.ids[~self.base.dead], self.tail.ids]))

    def __len__(self) -> int:
        return len(self.base.ids) - int(self.base.dead.sum()) + len(self.tail.ids)

    def rows(self, ids: Ids) -> Vectors:
        """Return (n, d) vectors of these items, in this order.

        Raises:
            InputError: an id that is not live.
        """
        out = np.empty((len(ids), self.base.vectors.shape[1]), dtype=np.float32)
        found = np.zeros(len(ids), dtype=np.bool_)
        for part in (self.base, self.tail):
            here, at = _find(part, ids)
            out[here] = part.vectors[at[here]]
            found |= here
        if not found.all():
            raise InputError(f"The store holds no item {ids[~found][0]}.")
        return out

    def has(self, ids: Ids) -> Mask:
        """Return (n,) True where the id is live."""
        return np.asarray(_find(self.base, ids)[0] | _find(self.tail, ids)[0])


def _find(part: Part, wanted: Ids) -> tuple[Mask, Ids]:
    """Return whether each wanted id is a live row of a part, and which row."""
    if not len(part.ids):
        return np.zeros(len(wanted), dtype=np.bool_), np.zeros(len(wanted), dtype=np.int64)
    at = np.minimum(np.searchsorted(part.ids, wanted), len(part.ids) - 1)
    return np.asarray((part.ids[at] == wanted) & ~part.dead[at]), at


def load(
    database: Database, connection: sqlite3.Connection, encoder: StoredEncoder, metric: Metric, last: View | None
) -> View:
    """Return the present view: the last one where nothing has changed, else the file and what is newer than it."""
    stamp = cards.stamp(connection, encoder)
    if last is not None and last.stamp == stamp:
        return last
    generation = generations.current(database, encoder, KIND)
    base = _base(generation, encoder, metric, last) if generation is not None else None
    if generation is None or base is None:
        return View(stamp, Part.of(*_read(connection, encoder, since=-1), metric), _empty(encoder, metric), None)
    if generation.stamp == stamp:
        return View(stamp, base, _empty(encoder, metric), generation.stamp)
    since = generation.stamp.revision
    base = replace(base, dead=gone(connection, encoder, base.ids, since))
    return View(stamp, base, Part.of(*_read(connection, encoder, since=since), metric), generation.stamp)


def _base(generation: generations.Generation, encoder: StoredEncoder, metric: Metric, last: View | None) -> Part | None:
    """Map the files of a generation, or return None where they are not what was written."""
    if last is not None and last.made == generation.stamp:
        return replace(last.base, dead=np.zeros(len(last.base.ids), np.bool_))
    files = mapped(generation, encoder.card.dim)
    if files is None:
        return None
    ids, vectors = files
    # The lengths were measured when the file was written: a process that starts does not read all of it to know them.
    shortest, longest = generation.details["lengths"]
    ready = vectors if metric != "cosine" or max(longest - 1, 1 - shortest) <= NEARLY_ONE else None
    return Part(ids, Gallery(vectors, metric, ready, longest), np.zeros(len(ids), np.bool_))


def _empty(encoder: StoredEncoder, metric: Metric) -> Part:
    return Part.of(*_nothing(encoder), metric)


def gone(connection: sqlite3.Connection, encoder: StoredEncoder, ids: Ids, since: int) -> Mask:
    """Return (n,) True for the rows of a file of that revision that are no longer what the database holds."""
    fresh = changed(connection, encoder, since)
    live = connection.execute(f"SELECT count(*) FROM {encoder.table}").fetchone()[0]
    replaced = np.isin(ids, fresh)
    if live == len(ids) + len(fresh) - int(replaced.sum()):
        return replaced
    present = np.fromiter((row[0] for row in _live(connection, encoder)), dtype=np.int64)
    return np.asarray(replaced | ~np.isin(ids, present))


def changed(connection: sqlite3.Connection, encoder: StoredEncoder, since: int) -> Ids:
    """Return the ids of the vectors written after a revision, ascending."""
    rows = connection.execute(f"SELECT item FROM {encoder.table} WHERE revision > ?", (since,))
    return np.sort(np.fromiter((row[0] for row in rows), dtype=np.int64))


def _live(connection: sqlite3.Connection, encoder: StoredEncoder) -> Iterator[tuple[int]]:
    # The index holds nothing but ids and revisions; the table holds kilobytes a row.
    yield from connection.execute(f"SELECT item FROM {encoder.table} INDEXED BY {encoder.table}_revision")


def _read(connection: sqlite3.Connection, encoder: StoredEncoder, *, since: int) -> tuple[Ids, Vectors]:
    condition = "" if since < 0 else f" WHERE revision > {int(since)}"
    count = connection.execute(f"SELECT count(*) FROM {encoder.table}{condition}").fetchone()[0]
    ids, vectors = np.empty(count, np.int64), np.empty((count, encoder.card.dim), np.float32)
    at = 0
    for some_ids, some in _batches(connection, encoder, since):
        ids[at : at + len(some)], vectors[at : at + len(some)] = some_ids, some
        at += len(some)
    return ids, vectors


def _batches(connection: sqlite3.Connection, encoder: StoredEncoder, since: int) -> Iterator[tuple[Ids, Vectors]]:
    condition = f"WHERE revision > {int(since)} " if since >= 0 else ""
    rows = connection.execute(f"SELECT item, data FROM {encoder.table} {condition}ORDER BY item")
    while batch := rows.fetchmany(_ROWS):
        ids = np.array([row[0] for row in batch], dtype=np.int64)
        yield ids, items.from_blobs(encoder, [row[1] for row in batch])


def _nothing(encoder: StoredEncoder) -> tuple[Ids, Vectors]:
    return np.empty(0, np.int64), np.empty((0, encoder.card.dim), np.float32)


def mapped(generation: generations.Generation, dim: int) -> tuple[Ids, Vectors] | None:
    """Map the files of a generation, or return None where they are not what was written."""
    try:
        ids: Ids = np.load(generation.folder / "ids.npy", allow_pickle=False)
        vectors = np.load(generation.folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    n = generation.details["items"]
    fits = ids.shape == (n,) and ids.dtype == np.int64 and vectors.shape == (n, dim) and vectors.dtype == np.float32
    return (ids, np.asarray(vectors)) if fits else None


def stale(database: Database, encoder: StoredEncoder) -> bool:
    """Whether the vectors have drifted so far from their file (or have none, and are many) that writing one pays."""
    generation = generations.current(database, encoder, KIND)
    if generation is not None and mapped(generation, encoder.card.dim) is None:
        generation = None  # damaged: as good as deleted
    with database.reading() as connection:
        live, fresh = counts(connection, encoder, -1 if generation is None else generation.stamp.revision)
        if generation is None:
            return live > STALE_ROWS
        if generation.stamp == cards.stamp(connection, encoder):
            return False
    size = generation.details["items"]
    gone = max(size + fresh - live, 0)  # at least this many rows of the file were deleted or replaced
    return bool(fresh + gone > max(STALE_ROWS, STALE_SHARE * size))


def counts(connection: sqlite3.Connection, encoder: StoredEncoder, since: int) -> tuple[int, int]:
    """Return the number of live vectors, and of those written after a revision."""
    live = connection.execute(f"SELECT count(*) FROM {encoder.table}").fetchone()[0]
    fresh = connection.execute(f"SELECT count(*) FROM {encoder.table} WHERE revision > ?", (since,)).fetchone()[0]
    return live, fresh


def remake(database: Database, encoder: StoredEncoder) -> generations.Generation:
    """Write the file of the present vectors and switch to it; the caller holds the writer's lock."""
    with database.reading() as connection:
        stamp = cards.stamp(connection, encoder)
        count = connection.execute(f"SELECT count(*) FROM {encoder.table}").fetchone()[0]
        parts = _batches(connection, encoder, -1)
        written: list[Ids] = []
        lengths = [1.0, 1.0]

        def fill(folder: Path) -> Mapping[str, Any]:
            with (folder / "vectors.npy").open("wb") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": (count, encoder.card.dim)}
                np.lib.format.write_array_header_1_0(file, header)
                for ids, vectors in parts:  # written, not mapped: a full disk is an error here, not a signal
                    written.append(ids)
                    shortest, longest = length_range(vectors)
                    lengths[:] = [min(lengths[0], shortest), max(lengths[1], longest)]
                    file.write(vectors.data)
            np.save(folder / "ids.npy", np.concatenate([np.empty(0, np.int64), *written]))
            return {"items": count, "lengths": lengths}

        made = generations.prepare(database, encoder, KIND, stamp, fill)
    return generations.switch(database, encoder, KIND, made)


def refresh(database: Database, encoder: StoredEncoder) -> bool:
    """Write the vector file where that pays; a failure costs speed, not answers, and is logged."""
    try:
        if not stale(database, encoder):
            return False
        remake(database, encoder)
    except CatalogueError as error:
        _log.warning("%s", error)
        return False
    return True
