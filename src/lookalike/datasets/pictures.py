"""What every reader returns: pictures with named columns of text, one row a picture."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from lookalike.errors import InputError, ShapeError
from lookalike.images.load import Failure

Column: TypeAlias = tuple[str | None, ...]
T = TypeVar("T")

LISTED = 12  # names listed in an error before "… and N more"


@dataclass(frozen=True, kw_only=True)
class LabelledPictures:
    """Pictures and what is known about them: row i of every field is the same picture.

    `paths` are absolute, `names` are how a person sees them (relative to `root`, with forward slashes), and `columns`
    hold what the source says about each (label, identity, camera, split, …). `skipped` counts, by reason, the files
    the reader passed over; `failed` lists, with the reason, what it could not look at.

    Values stay text, exactly as written, and None where the source says nothing: labels are never numbers here,
    because numbers above 2²⁴ collide as soon as somebody stores them as float32.

    Raises:
        ShapeError: fields of different lengths.

    >>> shop = LabelledPictures(root="/p", names=("a.jpg", "b.jpg"), paths=("/p/a.jpg", "/p/b.jpg"),
    ...                         columns={"label": ("mug", None)})
    >>> len(shop), shop.column("label"), shop.missing("label")
    (2, ('mug', None), 1)
    >>> shop.select([1]).names
    ('b.jpg',)
    """

    root: str
    names: tuple[str, ...]
    paths: tuple[str, ...]
    columns: Mapping[str, Column] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        lengths = {"names": len(self.names), **{name: len(values) for name, values in self.columns.items()}}
        for name, length in lengths.items():
            if length != len(self.paths):
                raise ShapeError(f"Column {name!r} has {length} rows where there are {len(self.paths)} pictures.")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def __len__(self) -> int:
        return len(self.paths)

    def column(self, name: str) -> Column:
        """Return one column, a value or None a picture.

        Raises:
            InputError: no such column; the ones that exist are listed, the closest spelling first.
        """
        if name not in self.columns:
            raise InputError(f"There is no column {name!r}.", hint=spelling(name, self.columns, kind="columns"))
        return self.columns[name]

    def missing(self, name: str) -> int:
        """Count the pictures for which the column says nothing."""
        return self.column(name).count(None)

    def values(self, name: str) -> dict[str, int]:
        """Count the pictures of each value of a column, values in sorted order, missing ones left out."""
        counts = Counter(value for value in self.column(name) if value is not None)
        return {value: counts[value] for value in sorted(counts)}

    def rows(self, name: str, value: str) -> list[int]:
        """Return the rows at which a column has a value, for example split = test.

        Raises:
            InputError: no such column, or no picture with that value; the ones that exist are listed.
        """
        found = [row for row, each in enumerate(self.column(name)) if each == value]
        if not found:
            hint = spelling(value, self.values(name), kind="values") if self.values(name) else "The column is empty."
            raise InputError(f"No picture has {name} = {value!r}.", hint=hint)
        return found

    def select(self, rows: Iterable[int]) -> LabelledPictures:
        """Return the pictures at these rows, in this order."""
        keep = [int(row) for row in rows]
        return replace(
            self,
            names=_pick(self.names, keep),
            paths=_pick(self.paths, keep),
            columns={name: _pick(values, keep) for name, values in self.columns.items()},
        )

    def with_column(self, name: str, values: Iterable[str | None]) -> LabelledPictures:
        """Return the same pictures with one column added or replaced."""
        return replace(self, columns={**self.columns, name: tuple(values)})


def spelling(name: str, known: Iterable[str], *, kind: str) -> str:
    """Say which names exist, the closest first, in one sentence for the end of an error.

    >>> spelling("lable", ["path", "label"], kind="columns")
    "Did you mean 'label'? The columns are: path, label."
    """
    names = list(known)
    if not names:
        return f"There are no {kind}."
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    guess = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    more = f" … and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{guess}The {kind} are: {', '.join(names[:LISTED])}{more}."


def _pick(values: Sequence[T], rows: list[int]) -> tuple[T, ...]:
    return tuple(values[row] for row in rows)
