"""Rows of items: read, written and deleted inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue import cards
from lookalike.catalogue.cards import StoredEncoder
from lookalike.catalogue.stored_path import shown, stored
from lookalike.errors import CatalogueError, InputError, NonFiniteError

ROOT = 1
"""The one root of a catalogue; the schema has room for several."""
_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class File:
    """What is known of the bytes behind an item; all None for a vector brought ready."""

    content: bytes | None = None
    """BLAKE2b of the bytes; empty where the file changed under the reader and must be read again."""
    size: int | None = None
    mtime_ns: int | None = None
    """None where the time is too young to prove that the bytes have not changed since."""
    width: int | None = None
    height: int | None = None
    frames: int | None = None


@dataclass(frozen=True)
class Item:
    """One picture of a catalogue."""

    id: int
    path: str
    file: File


_FIELDS = "items.id, items.path, items.content, items.size, items.mtime_ns, items.width, items.height, items.frames"


def _item(row: tuple[int, str | bytes, bytes, int, int, int, int, int]) -> Item:
    number, path, content, size, mtime_ns, width, height, frames = row
    file = File(content=content, size=size, mtime_ns=mtime_ns, width=width, height=height, frames=frames)
    return Item(number, shown(path), file)


def everything(connection: sqlite3.Connection) -> list[Item]:
    """Return every item, also those without a vector, in id order."""
    return [_item(row) for row in connection.execute(f"SELECT {_FIELDS} FROM items ORDER BY id")]


def by_id(connection: sqlite3.Connection, ids: Sequence[int] | Ids) -> dict[int, Item]:
    """Return the items of these ids that exist."""
    found: dict[Any, Any] = {}
    for batch in batches(ids):
        marks = ", ".join("?" * len(batch))
        for row in connection.execute(f"SELECT {_FIELDS} FROM items WHERE id IN ({marks})", batch):
            found[row[0]] = _item(row)
    return found


def paths_of(connection: sqlite3.Connection, ids: Sequence[int] | Ids) -> dict[int, str]:
    """Return the paths of the ids that exist."""
    found: dict[Any, Any] = {}
    for batch in batches(ids):
        marks = ", ".join("?" * len(batch))
        found.update(
            (number, shown(path))
            for number, path in connection.execute(f"SELECT id, path FROM items WHERE id IN ({marks})", batch)
        )
    return found


def ids_of(connection: sqlite3.Connection, paths: Sequence[str]) -> dict[str, int]:
    """Return the ids of the paths that exist."""
    found: dict[Any, Any] = {}
    for start in range(0, len(paths), _BATCH):
        batch = [stored(path) for path in paths[start : start + _BATCH]]
        marks = ", ".join("?" * len(batch))
        rows = connection.execute(f"SELECT path, id FROM items WHERE root = ? AND path IN ({marks})", (ROOT, *batch))
        found.update((shown(path), number) for path, number in rows)
    return found


def values_of(connection: sqlite3.Connection, field: str, ids: Sequence[int] | Ids) -> dict[int, Any]:
    """Return one column (a trusted SQL name) of the ids that exist."""
    found: dict[Any, Any] = {}
    for batch in batches(ids):
        marks = ", ".join("?" * len(batch))
        found.update(connection.execute(f"SELECT id, {field} FROM items WHERE id IN ({marks})", batch).fetchall())
    return found


def batches(ids: Sequence[int] | Ids) -> Iterable[list[int]]:
    """Cut ids into lists that one statement can bind."""
    whole = [int(number) for number in ids]
    return (whole[start : start + _BATCH] for start in range(0, len(whole), _BATCH))


def put(connection: sqlite3.Connection, path: str, file: File, revision: int) -> int:
    """Insert an item or update the one at this path; return its id, which it keeps."""
    row = connection.execute(
        """INSERT INTO items (root, path, content, size, mtime_ns, width, height, frames, revision)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (root, path) DO UPDATE SET content = excluded.content, size = excluded.size,
             mtime_ns = excluded.mtime_ns, width = excluded.width, height = excluded.height, frames = excluded.frames,
             revision = excluded.revision
           RETURNING id""",
        (ROOT, stored(path), file.content, file.size, file.mtime_ns, file.width, file.height, file.frames, revision),
    ).fetchone()
    return int(row[0])


def touch(connection: sqlite3.Connection, number: int, size: int, mtime_ns: int | None) -> None:
    """Note a new time of a file whose bytes are the same."""
    connection.execute("UPDATE items SET size = ?, mtime_ns = ? WHERE id = ?", (size, mtime_ns, number))


def rename(connection: sqlite3.Connection, number: int, path: str, mtime_ns: int | None, revision: int) -> None:
    """Give an item another path."""
    connection.execute(
        "UPDATE items SET path = ?, mtime_ns = ?, revision = ? WHERE id = ?", (stored(path), mtime_ns, revision, number)
    )


def delete(connection: sqlite3.Connection, ids: Sequence[int] | Ids, revision: int) -> None:
    """Delete items with their vectors of every encoder."""
    for encoder in cards.listed(connection):
        drop_vectors(connection, encoder, ids, revision)
    for batch in batches(ids):
        connection.execute(f"DELETE FROM items WHERE id IN ({', '.join('?' * len(batch))})", batch)


def drop_vectors(
    connection: sqlite3.Connection, encoder: StoredEncoder, ids: Sequence[int] | Ids, revision: int
) -> None:
    """Delete the vectors of one encoder for these items."""
    gone = 0
    for batch in batches(ids):
        marks = ", ".join("?" * len(batch))
        gone += connection.execute(f"DELETE FROM {encoder.table} WHERE item IN ({marks})", batch).rowcount
    if gone:
        cards.restamp(connection, encoder, revision)


def put_vectors(
    connection: sqlite3.Connection, encoder: StoredEncoder, ids: Sequence[int], vectors: Vectors, revision: int
) -> None:
    """Store checked vectors, replacing those the items had."""
    if not len(ids):
        return
    connection.executemany(
        f"INSERT OR REPLACE INTO {encoder.table} (item, revision, data) VALUES (?, ?, ?)",
        zip(ids, [revision] * len(ids), _blobs(encoder, vectors), strict=True),
    )
    cards.restamp(connection, encoder, revision)


def _blobs(encoder: StoredEncoder, vectors: Vectors) -> list[bytes]:
    kept = vectors.astype("<f2" if encoder.dtype == "float16" else "<f4")
    return [row.tobytes() for row in kept]


def check(encoder: StoredEncoder, vectors: Vectors) -> None:
    """Refuse vectors that would be no direction, or not what the card promises.

    Raises:
        NonFiniteError: a row of length zero, or beyond the range of float16 where that is how they are stored.
        InputError: rows not of length 1 where the card says they are.
    """
    with np.errstate(over="ignore"):
        kept = vectors.astype(np.float16).astype(np.float32) if encoder.dtype == "float16" else vectors
        norms = np.sqrt(np.einsum("nd,nd->n", kept, kept, dtype=np.float64))
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if bad.size:
        raise NonFiniteError(f"The vector in row {bad[0]} has length {norms[bad[0]]} when stored as {encoder.dtype}.")
    long = np.flatnonzero(np.abs(norms - 1) > 0.01) if encoder.card.normalised else bad
    if long.size:
        raise InputError(
            f"The card of {encoder.card.name!r} promises vectors of length 1; row {long[0]} has {norms[long[0]]:.4g}.",
            hint="Normalise the vectors, or give a card with normalised=False.",
        )


def from_blobs(encoder: StoredEncoder, blobs: list[bytes]) -> Vectors:
    """Return stored vectors as (n, d) float32.

    Raises:
        CatalogueError: bytes that are not one vector each.
    """
    width = encoder.card.dim * (2 if encoder.dtype == "float16" else 4)
    if any(len(blob) != width for blob in blobs):
        raise CatalogueError(
            f"A stored vector of {encoder.card.name!r} is not {width} bytes long: the catalogue is damaged.",
            hint="Run: lookalike verify",
        )
    flat = np.frombuffer(b"".join(blobs), dtype="<f2" if encoder.dtype == "float16" else "<f4")
    return flat.astype(np.float32).reshape(len(blobs), encoder.card.dim)
