"""The contract of a catalogue over any engine; an engine adds how a few questions are said to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors, as_vectors, unit
from lookalike.catalogue import columns as typed_columns
from lookalike.catalogue import where as filters
from lookalike.catalogue.columns import Column
from lookalike.catalogue.conditions import Chain, Compare, Condition, Like, Missing, Not, OneOf, Value, settled
from lookalike.catalogue.external.engine import Engine
from lookalike.catalogue.external.ranking import SLACK, best_of, in_order, ranked, undecided
from lookalike.catalogue.external.rows import State, path_of
from lookalike.catalogue.queries import as_queries, embedded
from lookalike.catalogue.store import Hits
from lookalike.embed.encoder import Card, Encoder
from lookalike.embed.registry import encoder as resolve
from lookalike.errors import CutOffError, EncoderMismatchError, InputError, InputTypeError, UnknownNameError
from lookalike.index.neighbours import Metric, Neighbours

_FETCH_IDS = 1_000


class ExternalStore(Engine):
    """A store whose rows live in an engine: ids, filters, vectors and answers as in a catalogue.

    Candidates come from the engine's index and are scored again here, in float64 on the vectors it gives back, so
    scores, order and ties are those of every other store; what is approximate is only which candidates the index
    finds. Where it gives fewer than k although more pass, the engine compares all of them.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.address)!r}, encoder={self.card.name!r}, metric={self.metric!r})"

    @property
    def metric(self) -> Metric:
        """The metric chosen when the store was made."""
        return self.state.metric

    @property
    def card(self) -> Card:
        """Card of the encoder that made the vectors."""
        return self.state.card

    @property
    def target(self) -> State:
        """What rows are written for: the description in force, or the one that `finish` puts in force."""
        return self.state

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.state.card.dim

    @property
    def revision(self) -> int | None:
        """The catalogue's revision this store is complete for; None where rows changed by hand or are on the way."""
        return self.state.revision

    @property
    def root(self) -> Path | None:
        """The folder the paths start from, on the machine that pushed."""
        return Path(self.state.root) if self.state.root else None

    @property
    def encoder(self) -> Encoder:
        """The encoder itself, loaded when first needed.

        Raises:
            EncoderMismatchError: what loads under this name today makes other vectors than those stored.
        """
        if self._maker is None:
            maker = resolve(self.card.name, normalise=self.card.normalised, threads=self.threads)
            self.check(maker.card)
            self._maker = maker
        return self._maker

    def check(self, card: Card, metric: str | None = None) -> None:
        """Refuse vectors of another encoder, or another metric.

        Raises:
            EncoderMismatchError: the differences are named, the store's own first.
        """
        if card.digest != self.card.digest:
            raise EncoderMismatchError(
                f"The store {self.address} was made by another encoder (its own first): "
                f"{'; '.join(self.card.differences(card))}.",
                hint="Use the encoder it was made with, or give the other one a table of its own: ?table=NAME.",
            )
        if metric is not None and metric != self.metric:
            raise EncoderMismatchError(
                f"The store {self.address} was made for the metric {self.metric!r}, not {metric!r}.",
                hint="A metric is chosen once: give the other one a table of its own: ?table=NAME.",
            )

    def __len__(self) -> int:
        return self._count(None)

    def ids(self, *, where: str | None = None) -> Ids:
        """Ids of the items, ascending; of those that pass the filter where one is given.

        Raises:
            FilterError: the filter cannot be understood; the place is shown.
            CatalogueError: the engine is away; so for every method.
        """
        return self._ids(self._condition(where))

    def neighbours(self, queries: Vectors, k: int, *, where: str | None = None, exact: bool = False) -> Neighbours:
        """Rank the items for each of (q, d) queries, best first, equal scores in id order.

        With a filter, k items come back whenever k pass it. `exact` passes over the engine's index and compares all.

        Raises:
            ShapeError, NonFiniteError, CutOffError, FilterError: as a catalogue.
        """
        checked = as_vectors(queries, name="queries", dim=self.dim)
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise InputTypeError(f"k must be a whole number, not {k!r}.")
        if k < 1:
            raise CutOffError(int(k), len(self))
        if self.metric == "cosine":
            unit(checked, name="queries")
        condition = self._condition(where)
        few = condition is not None and self.few_floats > 0 and self._count(condition) * self.dim <= self.few_floats
        if exact or few:
            return Neighbours.from_rows(self._all(checked, int(k), condition), self.metric)
        return Neighbours.from_rows([self._answer(query, int(k), condition) for query in checked], self.metric)

    def _answer(self, query: Vectors, k: int, condition: Condition | None) -> tuple[Ids, Scores]:
        """Rank for one (d,) query, fetching more until nothing beyond could belong among the first k."""
        wanted = k + SLACK
        while self.deepest is None or wanted <= self.deepest:
            ids, scores = ranked(query, *self._nearest(query, wanted, condition), self.metric)
            if len(ids) < wanted:
                if len(ids) >= k or len(ids) >= self._count(condition):
                    return ids[:k], scores[:k]
                break  # an index gave up before k of those that pass
            if not undecided(scores, k, self.state.dtype):
                return ids[:k], scores[:k]
            wanted *= 4
        return self._all(query[None], k, condition)[0]

    def _all(self, queries: Vectors, k: int, condition: Condition | None) -> list[tuple[Ids, Scores]]:
        return best_of(self._blocks(condition), queries, k, self.metric, self.threads)

    def sample(self, count: int, seed: int = 0) -> Ids:
        """Return `count` ids drawn at random, ascending, or all where there are fewer; a seed draws the same again.

        Where ids lie close, as those of a catalogue do, numbers are drawn and those kept that are ids: of a thousand
        million rows none has to be listed.
        """
        rng, highest = np.random.default_rng(seed), self.state.highest
        if highest is not None and highest > 8 * count:
            drawn = np.unique(rng.integers(0, highest + 1, 4 * count))
            found = np.array([number for part in _parts(drawn) for number in self._values(part, ("path",))], np.int64)
            if len(found) >= count:
                return np.sort(rng.choice(np.sort(found), count, replace=False))
        ids = self.ids()
        return ids if len(ids) <= count else np.sort(rng.choice(ids, count, replace=False))

    def vectors(self, ids: Ids) -> Vectors:
        """(n, d) vectors of these items, in this order, as the engine keeps them.

        Raises:
            InputError: an id the store does not hold.
        """
        wanted = np.asarray(ids, dtype=np.int64).ravel()
        parts = [self._vectors(part) for part in _parts(np.unique(wanted))]
        empty = np.empty((0, self.dim), np.float32)
        found = np.concatenate([np.empty(0, np.int64), *(some for some, _ in parts)])
        rows, missing = in_order(wanted, found, np.concatenate([empty, *(some for _, some in parts)]))
        if len(missing):
            raise InputError(f"The store holds no item {missing[0]}.")
        return np.ascontiguousarray(rows)

    def paths(self, ids: Ids) -> list[str]:
        """Paths of these items, in this order.

        Raises:
            InputError: an id the store does not hold.
        """
        return [path_of(*row) for row in self._columns(ids, ("path", "raw"))]

    def ids_of(self, paths: Sequence[str]) -> Ids:
        """Ids of the items at these paths, in this order.

        Raises:
            InputError: a path the store does not hold.
        """
        start = f"{self.state.root}/" if self.state.root else "\0"
        inside = [path.removeprefix(start).removeprefix("./") for path in paths]
        found: dict[str, int] = {}
        for at in range(0, len(inside), _FETCH_IDS):
            found |= self._located(list(dict.fromkeys(inside[at : at + _FETCH_IDS])))
        for path, name in zip(paths, inside, strict=True):
            if name not in found:
                raise InputError(f"The store holds no item at {path!r}.")
        return np.array([found[name] for name in inside], dtype=np.int64)

    def files(self, ids: Ids) -> list[Path]:
        """Absolute paths of these items.

        Raises:
            InputError: the catalogue that was pushed held ready vectors without a folder.
        """
        if self.root is None:
            raise InputError("This store knows no folder of pictures.", hint="Push a catalogue that has one.")
        return [self.root / path for path in self.paths(ids)]

    def cards(self) -> list[Card]:
        """Cards of the encoders that have vectors here: one a store."""
        return [self.card]

    def columns(self) -> list[Column]:
        """The user's columns."""
        return list(self.state.columns)

    def column(self, name: str, ids: Ids | None = None) -> list[Value]:
        """Values of a column for these items (all of them where None), None where missing."""
        fields = self.state.fields
        if name not in fields:
            raise UnknownNameError("column", name, list(fields))
        wanted = self.ids() if ids is None else ids
        if name == "path":
            return list(self.paths(wanted))
        if name == "id":
            self._columns(wanted, ("path",))
            return [int(number) for number in wanted]
        rows = self._columns(wanted, (fields[name].sql,))
        return typed_columns.read([value for (value,) in rows], fields[name].type)

    def _columns(self, ids: Ids, fields: Sequence[str]) -> list[tuple[Any, ...]]:
        wanted = np.asarray(ids, dtype=np.int64).ravel()
        found: dict[int, tuple[Any, ...]] = {}
        for part in _parts(np.unique(wanted)):
            found |= self._values(part, fields)
        for number in wanted.tolist():
            if number not in found:
                raise InputError(f"The store holds no item {number}.")
        return [found[number] for number in wanted.tolist()]

    def search(self, query: Any, k: int = 10, *, where: str | None = None, exact: bool = False) -> list[Hits]:
        """Return the k best items for each query; see `Catalogue.search`."""
        vectors = embedded(as_queries(query), self.dim, lambda: self.encoder, self.vectors, self.threads)
        found = self.neighbours(vectors, k, where=where, exact=exact)
        return [Hits(ids, scores, tuple(self.paths(ids)), self.metric) for ids, scores in found]

    def touched(self) -> None:
        """Note that rows are changed by hand, so that the next push compares them all."""
        if self.state.revision is not None:
            self.save(dataclasses.replace(self.state, revision=None, token=None, highest=None))

    def _condition(self, text: str | None) -> Condition | None:
        if text is None:
            return None
        condition = settled(filters.tree(text, self.state.fields))
        fields = {field.sql: field for field in self.state.fields.values()}
        for leaf in leaves(condition):
            if isinstance(leaf, Like) and fields[leaf.field.sql].type != "text":
                raise InputError(
                    f"Filter {text!r}: `like` and `contains` look into columns of text.", hint="Compare numbers with =."
                )
        return condition


def leaves(condition: Condition) -> Iterator[Compare | OneOf | Like | Missing]:
    """Yield the comparisons of a condition."""
    if isinstance(condition, Chain):
        for part in condition.parts:
            yield from leaves(part)
    elif isinstance(condition, Not):
        yield from leaves(condition.part)
    else:
        yield condition


def _parts(ids: Ids) -> Iterator[Ids]:
    return (ids[start : start + _FETCH_IDS] for start in range(0, len(ids), _FETCH_IDS))
