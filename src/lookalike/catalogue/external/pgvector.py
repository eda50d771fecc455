"""A store in PostgreSQL with pgvector: one table of rows, one line of description."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.cards import check_dtype
from lookalike.catalogue.columns import Column
from lookalike.catalogue.conditions import Condition
from lookalike.catalogue.external import copying
from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.connection import Connections
from lookalike.catalogue.external.patience import PATIENCE, Patience
from lookalike.catalogue.external.pgindex import PgIndex, pg_index, read_index
from lookalike.catalogue.external.pgtables import STATES, TYPES, VECTOR, locked, make, read_state, unhurried
from lookalike.catalogue.external.rows import Rows, State, path_of, path_text
from lookalike.catalogue.external.sql import as_postgresql
from lookalike.catalogue.external.store import ExternalStore
from lookalike.embed.encoder import Card
from lookalike.errors import InputError
from lookalike.index.neighbours import check_metric

T = TypeVar("T")
_BLOCK = 2_000


class PgvectorStore(ExternalStore):
    """Items, columns and vectors in a table of a PostgreSQL database, searched by pgvector.

    Make one with `create`, open one with `open`; both are context managers and safe to read from several threads.
    """

    def __init__(self, address: Address, state: State, connections: Connections, threads: int | None) -> None:
        super().__init__(address, state, threads)
        self._connections = connections
        self._index = read_index(state.index)
        self._connections.settings = self._index.session()

    @classmethod
    def create(
        cls,
        address: Address,
        *,
        card: Card,
        metric: str = "cosine",
        dtype: str = "float32",
        index: PgIndex | str = "hnsw",
        columns: Sequence[Column] = (),
        patience: Patience = PATIENCE,
        threads: int | None = None,
    ) -> PgvectorStore:
        """Make an empty store; `push` fills it. `dtype` float16 keeps vectors in half the bytes, three digits each.

        Raises:
            CatalogueError: it is there already, the database is away, or has no pgvector of at least version 0.8.
            InputError: more dimensions than an index of pgvector takes.
        """
        chosen = pg_index(index) if isinstance(index, str) else index
        kept = check_dtype(dtype)
        chosen.check(card.dim, kept)
        state = State(card, check_metric(metric), kept, columns=tuple(columns), index=chosen.text(), place=address.name)
        connections = Connections(address, patience)
        try:
            connections.run(lambda connection: make(connection, address, state))
            return cls(address, state, connections, threads)
        except BaseException:
            connections.close()
            raise

    @classmethod
    def open(
        cls,
        address: Address,
        *,
        patience: Patience = PATIENCE,
        threads: int | None = None,
    ) -> PgvectorStore:
        """Open a store.

        Raises:
            NotFoundError: the database holds no store of that name.
            CatalogueError: the database is away.
        """
        connections = Connections(address, patience)
        try:
            state = connections.run(lambda connection: read_state(connection, address))
            return cls(address, state, connections, threads)
        except BaseException:
            connections.close()
            raise

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()

    @property
    def _table(self) -> str:
        return f'"{self.state.place}"'

    @contextlib.contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """Hold the lock of whoever pushes: an advisory one of the session, which goes with the connection."""
        connection = self._connections.run(lambda found: locked(found, self.address, purpose), keep=True)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # a connection that broke took its lock with it
                connection.execute("SELECT pg_advisory_unlock_all()")
            connection.close()

    def _run(self, work: Callable[[Any], T]) -> T:
        return self._connections.run(work)

    def _all_rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        found: list[Any] = self._run(lambda connection: connection.execute(statement, values, binary=True).fetchall())
        return found

    def _count(self, condition: Condition | None) -> int:
        where, values = _where(condition)
        return int(self._all_rows(f"SELECT count(*) FROM {self._table}{where}", values)[0][0])

    def _ids(self, condition: Condition | None) -> Ids:
        where, values = _where(condition)
        rows = self._all_rows(f"SELECT id FROM {self._table}{where} ORDER BY id", values)
        return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))

    def _nearest(self, query: Vectors, count: int, condition: Condition | None) -> tuple[Ids, Vectors]:
        where, values = _where(condition)
        statement = (
            f"SELECT id, {VECTOR[self.state.dtype]}_send(v) FROM {self._table}{where} "
            f"ORDER BY v {self._index.operator(self.metric)} %s::{VECTOR[self.state.dtype]} LIMIT %s"
        )
        return self._decoded(self._all_rows(statement, (*values, _literal(query), count)))

    def _blocks(self, condition: Condition | None) -> Iterator[tuple[Ids, Vectors]]:
        last = -1
        condition_sql, values = as_postgresql(condition) if condition is not None else ("TRUE", ())
        statement = (
            f"SELECT id, {VECTOR[self.state.dtype]}_send(v) FROM {self._table} "
            f"WHERE id > %s AND {condition_sql} ORDER BY id LIMIT %s"
        )
        while True:
            ids, vectors = self._decoded(self._all_rows(statement, (last, *values, _BLOCK)))
            if len(ids):
                yield ids, vectors
                last = int(ids[-1])
            if len(ids) < _BLOCK:
                return

    def _vectors(self, ids: Ids) -> tuple[Ids, Vectors]:
        statement = f"SELECT id, {VECTOR[self.state.dtype]}_send(v) FROM {self._table} WHERE id = ANY(%s)"
        return self._decoded(self._all_rows(statement, (ids.tolist(),)))

    def _decoded(self, rows: Sequence[tuple[int, bytes]]) -> tuple[Ids, Vectors]:
        """Read vectors in the wire format: two 16-bit words, then the values, all big-endian."""
        ids = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
        flat = np.frombuffer(b"".join(row[1][4:] for row in rows), dtype=copying.WIRE[self.state.dtype])
        return ids, flat.astype(np.float32).reshape(len(rows), self.dim)

    def _values(self, ids: Ids, fields: Sequence[str]) -> dict[int, tuple[Any, ...]]:
        listed = ", ".join(f'"{name}"' for name in fields)
        rows = self._all_rows(f"SELECT id, {listed} FROM {self._table} WHERE id = ANY(%s)", (ids.tolist(),))
        return {row[0]: tuple(row[1:]) for row in rows}

    def _located(self, paths: Sequence[str]) -> dict[str, int]:
        texts = [path_text(path)[0] for path in paths]
        rows = self._all_rows(f"SELECT path, raw, id FROM {self._table} WHERE path = ANY(%s)", (texts,))
        return {path_of(text, raw): number for text, raw, number in rows}

    def stamps(self) -> tuple[Ids, Ids]:
        """Return the ids of all rows, ascending, and the stamp of each."""
        rows = self._all_rows(f"SELECT id, stamp FROM {self._table} ORDER BY id")
        both = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def write(self, rows: Rows) -> None:
        """Copy rows into a table of this transaction, and from there into the store."""
        names = ["id", "path", "raw", "stamp", "v", *(column.field for column in self.state.kept)]
        listed = ", ".join(f'"{name}"' for name in names)
        replaced = ", ".join(f'"{name}" = excluded."{name}"' for name in names[1:])
        data = b"".join(copying.stream(rows, self.state.kept, self.state.dtype))

        def copy(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"CREATE TEMP TABLE incoming (LIKE {self._table}) ON COMMIT DROP")
                with connection.cursor().copy(f"COPY incoming ({listed}) FROM STDIN (FORMAT BINARY)") as stream:
                    stream.write(data)
                connection.execute(
                    f"INSERT INTO {self._table} ({listed}) SELECT {listed} FROM incoming "
                    f"ON CONFLICT (id) DO UPDATE SET {replaced}"
                )

        self._run(copy)

    def remove(self, ids: Ids) -> None:
        """Delete rows."""
        self._run(
            lambda connection: connection.execute(f"DELETE FROM {self._table} WHERE id = ANY(%s)", (ids.tolist(),))
        )

    def save(self, state: State) -> None:
        """Keep the description beside the tables of all stores of this schema."""
        statement = f"UPDATE {STATES} SET state = %s WHERE name = %s"
        self._run(lambda connection: connection.execute(statement, (state.to_json(), self.address.name)))
        self.state = state

    def begin(self, columns: Sequence[Column]) -> None:
        """Add and drop columns, in one transaction with the word that the store is not complete."""
        wanted = {(column.field, column.type): column for column in columns}
        kept = {(column.field, column.type) for column in self.state.columns}
        state = dataclasses.replace(self.state, columns=tuple(columns), revision=None, token=None)

        def change(connection: Any) -> None:
            with connection.transaction():
                for field, _ in kept - set(wanted):
                    connection.execute(f'ALTER TABLE {self._table} DROP COLUMN IF EXISTS "{field}"')
                for key in wanted.keys() - kept:
                    connection.execute(f'ALTER TABLE {self._table} ADD COLUMN IF NOT EXISTS "{key[0]}" {TYPES[key[1]]}')
                for column in columns:
                    if column.indexed:
                        name = f"{self.state.place}_{column.field}"
                        connection.execute(f'CREATE INDEX IF NOT EXISTS "{name}" ON {self._table} ("{column.field}")')
                connection.execute(
                    f"UPDATE {STATES} SET state = %s WHERE name = %s", (state.to_json(), self.address.name)
                )

        self._run(change)
        self.state = state

    def finish(self) -> None:
        """Build the vector index where there is none: over rows that are there, which is many times quicker."""
        count = self._count(None)
        statement = self._index.build(self.state.place, self.metric, VECTOR[self.state.dtype], count)
        if statement and count:
            self._connections.run(lambda connection: unhurried(connection, statement))
        self._run(lambda connection: connection.execute(f"ANALYZE {self._table}"))

    def size(self) -> int | None:
        """Bytes of the table with its indexes."""
        return int(self._all_rows("SELECT pg_total_relation_size(%s::regclass)", (self._table,))[0][0])

    def drop(self) -> None:
        """Delete the store with all its rows."""

        def gone(connection: Any) -> None:
            with connection.transaction():
                connection.execute(f"DROP TABLE IF EXISTS {self._table}")
                connection.execute(f"DELETE FROM {STATES} WHERE name = %s", (self.address.name,))

        self._run(gone)


def _where(condition: Condition | None) -> tuple[str, tuple[Any, ...]]:
    if condition is None:
        return "", ()
    text, values = as_postgresql(condition)
    if any("\0" in part for value in values for part in _texts(value)):
        raise InputError("A filter with a NUL character matches nothing PostgreSQL can hold.")
    return f" WHERE {text}", values


def _texts(value: Any) -> list[str]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str)]


def _literal(vector: Vectors) -> str:
    """Write a vector as pgvector reads it; nine digits give back the same float32."""
    return "[" + ",".join(map("%.9g".__mod__, vector.tolist())) + "]"
