"""The changes a caller makes to a catalogue by hand; `sync` makes those of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Vectors, as_vectors, check_paths, same_length, wanted_ids
from lookalike.catalogue import cards, columns, items, view
from lookalike.catalogue.cards import StoredEncoder
from lookalike.catalogue.database import Database
from lookalike.catalogue.items import File
from lookalike.catalogue.searching import located
from lookalike.catalogue.sources import is_uri
from lookalike.catalogue.stored_path import shown, stored
from lookalike.catalogue.where import Type, Value
from lookalike.embed.encoder import Card
from lookalike.embed.registry import EncoderLike
from lookalike.embed.registry import encoder as resolve
from lookalike.errors import CatalogueError, InputError, NotFoundError

_MANY = 1_000
"""After so many rows at once it is asked whether the vector file should be written; smaller changes wait for a sync."""


class Editing:
    """Upserts, deletions, columns, encoders and the root: each call is one commit."""

    database: Database
    stored: StoredEncoder

    @property
    def root(self) -> Path | None:
        """The folder the paths start from."""
        raise NotImplementedError

    def upsert(
        self,
        paths: Sequence[str],
        vectors: npt.ArrayLike,
        *,
        columns: Mapping[str, Sequence[Any]] | None = None,
    ) -> Ids:
        """Store (n, d) ready vectors under these paths, replacing those that are there; return the ids, which stay.

        The vectors that other encoders made for a replaced item go, because its picture may be another.

        Raises:
            InputError: a path twice, a row the card does not allow, or a column of another type.
            ShapeError: lengths or dimension differ.
            NonFiniteError: NaN, infinity or length zero.
        """
        check_paths(paths)
        checked = as_vectors(vectors, dim=self.stored.card.dim)
        same_length(paths=paths, vectors=checked, **dict(columns or {}))
        _each_once(paths)
        items.check(self.stored, checked)
        with self.database.writing("upsert"):
            ids = self._upsert(paths, checked, columns or {})
            if len(ids) >= _MANY:
                view.refresh(self.database, self.stored)
        return np.array(ids, dtype=np.int64)

    def _upsert(self, paths: Sequence[str], checked: Vectors, values: Mapping[str, Sequence[Any]]) -> list[int]:
        with self.database.commit() as connection:
            revision = self.database.revision()
            ids = [items.put(connection, path, File(), revision) for path in paths]
            for encoder in cards.listed(connection):
                if encoder.id != self.stored.id:
                    items.drop_vectors(connection, encoder, ids, revision)
            items.put_vectors(connection, self.stored, ids, checked, revision)
            _write_columns(connection, ids, values, {})
        return ids

    def delete(self, *, ids: npt.ArrayLike | None = None, paths: Sequence[str] | None = None) -> int:
        """Remove items by id or by path, with the vectors of every encoder; return how many there were.

        The files stay where they are; the next `sync` adds those that are still below the root again.

        Raises:
            InputError: an item that is not there, or neither or both of ids and paths.
        """
        if (ids is None) == (paths is None):
            raise InputError("Say which items to delete, by ids or by paths.")
        with self.database.writing("delete"), self.database.commit() as connection:
            named = _named(ids, paths)
            known = _located(connection, named, self.root, by_id=ids is not None)
            doomed = [_present(known, key) for key in named]
            items.delete(connection, doomed, self.database.revision())
        return len(set(doomed))

    def set_columns(
        self,
        values: Mapping[str, Sequence[Any]],
        *,
        ids: npt.ArrayLike | None = None,
        paths: Sequence[str] | None = None,
        types: Mapping[str, Type] | None = None,
        missing_ok: bool = False,
    ) -> int:
        """Set user columns, name to one value an item; return how many items were set.

        A new column takes the narrowest type that loses nothing, or the one stated in `types` (`text`, `integer`,
        `real`, `boolean`). Empty text, None and NaN are missing values. With `missing_ok` paths the catalogue does not
        hold are passed over.

        Raises:
            InputError: an item that is not there, or a value of another type than the column's.
            ShapeError: a column of another length.
        """
        if (ids is None) == (paths is None):
            raise InputError("Say which items the columns belong to, by ids or by paths.")
        named = _named(ids, paths)
        same_length(items=named, **dict(values))
        with self.database.writing("set columns"), self.database.commit() as connection:
            known = _located(connection, named, self.root, by_id=ids is not None)
            rows = [row for row, key in enumerate(named) if not missing_ok or key in known]
            targets = [_present(known, named[row]) for row in rows]
            kept = {name: [column[row] for row in rows] for name, column in values.items()}
            _write_columns(connection, targets, kept, types or {})
        return len(rows)

    def index_column(self, name: str) -> None:
        """Make filters on this column fast."""
        with self.database.writing("index column"), self.database.commit() as connection:
            columns.index(connection, columns.named(connection, name))

    def drop_column(self, name: str) -> None:
        """Remove a column with its values."""
        with self.database.writing("drop column"), self.database.commit() as connection:
            columns.drop(connection, columns.named(connection, name))

    def add_encoder(self, encoder: EncoderLike | Card, *, dtype: str = "float32", normalise: bool = True) -> Card:
        """Make room for the vectors of another encoder; open the catalogue with it and `sync` to fill it.

        Adding one that is there changes nothing.
        """
        card = encoder if isinstance(encoder, Card) else resolve(encoder, normalise=normalise).card
        with self.database.writing("add encoder"), self.database.commit() as connection:
            if all(known.card.digest != card.digest for known in cards.listed(connection)):
                cards.add(connection, card, cards.check_dtype(dtype), self.database.revision())
        return card

    def remove_encoder(self, encoder: Card | str) -> None:
        """Remove an encoder with its vectors; the one the catalogue is open with stays.

        Raises:
            EncoderMismatchError: no vectors of it.
            InputError: it is the one in use.
        """
        with self.database.writing("remove encoder"), self.database.commit() as connection:
            chosen = cards.choose(cards.listed(connection), encoder, str(self.database.folder))
            if chosen.id == self.stored.id:
                raise InputError(
                    f"{chosen.card.name!r} is the encoder in use.", hint="Open the catalogue with another one first."
                )
            cards.drop(connection, chosen)

    def set_root(self, root: str | os.PathLike[str], *, allow_empty: bool = False) -> None:
        """Say where the folder of pictures is now; no picture is read, and the next `sync` compares.

        Raises:
            NotFoundError: no such folder.
            CatalogueError: none of the stored pictures is there by its path, so that a sync would remove them all;
                `allow_empty` says that it is meant.
        """
        path = os.path.abspath(os.fspath(root))  # noqa: PTH100 - resolve() would follow links
        if not os.path.exists(path):  # noqa: PTH110
            raise NotFoundError(f"There is no folder {os.fspath(root)!r}.")
        if not allow_empty:
            self._refuse_other_folder(path)
        with self.database.writing("set root"), self.database.commit() as connection:
            connection.execute("UPDATE roots SET path = ? WHERE id = ?", (stored(path), items.ROOT))

    def _refuse_other_folder(self, root: str) -> None:
        """Raise CatalogueError where there are pictures of files and none of them lies below `root`."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT path FROM items WHERE content IS NOT NULL").fetchall()
        named = [path for (value,) in rows if not is_uri(path := shown(value))]
        if named and not any(os.path.lexists(os.path.join(root, path)) for path in named):  # noqa: PTH118
            raise CatalogueError(
                f"None of the {len(named)} pictures of this catalogue is below {root!r}: the next sync would remove "
                "them all.",
                hint="Name the folder their paths start from; if the pictures are gone, say so with allow_empty "
                "(--allow-empty).",
            )


