"""A store in Milvus: an embedded file, a server or a cluster, by one client."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.cards import check_dtype
from lookalike.catalogue.columns import Column
from lookalike.catalogue.conditions import Condition
from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.expression import as_milvus
from lookalike.catalogue.external.milvus_client import MAX_TOP, MilvusCalls
from lookalike.catalogue.external.milvus_schema import (
    MAX_BEAM,
    METRICS,
    STATES,
    as_records,
    check_index,
    fields_of,
    find_state,
    keep_state,
    make_collection,
    search_settings,
)
from lookalike.catalogue.external.milvus_turn import Turn
from lookalike.catalogue.external.patience import PATIENCE, Patience
from lookalike.catalogue.external.rows import Rows, State, path_of, path_text
from lookalike.catalogue.external.store import ExternalStore
from lookalike.embed.encoder import Card
from lookalike.errors import CatalogueError, NotFoundError
from lookalike.index.neighbours import check_metric

_PAGE = 8_000
_PAGE_BYTES = 16 << 20
_WRITE_BYTES = 8 << 20  # a call carries at most 64 MB, by the default of a server
_EVERYTHING = "id >= 0"


class MilvusStore(ExternalStore):
    """Items, columns and vectors in a collection of Milvus.

    Make one with `create`, open one with `open`; both are context managers. The fields of a collection are fixed: a
    push of other columns fills a new collection, and the old one answers until that is complete.
    """

    deepest = MAX_TOP
    few_floats = 1 << 20

    def __init__(self, address: Address, state: State, calls: MilvusCalls, threads: int | None) -> None:
        super().__init__(address, state, threads)
        self._calls = calls
        self._filling: State | None = None
        self._turn: Turn | None = None

    @classmethod
    def create(
        cls,
        address: Address,
        *,
        card: Card,
        metric: str = "cosine",
        dtype: str = "float32",
        index: str = "hnsw",
        columns: Sequence[Column] = (),
        patience: Patience = PATIENCE,
        threads: int | None = None,
    ) -> MilvusStore:
        """Make an empty store; `push` fills it. `dtype` float16 takes a server: the embedded file has no such type.

        Raises:
            CatalogueError: it is there already, the server is away, or another process holds the file.
            UnknownNameError: an index, metric or dtype in no table.
        """
        state = State(card, check_metric(metric), check_dtype(dtype), tuple(columns), check_index(index))
        calls = MilvusCalls(address, patience)
        try:
            if find_state(calls, address) is not None or calls.has(address.name):
                raise CatalogueError(
                    f"There is already a collection {address.name!r} at {address}.",
                    hint="Open it, or name another: ?collection=NAME.",
                )
            make_collection(calls, address.name, state)
            store = cls(address, dataclasses.replace(state, place=address.name), calls, threads)
            store.save(store.state)
        except BaseException:
            calls.close()
            raise
        return store

    @classmethod
    def open(
        cls,
        address: Address,
        *,
        patience: Patience = PATIENCE,
        threads: int | None = None,
    ) -> MilvusStore:
        """Open a store.

        Raises:
            NotFoundError: no store of that name there.
            CatalogueError: the server is away, or another process holds the file.
        """
        calls = MilvusCalls(address, patience, make=False)
        try:
            state = find_state(calls, address)
            if state is None:
                raise NotFoundError(
                    f"There is no store {address.name!r} at {address}.",
                    hint="Make one with: lookalike push CATALOGUE ADDRESS",
                )
            calls("load_collection", state.place)
        except BaseException:
            calls.close()
            raise
        return cls(address, state, calls, threads)

    def close(self) -> None:
        """Close the client, and the embedded file where nobody else in this process has it open."""
        self._calls.close()

    @contextlib.contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """Be the one writer: Milvus has no locks, so everybody who writes leaves a row that says so."""
        turn = Turn(self._calls, STATES, self.address.name)
        turn.take(purpose)
        self._turn = turn
        try:
            yield
        finally:
            self._turn = None
            with contextlib.suppress(CatalogueError):  # a server that is away; the row counts for nothing from now on
                turn.leave()

    def _signed(self) -> None:
        if self._turn is not None:
            self._turn.sign()

    @property
    def _place(self) -> str:
        return self.state.place

    @property
    def target(self) -> State:
        """The collection that is being filled, or the one that answers where they are the same."""
        return self._filling or self.state

    @property
    def _target(self) -> str:
        return self.target.place

    def _count(self, condition: Condition | None) -> int:
        rows = self._calls(
            "query", self._place, filter=_filter(condition), output_fields=["count(*)"], consistency_level="Strong"
        )
        return int(rows[0]["count(*)"])

    def _pages(self, place: str, fields: Sequence[str], text: str) -> Iterator[list[dict[str, Any]]]:
        """Yield rows in id order, a page at a time: a page begins behind the last id, so any depth costs the same."""
        size = min(_PAGE, max(1, _PAGE_BYTES // (8 * self.dim))) if "v" in fields else _PAGE
        last = -1
        while True:
            rows = self._calls.page(place, f"id > {last} and {text}", ["id", *fields], size)
            if not rows:
                return
            yield rows
            last = rows[-1]["id"]

    def _ids(self, condition: Condition | None) -> Ids:
        pages = self._pages(self._place, [], _filter(condition))
        return np.array([row["id"] for page in pages for row in page], dtype=np.int64)

    def _nearest(self, query: Vectors, count: int, condition: Condition | None) -> tuple[Ids, Vectors]:
        [found] = self._calls(
            "search", self._place, data=[self._sent(query)], anns_field="v", limit=count, filter=_filter(condition),
            output_fields=["v"], consistency_level="Strong",
            search_params={"metric_type": METRICS[self.metric], "params": self._beam(count, condition)},
        )  # fmt: skip
        return self._decoded([{"id": hit["id"], "v": hit["entity"]["v"]} for hit in found])

    def _beam(self, count: int, condition: Condition | None) -> dict[str, int]:
        """Return what a search is given: a graph meets rows that do not pass too, and needs a beam as much wider."""
        settings = search_settings(self.state.index, count)
        if condition is not None and "ef" in settings:
            passing = max(self._count(condition), 1)
            settings["ef"] = min(MAX_BEAM, max(count, settings["ef"] * self._count(None) // passing))
        return settings

    def _blocks(self, condition: Condition | None) -> Iterator[tuple[Ids, Vectors]]:
        for page in self._pages(self._place, ["v"], _filter(condition)):
            yield self._decoded(page)

    def _vectors(self, ids: Ids) -> tuple[Ids, Vectors]:
        return self._decoded(self._get(ids, ["id", "v"]))

    def _get(self, ids: Ids, fields: Sequence[str]) -> list[dict[str, Any]]:
        if not len(ids):
            return []
        found: list[dict[str, Any]] = self._calls(
            "query", self._place, filter=f"id in {ids.tolist()}", output_fields=list(fields),
            consistency_level="Strong",
        )  # fmt: skip
        return found

    def _sent(self, vector: Vectors) -> Any:
        return vector.astype(np.float16) if self.state.dtype == "float16" else vector.tolist()

    def _decoded(self, rows: Sequence[dict[str, Any]]) -> tuple[Ids, Vectors]:
        ids = np.fromiter((row["id"] for row in rows), dtype=np.int64, count=len(rows))
        out = np.empty((len(rows), self.dim), dtype=np.float32)
        for at, row in enumerate(rows):
            value = row["v"]
            out[at] = np.frombuffer(b"".join(value) if isinstance(value, list) else value, np.float16) if (
                self.state.dtype == "float16"
            ) else value  # fmt: skip
        return ids, out

    def _values(self, ids: Ids, fields: Sequence[str]) -> dict[int, tuple[Any, ...]]:
        rows = self._get(ids, ["id", *fields])
        return {row["id"]: tuple(row[field] for field in fields) for row in rows}

    def _located(self, paths: Sequence[str]) -> dict[str, int]:
        texts = [path_text(path)[0] for path in paths]
        found: dict[str, int] = {}
        if texts:
            rows = self._calls(
                "query", self._place, filter=f"path in {json.dumps(texts, ensure_ascii=False)}",
                output_fields=["id", "path", "raw"], consistency_level="Strong",
            )  # fmt: skip
            found = {path_of(row["path"], row["raw"]): row["id"] for row in rows}
        return found

    def stamps(self) -> tuple[Ids, Ids]:
        """Return the ids of all rows of the collection that is being filled, ascending, and the stamp of each."""
        rows = [(row["id"], row["stamp"]) for page in self._pages(self._target, ["stamp"], _EVERYTHING) for row in page]
        both = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def write(self, rows: Rows) -> None:
        """Upsert rows by id."""
        self._signed()
        for part in rows.cut(max(1, _WRITE_BYTES // (4 * self.dim + 500))):
            self._calls("upsert", self._target, data=as_records(part, self.target, self._sent))

    def remove(self, ids: Ids) -> None:
        """Delete rows."""
        if len(ids):
            self._calls("delete", self._target, ids=ids.tolist())

    def save(self, state: State) -> None:
        """Keep the description in a collection of descriptions, one row a store."""
        keep_state(self._calls, self.address.name, state)
        self.state = state

    def begin(self, columns: Sequence[Column]) -> None:
        """Say that what is stored is not complete; other columns begin a collection beside the one that answers."""
        shape = [(column.field, column.name, column.type) for column in columns]
        if shape == [(column.field, column.name, column.type) for column in self.state.columns]:
            self.save(dataclasses.replace(self.state, columns=tuple(columns), revision=None, token=None))
            return
        old = self.state.place
        stem, _, number = old.rpartition("__")
        place = f"{stem}__{int(number) + 1}" if number.isdigit() and stem else f"{old}__2"
        filling = dataclasses.replace(self.state, columns=tuple(columns), revision=None, token=None, place=place)
        if not self._calls.has(place):
            make_collection(self._calls, place, filling)
        elif fields_of(self._calls, place) != {column.field for column in filling.kept}:
            self._calls("drop_collection", place)  # begun for yet other columns
            make_collection(self._calls, place, filling)
        self._calls("load_collection", place)
        self._filling = filling

    def finish(self) -> None:
        """Seal what was written, so that it is indexed, and switch to the collection that was filled."""
        for call in ("flush", "load_collection"):
            self._signed()
            self._calls(call, self._target)
        if self._filling is None:
            return
        old, new = self.state.place, self._filling
        self._filling = None
        self.save(new)
        self._calls("drop_collection", old)

    def size(self) -> int | None:
        """Bytes on disk of an embedded file, all its stores together; a server does not say."""
        return self._calls.size()

    def drop(self) -> None:
        """Delete the store with all its rows."""
        for place in {self.state.place, self._target}:
            self._calls("drop_collection", place)
        self._calls("delete", STATES, filter=f'name == "{self.address.name}"')


def _filter(condition: Condition | None) -> str:
    return _EVERYTHING if condition is None else as_milvus(condition)
