"""Calls to Milvus: time-outs, tries, and errors in one sentence; an embedded file is opened once a process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.library import milvus_lite, pymilvus
from lookalike.catalogue.external.patience import Patience, retrying
from lookalike.errors import CatalogueError, InputError, LookalikeError, NotFoundError

MAX_TOP = 16_384
"""The most candidates Milvus gives for one query."""
TOKEN = "LOOKALIKE_MILVUS_TOKEN"
_SLOW = ("flush", "load_collection", "create_collection")
# A status that passes by itself: gRPC's own words, and those of a server that is starting.
_PASSING = ("unavailable", "fail connecting", "failed to connect", "connection refused", "not ready", "not healthy",
            "deadline", "retry run out", "retry timeout", "channel")  # fmt: skip
_UNLOADED = ("state 'released'", "not loaded")

_open: dict[str, int] = {}
_guard = threading.Lock()


class MilvusCalls:
    """The client of one address: `calls("search", "shop", limit=5)`.

    Raises:
        NotFoundError: no such embedded file, where none is to be made.
        CatalogueError: the server is away, or another process holds the file.
    """

    def __init__(self, address: Address, patience: Patience, *, make: bool = True) -> None:
        self.address = address
        self.patience = patience
        self._library = pymilvus()
        self._token = os.environ.get(TOKEN, "")
        self._path = ""
        if address.embedded:
            self._path = os.path.abspath(address.uri)  # noqa: PTH100 - as the engine itself names it
            if not make and not Path(self._path).exists():
                raise NotFoundError(f"There is no file {address.uri!r}.", hint="Make it with: lookalike push.")
        self._broken = False
        self.client = self._connected()

    @property
    def types(self) -> Any:
        """The field types by name."""
        return self._library.DataType

    def _connected(self) -> Any:
        self._uri = self._serve() if self._path else self.address.uri
        try:
            return retrying(self._connect, transient=self._passing, patience=self.patience)
        except Exception as error:
            self._release()
            raise self._explained(error) from None

    def _connect(self) -> Any:
        options = {"token": self._token} if self._token else {}
        return self._library.MilvusClient(self._uri, timeout=self.patience.connect_s, **options)

    def _serve(self) -> str:
        """Open the embedded file, or share it with whoever in this process has it open."""
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        with _guard:
            uri = milvus_lite().server_manager_instance.start_and_get_uri(self._path)
            if uri is None:
                raise CatalogueError(
                    f"The file {self.address.uri!r} cannot be opened as an embedded Milvus: another process holds it, "
                    "or it is none.",
                    hint="Close the other process, or run a server for several: milvus-lite server --host 127.0.0.1",
                )
            _open[self._path] = _open.get(self._path, 0) + 1
        return str(uri)

    def close(self) -> None:
        """Close the client."""
        client = getattr(self, "client", None)
        if client is not None:
            client.close()
            self.client = None
            self._release()

    def _release(self) -> None:
        if not self._path:
            return
        with _guard:
            _open[self._path] = _open.get(self._path, 1) - 1
            if _open[self._path] <= 0:
                del _open[self._path]
                milvus_lite().server_manager_instance.release_server(self._path)

    def __call__(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Make a call; while the server is away it is made again, so it must be repeatable.

        Raises:
            CatalogueError: the server stayed away, said no, or took too long.
        """
        limit = self.patience.answer_s * (10 if name in _SLOW else 1)
        began = time.monotonic()

        def call() -> Any:
            left = max(limit - (time.monotonic() - began), 0.1)
            return getattr(self.client, name)(*arguments, timeout=left, **options)

        return self._trying(call, str(arguments[0]), limit)

    def _trying(self, work: Callable[[], Any], place: str, limit: float) -> Any:
        if self.client is None:
            raise CatalogueError(f"The store {self.address} is closed.")
        began = time.monotonic()
        unloaded: list[bool] = []

        def attempt() -> Any:
            if self._broken:  # a channel whose server went away does not always find it again
                self.client.close()
                self.client = self._connect()
                self._broken = False
            if unloaded:
                self.client.load_collection(place, timeout=limit)
                unloaded.clear()
            return work()

        def passing(error: Exception) -> bool:
            self._broken = self._passing(error)
            if any(part in str(error).lower() for part in _UNLOADED):  # a server that was started anew
                unloaded.append(True)
            return (self._broken or bool(unloaded)) and time.monotonic() - began < limit

        try:
            return retrying(attempt, transient=passing, patience=self.patience)
        except LookalikeError:
            raise
        except Exception as error:
            passing(error)
            raise self._explained(error) from None

    def page(self, place: str, text: str, fields: list[str], size: int) -> list[dict[str, Any]]:
        """Return the first rows that pass, in id order: the client's own iterator knows how to ask every shard."""
        options = {"filter": text, "output_fields": fields, "batch_size": size, "consistency_level": "Strong"}

        def first() -> list[dict[str, Any]]:
            pages = self.client.query_iterator(place, timeout=self.patience.answer_s, **options)
            try:
                return sorted(pages.next() or [], key=lambda row: int(row["id"]))
            finally:
                pages.close()

        return list(self._trying(first, place, self.patience.answer_s))

    def has(self, place: str) -> bool:
        """Tell whether there is a collection of that name."""
        return bool(self("has_collection", place))

    def make_states(self, place: str) -> None:
        """Make the collection of descriptions; Milvus wants a vector in each, so they share one of two numbers."""
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("name", self.types.VARCHAR, is_primary=True, max_length=100)
        schema.add_field("state", self.types.VARCHAR, max_length=65_535)
        schema.add_field("v", self.types.FLOAT_VECTOR, dim=2)
        index = self.client.prepare_index_params()
        index.add_index(field_name="v", index_type="FLAT", metric_type="L2", params={})
        self("create_collection", place, schema=schema, index_params=index, consistency_level="Strong")
        self("load_collection", place)

    def size(self) -> int | None:
        """Bytes of an embedded file."""
        if not self._path:
            return None
        return sum(path.stat().st_size for path in Path(self._path).rglob("*") if path.is_file())

    def _passing(self, error: Exception) -> bool:
        return any(part in str(error).lower() for part in _PASSING)

    def _explained(self, error: Exception) -> LookalikeError:
        text = str(getattr(error, "message", "") or error or type(error).__name__)
        first = self.address.hide(text).replace(self._token or "\0", "***").strip().split("\n")[0]
        if self._passing(error) or type(error).__module__.startswith("grpc"):
            return CatalogueError(
                f"{self.address} cannot be reached: {first}",
                hint="Start it or check the address; what is stored stays, and the same command goes on from there.",
            )
        if type(error).__name__ in ("ParamError", "DataNotMatchException"):
            return InputError(f"{self.address} cannot hold a value: {first}")
        return CatalogueError(f"{self.address} refused: {first}")
