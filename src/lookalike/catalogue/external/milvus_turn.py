"""One writer at a time in Milvus, which has no locks: a row that says who writes, and when they last did."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from typing import Any

from lookalike.catalogue.external.milvus_client import MilvusCalls
from lookalike.errors import CatalogueError

STALE_S = 1_800.0
"""A writer elsewhere that gave no sign for this long is taken for dead: longer than the slowest of its calls."""
_SIGN_S = 60.0
_held: set[str] = set()


class Turn:
    """The right to write to one store, for as long as signs are given.

    Everybody first says that they come, by a row of their own, and then looks who else is there. Of two at the same
    moment one at least sees the other, so never both go on; it may be that neither does.
    """

    def __init__(self, calls: MilvusCalls, place: str, store: str) -> None:
        self._calls = calls
        self._place = place
        self._store = store
        self._name = f"{store}/{uuid.uuid4().hex}"  # no name of a collection has a slash
        self._since = time.time()
        self._signed = float("-inf")

    def take(self, purpose: str) -> None:
        """Take the turn.

        Raises:
            CatalogueError: somebody else has it; who, and since when.
        """
        _held.add(self._name)
        try:
            self.sign()
            for name, row in self._others():
                if _alive(name, row):
                    raise CatalogueError(_refusal(self._calls, row, purpose), hint=_HINT)
                self._calls("delete", self._place, ids=[name])
        except BaseException:
            self.leave()
            raise

    def sign(self) -> None:
        """Say that the writer is alive; at most once a minute it costs a call."""
        if time.monotonic() - self._signed < _SIGN_S:
            return
        row = {"host": socket.gethostname(), "pid": os.getpid(), "since": self._since, "sign": time.time()}
        self._calls("upsert", self._place, data=[{"name": self._name, "state": json.dumps(row), "v": [0.0, 1.0]}])
        self._signed = time.monotonic()

    def leave(self) -> None:
        """Give the turn back; where the server is away the row stays, and counts for nothing once this is done."""
        _held.discard(self._name)
        self._calls("delete", self._place, ids=[self._name])

    def _others(self) -> list[tuple[str, dict[str, Any]]]:
        rows = self._calls(
            "query", self._place, filter='name like "%/%"', output_fields=["name", "state"], consistency_level="Strong"
        )
        found = [(str(row["name"]), json.loads(row["state"])) for row in rows]
        return [(name, row) for name, row in found if name != self._name and name.startswith(f"{self._store}/")]


_HINT = (
    f"Wait until it is done. A writer that died is passed over at once on its own machine, after {STALE_S / 60:.0f} "
    "minutes elsewhere."
)


def _alive(name: str, row: dict[str, Any]) -> bool:
    if row["host"] == socket.gethostname():
        return name in _held if row["pid"] == os.getpid() else _runs(row["pid"])
    return time.time() - float(row["sign"]) < STALE_S


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's process
        return True
    return True


def _refusal(calls: MilvusCalls, row: dict[str, Any], purpose: str) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(row["since"]))
    return (
        f"Process {row['pid']} of {row['host']} is writing to {calls.address} since {since}, so this {purpose} was not "
        "begun."
    )
