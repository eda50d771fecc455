"""What an engine keeps of a store: rows with a stamp of their contents, and a description of the whole."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.cards import Dtype
from lookalike.catalogue.columns import Column
from lookalike.catalogue.conditions import Field, Value
from lookalike.embed.encoder import Card
from lookalike.errors import CatalogueError
from lookalike.index.neighbours import Metric

FORMAT = 1
BUILTIN: tuple[Column, ...] = tuple(
    Column(name, "integer", indexed=False, field=name) for name in ("width", "height", "frames", "size")
)
"""What a catalogue knows of a file beside its path; a filter may name these too."""


@dataclass(frozen=True)
class State:
    """The description of a store, kept in the engine beside the rows: what its vectors are, and how far it is."""

    card: Card
    metric: Metric
    dtype: Dtype = "float32"
    columns: tuple[Column, ...] = ()
    index: str = ""
    """The index and its settings, as its own class writes them."""
    root: str | None = None
    """The folder the paths start from, on the machine that pushed."""
    revision: int | None = None
    """The catalogue's revision the rows are complete for; None while a push has begun and not finished."""
    token: str | None = None
    """The state of the catalogue's vectors at that revision."""
    highest: int | None = None
    """No id is above this one; None where nobody knows."""
    overlap: dict[str, Any] | None = None
    """Measured overlap with exact search."""
    place: str = ""
    """The table or collection that answers."""

    def to_json(self) -> str:
        """Write as JSON."""
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)})

    @classmethod
    def from_json(cls, text: str, where: str) -> State:
        """Read what `to_json` wrote.

        Raises:
            CatalogueError: written by a newer version.
        """
        values = json.loads(text)
        found = values.pop("format")
        if found > FORMAT:
            raise CatalogueError(
                f"{where} has format {found}; this version of lookalike reads up to {FORMAT}.",
                hint="Upgrade lookalike: pip install -U lookalike",
            )
        values["card"] = Card(**values["card"])
        values["columns"] = tuple(Column(**column) for column in values["columns"])
        return cls(**values)

    @property
    def kept(self) -> tuple[Column, ...]:
        """Every column of a row beside its id, path and vector."""
        return (*BUILTIN, *self.columns)

    @property
    def fields(self) -> dict[str, Field]:
        """What a filter may name."""
        named = {"id": Field("id", "integer"), "path": Field("path", "text")}
        return named | {column.name: Field(column.field, column.type) for column in self.kept}


@dataclass(frozen=True)
class Rows:
    """Some rows on their way to an engine."""

    ids: Ids
    """(n,)."""
    paths: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    """One value a column of `State.kept`; booleans as 0 and 1."""
    vectors: Vectors
    """(n, d)."""
    stamps: Ids
    """(n,) int64: digest of everything in the row. Two rows of one stamp are the same row."""

    def __len__(self) -> int:
        return len(self.paths)

    @classmethod
    def of(
        cls,
        ids: Sequence[int] | Ids,
        paths: Sequence[str],
        values: Sequence[Sequence[Value]],
        vectors: Vectors,
        kept: Sequence[Column],
    ) -> Rows:
        """Stamp rows that hold a value for each of the `kept` columns."""
        plain = tuple(tuple(int(value) if isinstance(value, bool) else value for value in row) for row in values)
        stamps = [
            _stamp(path, row, vector.tobytes(), kept) for path, row, vector in zip(paths, plain, vectors, strict=True)
        ]
        return cls(np.array(ids, np.int64), tuple(paths), plain, vectors, np.array(stamps, np.int64))

    def select(self, at: Ids) -> Rows:
        """Return these rows."""
        return Rows(
            self.ids[at],
            tuple(self.paths[i] for i in at),
            tuple(self.values[i] for i in at),
            self.vectors[at],
            self.stamps[at],
        )

    def cut(self, rows: int) -> Iterator[Rows]:
        """Yield parts of at most so many rows."""
        for start in range(0, len(self), rows):
            yield self.select(np.arange(start, min(start + rows, len(self))))


def path_text(path: str) -> tuple[str, str | None]:
    r"""Return a path as engines keep it: the text, and the bytes in hex where they are not UTF-8.

    >>> path_text("mugs/ü.jpg"), path_text(os.fsdecode(b"a\xff.jpg"))
    (('mugs/ü.jpg', None), ('a\\xff.jpg', '61ff2e6a7067'))
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raw = os.fsencode(path)
        return raw.decode("utf-8", "backslashreplace"), raw.hex()
    return path, None


def path_of(text: str, raw: str | None) -> str:
    """Return the path that `path_text` wrote."""
    return text if raw is None else os.fsdecode(bytes.fromhex(raw))


def _stamp(path: str, values: Sequence[Value], vector: bytes, kept: Sequence[Column]) -> int:
    """Digest a row. A missing value leaves no trace, so that a new column changes the rows it has values for."""
    digest = hashlib.blake2b(digest_size=8)
    known = [
        (column.field, column.type, value) for column, value in zip(kept, values, strict=True) if value is not None
    ]
    digest.update(repr((path, known)).encode(errors="surrogateescape"))
    digest.update(vector)
    return int.from_bytes(digest.digest(), "big", signed=True)
