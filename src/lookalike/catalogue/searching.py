"""Reading a catalogue: its items, its vectors and its answers, each call on one consistent state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.arrays import Ids, Vectors, as_vectors, check_paths, unit, wanted_ids
from lookalike.catalogue import columns, indexes, items, view, where
from lookalike.catalogue.cards import StoredEncoder
from lookalike.catalogue.database import Database
from lookalike.catalogue.queries import Query, as_queries, embedded
from lookalike.catalogue.store import Hits
from lookalike.catalogue.view import View
from lookalike.embed.encoder import Encoder
from lookalike.errors import CutOffError, InputError, InputTypeError
from lookalike.index.neighbours import Metric, Neighbours

if TYPE_CHECKING:
    import sqlite3


class Searching:
    """The contract of a Store, and `search`."""

    database: Database
    stored: StoredEncoder
    _view: View | None
    _index: indexes.Open | None
    _metric: Metric
    threads: int | None

    @property
    def root(self) -> Path | None:
        """The folder the paths start from."""
        raise NotImplementedError

    @property
    def encoder(self) -> Encoder:
        """The encoder that turns pictures into queries."""
        raise NotImplementedError

    def view(self) -> View:
        """Return the vectors in their present state, loading what has changed."""
        with self.database.reading() as connection:
            return self._load(connection)

    def _load(self, connection: sqlite3.Connection) -> View:
        self._view = view.load(self.database, connection, self.stored, self._metric, self._view)
        return self._view

    def __len__(self) -> int:
        """Number of live items: those with a vector of this encoder."""
        with self.database.reading() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {self.stored.table}").fetchone()[0])

    def ids(self, *, where: str | None = None) -> Ids:
        """Ids of the live items, ascending; of those that pass the filter where one is given.

        Raises:
            FilterError: the filter cannot be understood; the place is shown.
        """
        with self.database.reading() as connection:
            present = self._load(connection)
            return present.ids if where is None else self._passing(connection, present, where)

    def _passing(self, connection: sqlite3.Connection, present: View, text: str) -> Ids:
        if not isinstance(text, str):
            raise InputTypeError(f"A filter is a text such as \"label = 'shoe'\", not {type(text).__name__}.")
        condition = where.parse(text, columns.fields(connection))
        rows = connection.execute(f"SELECT id FROM items WHERE {condition.sql}", condition.values)
        found = np.sort(np.fromiter((row[0] for row in rows), dtype=np.int64))
        return found[present.has(found)]

    def vectors(self, ids: Ids) -> Vectors:
        """(n, d) vectors of these items, in this order, as they were stored.

        Raises:
            InputError: an id the catalogue does not hold.
        """
        return self.view().rows(wanted_ids(ids))

    def paths(self, ids: Ids) -> list[str]:
        """Paths of these items relative to the root, in this order.

        Raises:
            InputError: an id the catalogue does not hold.
        """
        with self.database.reading() as connection:
            return _paths(connection, wanted_ids(ids))

    def ids_of(self, paths: Sequence[str]) -> Ids:
        """Ids of the items at these paths (relative to the root, or absolute and below it), in this order.

        Raises:
            InputError: a path the catalogue does not hold.
        """
        check_paths(paths)
        with self.database.reading() as connection:
            found = located(connection, paths, self.root)
        for path in paths:
            if path not in found:
                raise InputError(f"The store holds no item at {path!r}.")
        return np.array([found[path] for path in paths], dtype=np.int64)

    def neighbours(self, queries: Vectors, k: int, *, where: str | None = None, exact: bool = False) -> Neighbours:
        """Rank the live items for each of (q, d) queries, best first, equal scores in id order.

        With a filter, k items come back whenever k pass it. `exact` passes over the index, where there is one.

        Raises:
            ShapeError: queries of another dimension.
            NonFiniteError: NaN, infinity, or length zero where the metric is cosine.
            CutOffError: k below 1.
            FilterError: a filter that cannot be understood.
        """
        checked = self._checked(queries, k)
        with self.database.reading() as connection:
            present = self._load(connection)
            allowed = None if where is None else self._passing(connection, present, where)
            index = present.flat
            if not exact:
                self._index = indexes.opened(self.database, connection, self.stored, present, self._index)
                index = present.flat if self._index is None else self._index.index
            return index.search(checked, int(k), allowed=allowed, threads=self.threads)

    def _checked(self, queries: Vectors, k: int) -> Vectors:
        checked = as_vectors(queries, name="queries", dim=self.stored.card.dim)
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise InputTypeError(f"k must be a whole number, not {k!r}.")
        if k < 1:
            raise CutOffError(int(k), len(self))
        if self._metric == "cosine":
            unit(checked, name="queries")
        return checked

    def search(
        self, query: Query | Sequence[Query], k: int = 10, *, where: str | None = None, exact: bool = False
    ) -> list[Hits]:
        """Return the k best items for each query: one `Hits` a query, also for a single one.

        A query is a path, the bytes of a file, a uint8 array or a Pillow image (embedded by this catalogue's encoder),
        a (d,) vector, or the id of an item, which then comes first in its own answer; or a list of such.

        Raises:
            ImageError: a query picture cannot be read.
            EncoderMismatchError: the encoder that loads today is not the one that made the vectors.
            InputError: as for `neighbours`, or an id the catalogue does not hold.
        """
        vectors = embedded(as_queries(query), self.stored.card.dim, lambda: self.encoder, self.vectors, self.threads)
        with self.database.reading() as connection:
            found = self.neighbours(vectors, k, where=where, exact=exact)
            return [Hits(ids, scores, tuple(_paths(connection, ids)), self._metric) for ids, scores in found]


def located(connection: sqlite3.Connection, paths: Sequence[str], root: Path | None) -> dict[str, int]:
    """Return the ids of those paths that exist, by the name given: relative to the root, or absolute and below it."""
    inside = {path: _relative(path, root) for path in paths}
    found = items.ids_of(connection, list(dict.fromkeys(inside.values())))
    return {path: found[name] for path, name in inside.items() if name in found}


def _relative(path: str, root: Path | None) -> str:
    if root is not None and os.path.isabs(path):  # noqa: PTH117 - kept as text: it may not be UTF-8
        start = os.fspath(root).rstrip("/") + "/"
        return path[len(start) :] if path.startswith(start) else path
    return path[2:] if path.startswith("./") else path


def _paths(connection: sqlite3.Connection, ids: Ids) -> list[str]:
    found = items.paths_of(connection, ids)
    return [_known(found, int(number)) for number in ids]


def _known(found: dict[int, Any], number: int) -> Any:
    if number not in found:
        raise InputError(f"The store holds no item {number}.")
    return found[number]
