"""The encoders whose vectors a catalogue holds, side by side, each with its card."""

from __future__ import annotations

import dataclasses
import json
import secrets
import sqlite3
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from lookalike.catalogue.schema import vector_table
from lookalike.embed.encoder import Card, Encoder
from lookalike.errors import CatalogueError, EncoderMismatchError, UnknownNameError

Dtype: TypeAlias = Literal["float32", "float16"]


@dataclass(frozen=True)
class Stamp:
    """One state of the vectors of one encoder; two equal stamps are the same vectors.

    The token tells two histories apart that reached the same revision, as a restored backup does.
    """

    revision: int
    token: str


@dataclass(frozen=True)
class StoredEncoder:
    """A row of the encoders' table."""

    id: int
    card: Card
    dtype: Dtype

    @property
    def table(self) -> str:
        """Name of its vector table."""
        return f"vectors_{self.id}"


def check_dtype(name: str) -> Dtype:
    """Return the storage type of that name, or raise UnknownNameError."""
    for dtype in get_args(Dtype):
        if dtype == name:
            return dtype  # type: ignore[no-any-return]
    raise UnknownNameError("vector type", name, get_args(Dtype))


def listed(connection: sqlite3.Connection) -> list[StoredEncoder]:
    """Return the stored encoders, first added first."""
    rows = connection.execute("SELECT id, card, dtype, digest FROM encoders ORDER BY id").fetchall()
    known = {field.name for field in dataclasses.fields(Card)}
    found = []
    for row, text, dtype, digest in rows:
        card = Card(**{name: value for name, value in json.loads(text).items() if name in known})
        if card.digest != digest:
            raise CatalogueError(
                f"The card of encoder {card.name!r} does not have the digest stored beside it ({digest}).",
                hint="The catalogue was written by another version, or is damaged: run lookalike verify.",
            )
        found.append(StoredEncoder(row, card, dtype))
    return found


def add(connection: sqlite3.Connection, card: Card, dtype: Dtype, revision: int) -> StoredEncoder:
    """Store a card and make its vector table."""
    cursor = connection.execute(
        "INSERT INTO encoders (name, digest, dim, dtype, card, revision, token) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (card.name, card.digest, card.dim, dtype, json.dumps(dataclasses.asdict(card)), revision, secrets.token_hex(8)),
    )
    stored = StoredEncoder(int(cursor.lastrowid or 0), card, dtype)
    for statement in vector_table(stored.id):
        connection.execute(statement)
    return stored


def drop(connection: sqlite3.Connection, encoder: StoredEncoder) -> None:
    """Remove an encoder with its vectors."""
    connection.execute(f"DROP TABLE {encoder.table}")
    connection.execute("DELETE FROM encoders WHERE id = ?", (encoder.id,))


def stamp(connection: sqlite3.Connection, encoder: StoredEncoder) -> Stamp:
    """Return the present state of an encoder's vectors."""
    row = connection.execute("SELECT revision, token FROM encoders WHERE id = ?", (encoder.id,)).fetchone()
    if row is None:
        raise CatalogueError(f"The encoder {encoder.card.name!r} was removed from the catalogue meanwhile.")
    return Stamp(*row)


def restamp(connection: sqlite3.Connection, encoder: StoredEncoder, revision: int) -> None:
    """Say that the vectors of an encoder changed in this revision."""
    connection.execute(
        "UPDATE encoders SET revision = ?, token = ? WHERE id = ?", (revision, secrets.token_hex(8), encoder.id)
    )


def choose(stored: list[StoredEncoder], wanted: Encoder | Card | str | None, folder: str) -> StoredEncoder:
    """Return the stored encoder that makes the same vectors as the one asked for; the first where none is.

    Raises:
        EncoderMismatchError: none does; the differences to the one of the same name (else the first) are named.
    """
    if wanted is None:
        return stored[0]
    if isinstance(wanted, str):
        for encoder in stored:
            if wanted in (encoder.card.name, encoder.card.digest):
                return encoder
        names = ", ".join(encoder.card.name for encoder in stored)
        raise EncoderMismatchError(
            f"The catalogue {folder!r} holds vectors of {names}, not of {wanted!r}.",
            hint="Open it with the encoder it has, or add the other one beside it with: lookalike index --encoder",
        )
    card = card_of(wanted)
    for encoder in stored:
        if encoder.card.digest == card.digest:
            return encoder
    nearest = next((encoder for encoder in stored if encoder.card.name == card.name), stored[0])
    other = (
        "make another catalogue"
        if nearest.card.name == card.name
        else ("add this one beside it with: lookalike index --encoder")
    )
    raise EncoderMismatchError(
        f"The catalogue {folder!r} was made by another encoder (its own first): "
        f"{'; '.join(nearest.card.differences(card))}.",
        hint=f"Use the encoder it was made with, or {other}.",
    )


def card_of(encoder: Encoder | Card) -> Card:
    """Return the card of an encoder, or the card itself."""
    return encoder if isinstance(encoder, Card) else encoder.card
