"""Connections to PostgreSQL: opened when needed, given back after use, tried again while the server is away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.library import psycopg
from lookalike.catalogue.external.patience import Patience, retrying
from lookalike.errors import CatalogueError, InputError, LookalikeError

T = TypeVar("T")

# SQLSTATE classes of what passes by itself: connection, too many clients, shutdown and start-up, deadlocks.
_PASSING = ("08", "53300", "57P01", "57P02", "57P03", "40001", "40P01")
# What a refused connection says (in English or not, libpq gives no code for these): the server is there and said no.
_STARTING = ("starting up", "shutting down", "too many clients", "not yet accepting", "not accepting", "recovery")
TOO_SLOW = "57014"
NO_SUCH_TABLE = "42P01"


class Connections:
    """A connection for every caller at once; the idle ones are kept for the next."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.address = address
        self.patience = patience
        self.settings: tuple[str, ...] = ()
        self._library = psycopg()
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, work: Callable[[Any], T], *, keep: bool = False) -> T:
        """Return what `work(connection)` returns; while the server is away it is asked again, so it must be repeatable.

        With `keep` the connection is the caller's, who closes it.

        Raises:
            CatalogueError: the server stayed away, said no, or took too long.
            InputError: it refused a value.
        """
        try:
            return retrying(lambda: self._once(work, keep=keep), transient=self._passing, patience=self.patience)
        except LookalikeError:
            raise
        except self._library.Error as error:
            raise self._explained(error) from None  # the chain would show what the driver was given

    def close(self) -> None:
        """Close what is idle; what is in use closes when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _once(self, work: Callable[[Any], T], *, keep: bool) -> T:
        connection = self._take()
        try:
            result = work(connection)
        except BaseException as error:
            if isinstance(error, self._library.OperationalError | self._library.InterfaceError) or connection.closed:
                self._forget(connection)
            else:
                self._give(connection)
            raise
        if not keep:
            self._give(connection)
        return result

    def _take(self) -> Any:
        with self._lock:
            if self._closed:
                raise CatalogueError(f"The store {self.address} is closed.")
            if self._idle:
                return self._idle.pop()
        return self._opened()

    def _opened(self) -> Any:
        wait = max(2, round(self.patience.connect_s))  # libpq waits whole seconds, and at least two
        connection = self._library.connect(
            self.address.uri, autocommit=True, connect_timeout=wait, client_encoding="UTF8",
            application_name="lookalike", keepalives_idle=30,
            tcp_user_timeout=round(1_000 * self.patience.answer_s),
        )  # fmt: skip
        try:
            connection.execute(f"SET statement_timeout = {round(1_000 * self.patience.answer_s)}")
            connection.execute("SET client_min_messages = warning")
            for statement in self.settings:
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give(self, connection: Any) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _forget(self, connection: Any) -> None:
        """Close a broken connection and the idle ones, which went down with it."""
        with self._lock:
            broken, self._idle = [connection, *self._idle], []
        for each in broken:
            each.close()

    def _passing(self, error: Exception) -> bool:
        if not isinstance(error, self._library.OperationalError | self._library.InterfaceError):
            return False
        if error.sqlstate is not None:
            return str(error.sqlstate).startswith(_PASSING)
        text = str(error)
        return "FATAL" not in text or any(part in text for part in _STARTING)

    def _explained(self, error: Any) -> LookalikeError:
        text = self.address.hide(str(error).strip())
        first = " ".join(text.split("\n")[:2]) if text else type(error).__name__
        if error.sqlstate == TOO_SLOW:
            return CatalogueError(
                f"{self.address} did not answer within {self.patience.answer_s:g} s.",
                hint="Give it longer, or build the index the search lacks: lookalike push.",
            )
        if error.sqlstate == NO_SUCH_TABLE:
            return CatalogueError(f"The table of {self.address} is gone: {first}", hint="Push the catalogue again.")
        if isinstance(error, self._library.DataError):
            return InputError(f"{self.address} cannot hold a value: {first}")
        away = isinstance(error, self._library.OperationalError | self._library.InterfaceError)
        if away and (error.sqlstate is None or self._passing(error)):
            return CatalogueError(
                f"{self.address} cannot be reached: {first}",
                hint="Start it or check the address; what is stored stays, and the same command goes on from there.",
            )
        return CatalogueError(f"{self.address} refused: {first}")
