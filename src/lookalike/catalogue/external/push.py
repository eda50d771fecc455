"""A catalogue into an external store: what differs is written, and an interrupted push goes on where it stopped."""

from __future__ import annotations

import dataclasses
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Ids
from lookalike.catalogue import cards, columns, database, items
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.external.editing import check_vectors
from lookalike.catalogue.external.rows import Rows
from lookalike.catalogue.external.store import ExternalStore
from lookalike.catalogue.stored_path import shown
from lookalike.embed.pipeline import Progress
from lookalike.errors import InputError
from lookalike.index.overlap import Overlap, overlap

_READ = 2_000
_CHUNK_BYTES = 16 << 20
"""What one transaction writes, and what a kill can cost."""


@dataclass(frozen=True, kw_only=True)
class PushResult:
    """What a push did, in rows; `unchanged` were as the catalogue has them."""

    added: int
    updated: int
    removed: int
    unchanged: int
    items: int
    revision: int
    seconds: float
    cancelled: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        counts = {name: getattr(self, name) for name in ("added", "updated", "removed", "unchanged")}
        return " · ".join(f"{name} {count:,}" for name, count in counts.items())


def push(
    store: ExternalStore,
    catalogue: Catalogue,
    *,
    progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> PushResult:
    """Make a store hold what a catalogue holds now: one snapshot of it, compared row by row by a stamp of contents.

    Where the store is complete for this very revision nothing is read. Otherwise the stamps are compared, the rows
    that differ are written a chunk at a time, each chunk whole or not at all, and only the end says that the store is
    complete for the revision: a push that was killed, or whose engine went away, finds at its next run what is there.

    Raises:
        EncoderMismatchError: the store is of another encoder or metric; the differences are named.
        CatalogueError: the engine is away; what was written stays.
    """
    started = time.monotonic()
    store.check(catalogue.card, catalogue.metric)
    with store.alone("push"), catalogue.database.reading() as connection:
        revision = int(database.setting(connection, "revision"))
        token = cards.stamp(connection, catalogue.stored).token
        kept = tuple(columns.listed(connection))
        root = str(catalogue.root) if catalogue.root else None
        if (store.state.revision, store.state.token, store.state.root) == (revision, token, root):
            counts = {"unchanged": len(catalogue)}
            return _result(counts, len(catalogue), revision, started, cancelled=False)
        store.begin(kept)
        run = _Push(store, catalogue, connection, len(catalogue), progress, cancel or (lambda: False))
        cancelled = run.all()
        if not cancelled:
            store.finish()
            ids = catalogue.ids()
            highest = int(ids[-1]) if len(ids) else None
            store.save(dataclasses.replace(store.state, revision=revision, token=token, root=root, highest=highest))
        return _result(run.counts, run.total, revision, started, cancelled=cancelled)


def _result(counts: dict[str, int], total: int, revision: int, started: float, *, cancelled: bool) -> PushResult:
    every = dict.fromkeys(("added", "updated", "removed", "unchanged"), 0) | counts
    seconds = time.monotonic() - started
    return PushResult(**every, items=total, revision=revision, seconds=seconds, cancelled=cancelled)


@dataclass
class _Push:
    store: ExternalStore
    catalogue: Catalogue
    connection: sqlite3.Connection
    total: int
    progress: Callable[[Progress], None] | None
    cancel: Callable[[], bool]

    def all(self) -> bool:
        """Remove what is gone, write what differs; return whether it was cancelled."""
        self.counts = dict.fromkeys(("added", "updated", "removed", "unchanged"), 0)
        held, stamps = self.store.stamps()
        live = self.catalogue.ids()
        gone = held[~np.isin(held, live)]
        for start in range(0, len(gone), _READ):  # first, so that a path that changed hands is never there twice
            self.store.remove(gone[start : start + _READ])
        self.counts["removed"] = len(gone)
        chunk = max(1, _CHUNK_BYTES // (4 * self.store.dim + 200))
        for rows in _rows(self.connection, self.store, self.catalogue):
            changed = self._changed(rows, held, stamps)
            for part in rows.select(changed).cut(chunk):
                self.store.write(part)
            if self.progress is not None:
                done = sum(self.counts[name] for name in ("added", "updated", "unchanged"))
                self.progress(Progress(done, self.total, 0))
            if self.cancel():
                return True
        return False

    def _changed(self, rows: Rows, held: Ids, stamps: Ids) -> Ids:
        if not len(held):
            self.counts["added"] += len(rows)
            return np.arange(len(rows))
        at = np.minimum(np.searchsorted(held, rows.ids), len(held) - 1)
        present = held[at] == rows.ids
        same = present & (stamps[at] == rows.stamps)
        self.counts["added"] += int((~present).sum())
        self.counts["updated"] += int((present & ~same).sum())
        self.counts["unchanged"] += int(same.sum())
        return np.flatnonzero(~same)


def _rows(connection: sqlite3.Connection, store: ExternalStore, catalogue: Catalogue) -> Iterator[Rows]:
    """Read the live items of one snapshot in id order."""
    encoder, kept = catalogue.stored, store.target.kept
    fields = ", ".join(f"items.{column.field}" for column in kept)
    found = connection.execute(
        f"SELECT items.id, items.path, v.data, {fields} FROM {encoder.table} v JOIN items ON items.id = v.item "
        "ORDER BY v.item"
    )
    while batch := found.fetchmany(_READ):
        vectors = items.from_blobs(encoder, [row[2] for row in batch])
        check_vectors(store, vectors)
        paths = [shown(row[1]) for row in batch]
        yield Rows.of([row[0] for row in batch], paths, [row[3:] for row in batch], vectors, kept)


def measure_overlap(
    store: ExternalStore, *, exact: Catalogue | None = None, k: int = 10, queries: int = 100, seed: int = 0
) -> Overlap:
    """Measure how much of the exact answer the engine's index finds, and keep the figure in the store.

    The queries are vectors of the store itself, a seeded sample. `exact` gives the exact answers: the catalogue that
    was pushed, whose vectors are the originals also where the engine keeps half precision; the engine's own exact
    search where None.

    Raises:
        InputError: an empty store.
    """
    chosen = store.sample(queries, seed)
    if not len(chosen):
        raise InputError("An empty store has no overlap to measure.", hint="Push a catalogue first.")
    source = store if exact is None else exact
    rows = source.vectors(chosen)
    measured = overlap(store.neighbours(rows, k), source.neighbours(rows, k, exact=True), k, seed=seed)
    store.save(dataclasses.replace(store.state, overlap={**dataclasses.asdict(measured), "index": store.state.index}))
    return measured
