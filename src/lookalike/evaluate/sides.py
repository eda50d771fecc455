"""Who asks and who answers: vectors with ids, names and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.arrays import Ids, Vectors, as_ids, as_vectors
from lookalike.datasets.pictures import LabelledPictures, spelling
from lookalike.errors import InputError, ShapeError

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.external.store import ExternalStore


@dataclass(frozen=True, kw_only=True)
class Side:
    """Queries or gallery: row i of every field is the same item.

    The same `id` on both sides is the same item, which is how a query is removed from its own gallery.

    Raises:
        ShapeError: a column is not as long as the vectors.
        NonFiniteError: NaN or infinity among the vectors; the rows are named.

    >>> side = Side(vectors=np.eye(2, dtype=np.float32), ids=np.array([7, 9]), columns={"label": ("mug", "cup")})
    >>> side.names, side.column("label")
    (('7', '9'), ('mug', 'cup'))
    """

    vectors: Vectors
    ids: Ids
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """How a person sees each item; the ids where nothing else is given."""
    paths: tuple[str, ...] = ()
    """Absolute paths of the pictures; empty where the vectors came ready."""
    further: tuple[Vectors, ...] = ()
    """(n, d') the same items by other encoders, whose rankings may be fused with the first's."""

    def __post_init__(self) -> None:
        vectors = as_vectors(self.vectors)
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "ids", as_ids(self.ids, len(vectors)))
        if not self.names:
            object.__setattr__(self, "names", tuple(map(str, self.ids.tolist())))
        for name, column in {"names": self.names, **self.columns}.items():
            if len(column) != len(vectors):
                raise ShapeError(f"{name!r} has {len(column)} entries for {len(vectors)} vectors; one each is needed.")

        for other in self.further:
            if len(other) != len(vectors):
                raise ShapeError(f"Another encoder has {len(other)} vectors for {len(vectors)}; one each is needed.")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of_pictures(cls, pictures: LabelledPictures, vectors: Vectors, *, ids: Ids | None = None) -> Side:
        """Join labelled pictures with their vectors; ids are row numbers where none are given."""
        numbers = np.arange(len(pictures)) if ids is None else ids
        return cls(vectors=vectors, ids=numbers, columns=pictures.columns, names=pictures.names, paths=pictures.paths)

    @classmethod
    def of_catalogue(cls, catalogue: Catalogue | ExternalStore) -> Side:
        """Take every item of a catalogue with its stored vector and columns, in id order; nothing is embedded."""
        ids = catalogue.ids()
        return cls(
            vectors=catalogue.vectors(ids),
            ids=ids,
            columns={column.name: tuple(catalogue.column(column.name, ids)) for column in catalogue.columns()},
            names=tuple(catalogue.paths(ids)),
            paths=tuple(map(str, catalogue.files(ids))) if catalogue.root else (),
        )

    def column(self, name: str) -> Sequence[Any]:
        """Return one column, or raise InputError listing those that exist."""
        if name not in self.columns:
            raise InputError(f"There is no column {name!r}.", hint=spelling(name, self.columns, kind="columns"))
        return self.columns[name]

    def having(self, ids: Iterable[int]) -> Side:
        """Return the items with these ids, in the order they stand here; ids that are not here are passed over."""
        return self._rows(np.flatnonzero(np.isin(self.ids, np.fromiter(ids, dtype=np.int64))).tolist())

    def _rows(self, rows: list[int]) -> Side:
        return replace(
            self,
            vectors=self.vectors[rows],
            ids=self.ids[rows],
            columns={name: tuple(column[row] for row in rows) for name, column in self.columns.items()},
            names=tuple(self.names[row] for row in rows),
            paths=tuple(self.paths[row] for row in rows) if self.paths else (),
            further=tuple(vectors[rows] for vectors in self.further),
        )

    def by_id(self) -> Side:
        """Return the items in ascending id order, itself where they are."""
        if (np.diff(self.ids) > 0).all():
            return self
        return self._rows(np.argsort(self.ids).tolist())

    def renumbered(self, first: int) -> Side:
        """Return the same items with ids from `first` on, for sides that have no item in common."""
        return replace(self, ids=np.arange(first, first + len(self)))
