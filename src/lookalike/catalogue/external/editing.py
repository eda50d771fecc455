"""Rows of an external store changed by hand; `push` brings those of a catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Vectors, as_ids, as_vectors, same_length
from lookalike.catalogue import items
from lookalike.catalogue.cards import StoredEncoder
from lookalike.catalogue.columns import Column, typed
from lookalike.catalogue.conditions import Value
from lookalike.catalogue.external.rows import BUILTIN, Rows
from lookalike.catalogue.external.store import ExternalStore
from lookalike.catalogue.stored_path import stored
from lookalike.errors import InputError


def upsert(
    store: ExternalStore,
    ids: npt.ArrayLike,
    paths: Sequence[str],
    vectors: npt.ArrayLike,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> Ids:
    """Store (n, d) vectors under these ids and paths, replacing the items that are there; columns not named stay.

    Raises:
        InputError: an id or a path twice, a path of another item, a row the card does not allow, or a value of another
            type than its column's.
        ShapeError, NonFiniteError: vectors that are none, or not of this dimension.
    """
    checked = as_vectors(vectors, dim=store.dim)
    given = dict(columns or {})
    same_length(ids=np.asarray(ids), paths=paths, vectors=checked, **given)
    numbers = as_ids(ids, len(checked))
    if (numbers < 0).any():
        raise InputError(f"The id {int(numbers.min())} is below 0.")
    _free(store, numbers, paths)
    check_vectors(store, checked)
    kept, values = _columns(store, given)
    if kept != store.state.columns:
        store.begin(kept)
    store.touched()
    before = store._values(numbers, [column.field for column in store.state.kept])
    rows = [_merged(store, row, before.get(int(number)), values) for row, number in enumerate(numbers)]
    store.write(Rows.of(numbers, paths, rows, checked, store.state.kept))
    store.finish()
    return numbers


def delete(store: ExternalStore, *, ids: npt.ArrayLike | None = None, paths: Sequence[str] | None = None) -> int:
    """Remove items by id or by path; return how many there were.

    Raises:
        InputError: an item that is not there, or neither or both of ids and paths.
    """
    if (ids is None) == (paths is None):
        raise InputError("Say which items to delete, by ids or by paths.")
    if paths is not None:
        doomed = store.ids_of(paths)
    else:
        doomed = np.asarray(ids, dtype=np.int64).ravel()
        store.paths(doomed)  # refuses by name what is not there
    store.touched()
    store.remove(np.unique(doomed))
    return len(np.unique(doomed))


def check_vectors(store: ExternalStore, vectors: Vectors) -> None:
    """Refuse vectors that would be no direction as the engine keeps them, or not what the card promises."""
    items.check(StoredEncoder(0, store.card, store.state.dtype), vectors)


def _free(store: ExternalStore, ids: Ids, paths: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for number, path in zip(ids.tolist(), paths, strict=True):
        stored(path)  # refuses what is no path
        if path in seen:
            raise InputError(f"The path {path!r} stands twice; a path names one item.")
        seen[path] = number
    for path, number in store._located(list(paths)).items():
        if seen[path] != number:
            raise InputError(f"The path {path!r} belongs to item {number}.", hint="Upsert that item, or delete it.")


def _columns(
    store: ExternalStore, given: Mapping[str, Sequence[Any]]
) -> tuple[tuple[Column, ...], dict[str, list[Value]]]:
    """Return the columns with those that are new, and the given values by field, in the type of their column."""
    kept = {column.name: column for column in store.state.columns}
    taken = {"id", "path", "raw", *(column.name for column in BUILTIN)}
    highest = max((int(column.field[1:]) for column in kept.values()), default=0)
    values = {}
    for name, column in given.items():
        if name.lower() in taken or not name.strip():
            raise InputError(f"{name!r} cannot be the name of a column: {', '.join(sorted(taken))} are taken.")
        type_, found = typed(name, column, kept[name].type if name in kept else None)
        if name not in kept:
            highest += 1
            kept[name] = Column(name, type_, indexed=False, field=f"c{highest}")
        values[kept[name].field] = found
    return tuple(kept.values()), values


def _merged(
    store: ExternalStore, row: int, before: tuple[Any, ...] | None, values: Mapping[str, Sequence[Value]]
) -> list[Value]:
    old = dict(zip((column.field for column in store.state.kept), before, strict=True)) if before else {}
    return [
        values[column.field][row] if column.field in values else old.get(column.field) for column in store.state.kept
    ]
