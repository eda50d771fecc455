"""The contract of every store: MemoryStore, Catalogue and the external engines answer the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.embed.encoder import Card
from lookalike.index.neighbours import Metric, Neighbours


class Candidate(NamedTuple):
    """One ranked match: the item's path in the store, and its score in the metric's direction."""

    path: str
    score: float


@dataclass(frozen=True)
class Hits:
    """The ranked candidates of one query, best first; iterating gives `Candidate` rows."""

    ids: Ids
    scores: Scores
    paths: tuple[str, ...]
    metric: Metric

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rank: int) -> Candidate:
        return Candidate(self.paths[rank], float(self.scores[rank]))

    def __iter__(self) -> Iterator[Candidate]:
        return (self[rank] for rank in range(len(self)))


@runtime_checkable
class Store(Protocol):
    """Ids, vectors readable back by id, and ranked neighbours; what `rank` and `evaluate` need of a store."""

    @property
    def metric(self) -> Metric:
        """The metric chosen when the store was made."""

    @property
    def card(self) -> Card | None:
        """Card of the encoder that made the vectors; None for vectors brought ready without one."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    def __len__(self) -> int:
        """Number of live items."""

    def ids(self, *, where: str | None = None) -> Ids:
        """Ids of the live items, ascending; of those that pass the filter where one is given."""

    def neighbours(self, queries: Vectors, k: int, *, where: str | None = None) -> Neighbours:
        """Rank the live items for each of (q, d) queries."""

    def vectors(self, ids: Ids) -> Vectors:
        """(n, d) vectors of these items, in this order; an id the store does not hold raises InputError."""

    def paths(self, ids: Ids) -> list[str]:
        """Paths of these items, in this order."""

    def ids_of(self, paths: Sequence[str]) -> Ids:
        """Ids of the items at these paths, in this order; a path the store does not hold raises InputError."""
