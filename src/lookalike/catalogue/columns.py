"""The user's own columns: typed, filterable, indexed on request."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.catalogue.where import Field, Type, Value
from lookalike.errors import InputError, InputTypeError, UnknownNameError

BUILTIN: Mapping[str, Field] = {
    "id": Field("items.id", "integer"),
    "path": Field("items.path", "text"),
    "width": Field("items.width", "integer"),
    "height": Field("items.height", "integer"),
    "frames": Field("items.frames", "integer"),
    "size": Field("items.size", "integer"),
}
MAX_COLUMNS = 1_000
"""SQLite allows 2,000 columns a table."""


@dataclass(frozen=True)
class Column:
    """A user column."""

    name: str
    type: Type
    indexed: bool
    field: str
    """Its name in the table of items; the user's own name never becomes SQL."""

    @property
    def stored_field(self) -> Field:
        """How a statement names it."""
        return Field(f"items.{self.field}", self.type)


def listed(connection: sqlite3.Connection) -> list[Column]:
    """Return the user columns, oldest first."""
    rows = connection.execute("SELECT name, type, indexed, id FROM columns ORDER BY id")
    return [Column(name, type_, bool(indexed), f"c{number}") for name, type_, indexed, number in rows]


def fields(connection: sqlite3.Connection) -> dict[str, Field]:
    """Return every column a filter may name."""
    return {**BUILTIN, **{column.name: column.stored_field for column in listed(connection)}}


def named(connection: sqlite3.Connection, name: str) -> Column:
    """Return the user column of this name, or raise UnknownNameError."""
    known = listed(connection)
    for column in known:
        if column.name == name:
            return column
    raise UnknownNameError("column", name, [column.name for column in known])


def ensure(connection: sqlite3.Connection, name: str, type_: Type) -> Column:
    """Return the column of this name, made where there is none.

    Raises:
        InputError: it exists with another type, has the name of a built-in column, or is one too many.
    """
    known = {column.name: column for column in listed(connection)}
    if name in known:
        if known[name].type != type_:
            raise InputError(
                f"Column {name!r} holds {known[name].type} and the new values are {type_}.",
                hint="State the type you mean, or drop the column first.",
            )
        return known[name]
    if not name.strip() or name.lower() in BUILTIN:
        raise InputError(f"{name!r} cannot be the name of a column: {', '.join(BUILTIN)} are the catalogue's own.")
    if len(known) >= MAX_COLUMNS:
        raise InputError(f"A catalogue has at most {MAX_COLUMNS} columns.")
    cursor = connection.execute("INSERT INTO columns (name, type) VALUES (?, ?)", (name, type_))
    column = Column(name, type_, False, f"c{cursor.lastrowid}")
    # No affinity: what is written is what is read, '007' stays text.
    connection.execute(f"ALTER TABLE items ADD COLUMN {column.field}")
    return column


def drop(connection: sqlite3.Connection, column: Column) -> None:
    """Remove a column with its values."""
    connection.execute(f"DROP INDEX IF EXISTS items_{column.field}")
    connection.execute(f"ALTER TABLE items DROP COLUMN {column.field}")
    connection.execute("DELETE FROM columns WHERE name = ?", (column.name,))


def index(connection: sqlite3.Connection, column: Column) -> None:
    """Make filters on this column fast."""
    connection.execute(f"CREATE INDEX IF NOT EXISTS items_{column.field} ON items({column.field})")
    connection.execute("UPDATE columns SET indexed = 1 WHERE name = ?", (column.name,))


def write(connection: sqlite3.Connection, column: Column, ids: Sequence[int], values: Sequence[Value]) -> None:
    """Set the values of a column for these items."""
    connection.executemany(f"UPDATE items SET {column.field} = ? WHERE id = ?", zip(values, map(int, ids), strict=True))


def read(values: Iterable[Any], type_: Type) -> list[Value]:
    """Turn stored values back into Python's."""
    return [None if value is None else bool(value) for value in values] if type_ == "boolean" else list(values)


def typed(
    name: str, values: Sequence[Any] | np.ndarray[Any, Any], type_: Type | None = None
) -> tuple[Type, list[Value]]:
    """Bring a column to one type: the stated one, or the narrowest that loses nothing.

    Text that is written as whole numbers becomes integers unless that would change how it is written: `007` and `1.0`
    stay text. Empty text, None and NaN are missing.

    Raises:
        InputError: a value that is not of the stated type.
        InputTypeError: a value that is no scalar.

    >>> typed("sku", ["12", "", "7"]), typed("sku", ["12", "007"])
    (('integer', [12, None, 7]), ('text', ['12', '007']))
    """
    plain = [_plain(name, value) for value in values]
    present = [value for value in plain if value is not None]
    chosen = type_ or _narrowest(present)
    out: list[Value] = []
    for value in plain:
        try:
            out.append(None if value is None else _CONVERT[chosen](value))
        except (ValueError, OverflowError):
            raise InputError(f"Column {name!r} holds {chosen}, and {value!r} is not.") from None
    return chosen, out


def _narrowest(present: list[str | int | float | bool]) -> Type:
    """Return the first type that holds every value as it is written; text where there are none."""
    fitting = (guess for guess in _GUESSES if all(_fits(value, guess) for value in present))
    return next(fitting, "text") if present else "text"


_GUESSES: tuple[Type, ...] = ("boolean", "integer", "real")


def _plain(name: str, value: Any) -> str | int | float | bool | None:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)) or value == "":
        return None
    if isinstance(value, str | int | float):
        return value
    raise InputTypeError(f"Column {name!r} holds a {type(value).__name__}; a value is text, a number or true/false.")


def _fits(value: str | int | float | bool, type_: Type) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    if isinstance(value, int):
        return type_ in ("integer", "real") and -(2**63) <= value < 2**63
    if isinstance(value, float):
        return (type_ == "real" and math.isfinite(value)) or (
            type_ == "integer" and value.is_integer() and abs(value) < 2**53
        )
    try:
        return type_ != "boolean" and str(_CONVERT[type_](value)) == value
    except (ValueError, OverflowError):
        return False


def _integer(value: str | int | float | bool) -> int:
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError(value)
    if not -(2**63) <= number < 2**63:
        raise OverflowError(value)
    return number


def _real(value: str | int | float | bool) -> float:
    number = float(value)
    if not math.isfinite(number):  # the database keeps NaN as missing, and JSON has no word for either
        raise ValueError(value)
    return number


def _boolean(value: str | int | float | bool) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).lower() not in words:
        raise ValueError(value)
    return words[str(value).lower()]


def _text(value: str | int | float | bool) -> str:
    if isinstance(value, float) and value.is_integer():  # a column of integers with gaps arrives as floats
        return str(int(value))
    text = str(value)
    text.encode()  # text that is not UTF-8 cannot be stored; UnicodeEncodeError is a ValueError
    return text


_CONVERT: Mapping[Type, Any] = {"text": _text, "integer": _integer, "real": _real, "boolean": _boolean}
