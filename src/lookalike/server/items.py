"""Items as they travel: numbers, paths, columns and the address of a small picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lookalike.arrays import Ids
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import InputError, LookalikeError
from lookalike.server.problems import RefusedError, problem_of
from lookalike.server.schemas.base import Cell
from lookalike.server.schemas.catalogue import Item, ItemPage, ItemResult

API = "/api/v1"
_VERSION_DIGITS = 12


def sendable(text: str) -> str:
    r"""Return a path that may hold bytes of no encoding as text that JSON can carry.

    >>> sendable("caf\udce9.jpg")
    'caf\\udce9.jpg'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def one(store: Catalogue, number: int) -> Ids:
    """Return the id as an array.

    Raises:
        RefusedError: no live item has it (404).
    """
    ids = np.array([number], dtype=np.int64)
    if not store.view().has(ids)[0]:
        raise RefusedError(
            404, f"The catalogue holds no item {number}.", hint="GET /api/v1/items lists those it holds."
        )
    return ids


def thumb(number: int, content: bytes | None) -> str:
    """Return the address of a small picture; it names the bytes, so that it may be kept for ever.

    >>> thumb(3, bytes(16))
    '/api/v1/items/3/thumb?v=000000000000'
    """
    return f"{API}/items/{number}/thumb?v={version(content)}"


def version(content: bytes | None) -> str:
    """Return the digits that stand for the bytes of a file; `0` where they are not known."""
    return content.hex()[:_VERSION_DIGITS] if content else "0"


def values(store: Catalogue, ids: Ids) -> list[dict[str, Cell]]:
    """Return the user's columns of these items, one dictionary an item."""
    names = [column.name for column in store.columns()]
    by_name = {name: store.column(name, ids) for name in names}
    return [{name: by_name[name][row] for name in names} for row in range(len(ids))]


def thumbs(store: Catalogue, ids: Ids) -> list[str]:
    """Return the addresses of the small pictures of these items."""
    return [thumb(item.id, item.file.content) for item in store.items(ids)]


def describe(store: Catalogue, ids: Ids) -> list[Item]:
    """Return everything told of these items, in this order."""
    return [
        Item(
            id=item.id,
            path=sendable(item.path),
            width=item.file.width,
            height=item.file.height,
            frames=item.file.frames,
            size=item.file.size,
            content=item.file.content.hex() if item.file.content else None,
            thumb=thumb(item.id, item.file.content),
            columns=columns,
        )
        for item, columns in zip(store.items(ids), values(store, ids), strict=True)
    ]


def page(store: Catalogue, where: str | None, cursor: str | None, limit: int) -> ItemPage:
    """Return the items after a cursor, which is the id of the last one seen."""
    ids = store.ids(where=where)
    start = int(np.searchsorted(ids, _cursor(cursor), side="right")) if cursor else 0
    chosen = ids[start : start + limit]
    more = start + len(chosen) < len(ids)
    return ItemPage(
        items=describe(store, chosen),
        total=len(ids),
        next=str(int(chosen[-1])) if more and len(chosen) else None,
        revision=store.revision,
    )


def batch(store: Catalogue, ids: Sequence[int]) -> list[ItemResult]:
    """Return each item with its own status: one that is gone fails alone."""
    numbers = np.array(ids, dtype=np.int64)
    live = store.view().has(numbers) if len(numbers) else np.empty(0, np.bool_)
    found = iter(describe(store, numbers[live]))
    return [
        ItemResult(id=number, status="ok", item=next(found))
        if there
        else ItemResult(id=number, status="failed", problem=problem_of(_gone(number)))
        for number, there in zip(ids, live.tolist(), strict=True)
    ]


def labels(store: Catalogue, ids: Ids, column: str) -> list[str | None]:
    """Return one column as text, None where missing."""
    return [None if value is None else str(value) for value in store.column(column, ids)]


def label_column(store: Catalogue) -> str | None:
    """Return the column the labs begin with."""
    own = store.columns()
    names = [column.name for column in own]
    texts = [column.name for column in own if column.type == "text"]
    return "label" if "label" in names else next(iter(texts), None)


def _gone(number: int) -> LookalikeError:
    return RefusedError(404, f"The catalogue holds no item {number}.")


def _cursor(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 16):
        raise InputError(f"{cursor[:40]!r} is no cursor.", hint="Pass the `next` of the page before, as it came.")
    return int(cursor)


def plain(value: Any) -> Any:
    """Turn NumPy values, tuples and mappings into plain JSON values; NaN and infinity become None.

    >>> plain({"a": float("nan"), "b": (np.int64(1), 2)})
    {'a': None, 'b': [1, 2]}
    """
    if isinstance(value, dict):
        return {sendable(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return sendable(value) if isinstance(value, str) else value