def _named(ids: npt.ArrayLike | None, paths: Sequence[str] | None) -> list[Any]:
    """Return the items as the caller named them, by id or by path."""
    if ids is not None:
        return [int(number) for number in wanted_ids(ids)]
    check_paths(paths or ())
    return list(paths or ())


def _write_columns(
    connection: Any, ids: Sequence[int], values: Mapping[str, Sequence[Any]], types: Mapping[str, Type]
) -> None:
    known = {column.name: column.type for column in columns.listed(connection)}
    for name, column in values.items():
        type_, typed = _typed(name, column, types.get(name), known.get(name))
        columns.write(connection, columns.ensure(connection, name, type_), ids, typed)


def _typed(name: str, values: Sequence[Any], stated: Type | None, known: Type | None) -> tuple[Type, list[Value]]:
    """An existing column keeps its type: the new values are read as what it holds."""
    return columns.typed(name, values, stated or known)


def _located(connection: Any, named: list[Any], root: Path | None, *, by_id: bool) -> dict[Any, int]:
    """Return the ids of those items that exist, by the name the caller used."""
    if by_id:
        return {number: number for number in items.by_id(connection, named)}
    return dict(located(connection, named, root))


def _each_once(paths: Sequence[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise InputError(f"The path {path!r} stands twice; a path names one item.")
        seen.add(path)


def _present(found: Mapping[Any, int], key: Any) -> int:
    if key not in found:
        raise InputError(f"The store holds no item {key!r}.")
    return found[key]
