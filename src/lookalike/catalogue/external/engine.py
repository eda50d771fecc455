"""The few questions every engine is asked, in its own words; `store` makes the contract of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.columns import Column
from lookalike.catalogue.conditions import Condition
from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.rows import Rows, State
from lookalike.embed.encoder import Encoder


class Engine(ABC):
    """A table of rows somewhere else: what an engine has to be able to say."""

    deepest: int | None = None
    """The most candidates the engine gives for one query; beyond, search is exact."""
    few_floats = 0
    """Rows that pass a filter are all compared where their vectors hold no more numbers than this."""

    def __init__(self, address: Address, state: State, threads: int | None) -> None:
        self.address = address
        self.state = state
        self.threads = threads
        self._maker: Encoder | None = None

    @abstractmethod
    def _count(self, condition: Condition | None) -> int:
        """Count the rows that pass."""

    @abstractmethod
    def _ids(self, condition: Condition | None) -> Ids:
        """Return the ids of the rows that pass, ascending."""

    @abstractmethod
    def _nearest(self, query: Vectors, count: int, condition: Condition | None) -> tuple[Ids, Vectors]:
        """Return about the `count` best rows by the engine's index, with their vectors."""

    @abstractmethod
    def _blocks(self, condition: Condition | None) -> Iterator[tuple[Ids, Vectors]]:
        """Stream the vectors of the rows that pass."""

    @abstractmethod
    def _vectors(self, ids: Ids) -> tuple[Ids, Vectors]:
        """Return those of these rows that exist."""

    @abstractmethod
    def _values(self, ids: Ids, fields: Sequence[str]) -> dict[int, tuple[Any, ...]]:
        """Return columns of those of these rows that exist."""

    @abstractmethod
    def _located(self, paths: Sequence[str]) -> dict[str, int]:
        """Return the ids of those paths that exist."""

    @abstractmethod
    def stamps(self) -> tuple[Ids, Ids]:
        """Return the ids of all rows, ascending, and the stamp of each."""

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Insert rows, or replace those that are there; all of them or none. Repeating it changes nothing."""

    @abstractmethod
    def remove(self, ids: Ids) -> None:
        """Delete rows; those that are not there are no error."""

    @abstractmethod
    def save(self, state: State) -> None:
        """Keep the description in the engine, and use it from now on."""

    @abstractmethod
    def begin(self, columns: Sequence[Column]) -> None:
        """Make room for these user columns, and say that what is stored is no longer complete."""

    @abstractmethod
    def finish(self) -> None:
        """Do what is done once after many rows: build the index where there is none, switch to what was filled."""

    @abstractmethod
    def size(self) -> int | None:
        """Bytes the store takes in the engine; None where the engine does not say."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection."""

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """Be the one writer for the length of the block, where the engine has locks."""
        del purpose
        yield
