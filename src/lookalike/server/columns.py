"""Columns as the page colours by them: binary codes with a legend, numbers, and masks of filters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from lookalike.arrays import Ids
from lookalike.catalogue import columns
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.where import Type
from lookalike.errors import UnknownNameError
from lookalike.server.items import sendable
from lookalike.server.schemas.catalogue import ColumnLegend, LegendEntry
from lookalike.server.shop import Shop

NORM = "@norm"
"""A column nobody made: the length of each vector."""
_LEGEND = 1_000
_FEW_WHOLE_NUMBERS = 64
"""Whole numbers of so few values are named in a legend (a camera, a fold); more are drawn as a scale."""


def legend(shop: Shop, name: str, where: str | None) -> ColumnLegend:
    """Describe a column, its values counted over the items that pass the filter.

    Raises:
        UnknownNameError: no such column.
    """
    store = shop.store()
    type_, values = _values(shop, store, name)
    kept = values if where is None else _of(store, values, where)
    coded = _coded(type_, values)
    counts = Counter(value for value in kept if value is not None)
    codes = {value: code for code, value in enumerate(_order(values))} if coded else {}
    entries = [
        LegendEntry(code=codes[value], value=sendable(value) if isinstance(value, str) else value, count=count)
        for value, count in sorted(counts.items(), key=lambda entry: (-entry[1], str(entry[0])))[:_LEGEND]
        if coded
    ]
    numbers = [float(value) for value in counts] if type_ in ("integer", "real") else []
    return ColumnLegend(
        name=name, type=type_, encoding="codes" if coded else "numbers", n=len(kept),
        missing=len(kept) - sum(counts.values()), low=min(numbers, default=None), high=max(numbers, default=None),
        legend=entries, legend_total=len(counts) if coded else 0, revision=store.revision,
    )  # fmt: skip


def packed(shop: Shop, name: str) -> tuple[bytes, str]:
    """Return the values of a column, one an item in id order, as int32 codes or float32 numbers, and their ETag."""
    store = shop.store()
    type_, values = _values(shop, store, name)
    tag = f"{store.card.digest}-{store.revision}-{name.encode('utf-8', 'backslashreplace').hex()}"
    if _coded(type_, values):
        codes = {value: code for code, value in enumerate(_order(values))}
        return np.array([-1 if v is None else codes[v] for v in values], dtype="<i4").tobytes(), tag
    return np.array([np.nan if v is None else float(v) for v in values], dtype="<f4").tobytes(), tag


def mask(store: Catalogue, where: str | None, ids: list[int] | None) -> tuple[bytes, int, int]:
    """Return one bit an item in id order (the first in the lowest bit of the first byte), how many are set, and n."""
    live = store.ids()
    wanted = store.ids(where=where) if where is not None else live
    if ids is not None:
        wanted = np.intersect1d(wanted, np.array(ids, dtype=np.int64))
    bits = np.isin(live, wanted, assume_unique=True)
    return np.packbits(bits, bitorder="little").tobytes(), int(bits.sum()), len(live)


def _values(shop: Shop, store: Catalogue, name: str) -> tuple[Type, list[Any]]:
    def read() -> tuple[Type, list[Any]]:
        ids: Ids = store.ids()
        if name == NORM:
            vectors = store.vectors(ids)
            return "real", np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)).tolist()
        types = {**{n: field.type for n, field in columns.BUILTIN.items()}, **{c.name: c.type for c in store.columns()}}
        if name not in types:
            raise UnknownNameError("column", name, [*types, NORM])
        return types[name], store.column(name, ids)

    return shop.kept(store, ("column", name), read)


def _of(store: Catalogue, values: list[Any], where: str) -> list[Any]:
    rows = np.flatnonzero(np.isin(store.ids(), store.ids(where=where), assume_unique=True))
    return [values[row] for row in rows.tolist()]


def _coded(type_: Type, values: list[Any]) -> bool:
    if type_ in ("text", "boolean"):
        return True
    return type_ == "integer" and len({value for value in values if value is not None}) <= _FEW_WHOLE_NUMBERS


def _order(values: list[Any]) -> list[Any]:
    """Return the distinct values in the order of their codes: sorted, so that a code does not depend on counts."""
    present = {value for value in values if value is not None}
    return sorted(present, key=lambda value: (value if isinstance(value, int | float) else 0, str(value)))
