"""The tables of stores in PostgreSQL: made, described, locked."""

from __future__ import annotations

from typing import Any

from lookalike.catalogue.conditions import Type
from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.rows import State
from lookalike.errors import CatalogueError, NotFoundError

STATES = "lookalike_stores"
LOCK_SPACE = 0x6C6F6F6B
"""`look`: our own space of PostgreSQL's advisory locks."""
# Text compares by its bytes everywhere, as in a catalogue; booleans are 0 and 1 so that the same words compare them.
TYPES: dict[Type, str] = {"text": 'text COLLATE "C"', "integer": "bigint", "real": "float8", "boolean": "smallint"}
VECTOR = {"float32": "vector", "float16": "halfvec"}


def make(connection: Any, address: Address, state: State) -> None:
    """Make the table of a store, and write its description, in one transaction."""
    kept = ", ".join(f'"{column.field}" {TYPES[column.type]}' for column in state.kept)
    vector = f"{VECTOR[state.dtype]}({state.card.dim})"
    with connection.transaction():
        _require_extension(connection, address)
        connection.execute(f"CREATE TABLE IF NOT EXISTS {STATES} (name text PRIMARY KEY, state text NOT NULL)")
        known = connection.execute(f"SELECT 1 FROM {STATES} WHERE name = %s", (address.name,)).fetchone()
        found = connection.execute("SELECT to_regclass(%s)", (f'"{address.name}"',)).fetchone()[0]
        if known or found:
            raise CatalogueError(
                f"There is already a table {address.name!r} at {address}.",
                hint="Open it, or name another: ?table=NAME.",
            )
        connection.execute(
            f'CREATE TABLE "{address.name}" (id bigint PRIMARY KEY, path text COLLATE "C" NOT NULL, raw text, '
            f"stamp bigint NOT NULL, v {vector} NOT NULL, {kept})"
        )
        # Random values do not compress; out of line they cost a second read, which a scan pays for every row.
        connection.execute(f'ALTER TABLE "{address.name}" ALTER COLUMN v SET STORAGE EXTERNAL')
        connection.execute(f'CREATE INDEX "{address.name}_path" ON "{address.name}" (path)')
        connection.execute(f"INSERT INTO {STATES} VALUES (%s, %s)", (address.name, state.to_json()))


def _require_extension(connection: Any, address: Address) -> None:
    version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    if connection.execute(version).fetchone() is None:
        known = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
        if known is None:
            raise CatalogueError(
                f"The server at {address} has no pgvector.",
                hint="Install it there: https://github.com/pgvector/pgvector, or use the image pgvector/pgvector.",
            )
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    found = connection.execute(version).fetchone()[0]
    if tuple(int(part) for part in found.split(".")[:2]) < (0, 8):
        raise CatalogueError(
            f"The database at {address} has pgvector {found}; filters that find k rows need 0.8 or newer.",
            hint="Upgrade it there, then: ALTER EXTENSION vector UPDATE.",
        )


def read_state(connection: Any, address: Address) -> State:
    """Return the description of a store."""
    row = None
    if connection.execute("SELECT to_regclass(%s)", (STATES,)).fetchone()[0] is not None:
        row = connection.execute(f"SELECT state FROM {STATES} WHERE name = %s", (address.name,)).fetchone()
    if row is None:
        raise NotFoundError(
            f"There is no store {address.name!r} at {address}.", hint="Make one with: lookalike push CATALOGUE ADDRESS"
        )
    return State.from_json(row[0], f"The store {address}")


def locked(connection: Any, address: Address, purpose: str) -> Any:
    """Take the lock of whoever pushes, or refuse; return the connection that holds it."""
    keys = (LOCK_SPACE, address.name)
    if not connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", keys).fetchone()[0]:
        raise CatalogueError(
            f"Somebody else is writing to {address}, so this {purpose} was not begun.", hint="Wait until it is done."
        )
    return connection


def unhurried(connection: Any, statement: str) -> None:
    """Run a statement for as long as it takes."""
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        connection.execute(statement)
