"""The collections of a store in Milvus: their fields, their indexes, and rows as they hold them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lookalike.arrays import Vectors
from lookalike.catalogue.conditions import Type, folded
from lookalike.catalogue.external.expression import FOLD
from lookalike.catalogue.external.rows import Rows, State, path_text
from lookalike.errors import InputError, UnknownNameError
from lookalike.index.neighbours import Metric

if TYPE_CHECKING:
    from lookalike.catalogue.external.address import Address
    from lookalike.catalogue.external.milvus_client import MilvusCalls

STATES = "lookalike_stores"
"""The collection of descriptions, one row a store, and of those who write."""
METRICS: Mapping[Metric, str] = {"cosine": "COSINE", "ip": "IP", "l2": "L2"}
MAX_BEAM = 32_768
"""The widest beam (`ef`) of a search."""
MAX_TEXT = 65_535
"""Bytes of the longest VARCHAR."""
# kind -> Milvus's own name, what it is built with, what a search is given
INDEXES: Mapping[str, tuple[str, dict[str, int], dict[str, int]]] = {
    "hnsw": ("HNSW", {"M": 16, "efConstruction": 200}, {"ef": 128}),
    "ivfflat": ("IVF_FLAT", {"nlist": 1_024}, {"nprobe": 32}),
    "none": ("FLAT", {}, {}),
}
_TYPES: Mapping[Type, str] = {"text": "VARCHAR", "integer": "INT64", "real": "DOUBLE", "boolean": "INT8"}


def check_index(kind: str) -> str:
    """Return the description of an index of that kind with its settings.

    Raises:
        UnknownNameError: no such kind.
    """
    if kind not in INDEXES:
        raise UnknownNameError("index of Milvus", kind, INDEXES)
    name, built, searched = INDEXES[kind]
    return json.dumps({"kind": kind, "name": name, "built": built, "searched": searched})


def search_settings(index: str, count: int) -> dict[str, int]:
    """Return what a search of so many candidates is given: a beam is never narrower than what it must bring."""
    settings: dict[str, int] = dict(json.loads(index)["searched"])
    if "ef" in settings:
        settings["ef"] = max(settings["ef"], count)
    return settings


def make_collection(calls: MilvusCalls, place: str, state: State) -> None:
    """Make the empty collection of a store."""
    kinds = calls.types
    schema = calls.client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", kinds.INT64, is_primary=True)
    for name in ("path", f"path{FOLD}"):
        schema.add_field(name, kinds.VARCHAR, max_length=MAX_TEXT)
    schema.add_field("raw", kinds.VARCHAR, max_length=MAX_TEXT, nullable=True)
    schema.add_field("stamp", kinds.INT64)
    for column in state.kept:
        names = [column.field, column.field + FOLD] if column.type == "text" else [column.field]
        for name in names:
            length = {"max_length": MAX_TEXT} if column.type == "text" else {}
            schema.add_field(name, getattr(kinds, _TYPES[column.type]), nullable=True, **length)
    vector = kinds.FLOAT16_VECTOR if state.dtype == "float16" else kinds.FLOAT_VECTOR
    schema.add_field("v", vector, dim=state.card.dim)
    wanted = json.loads(state.index)
    index = calls.client.prepare_index_params()
    index.add_index(field_name="v", index_type=wanted["name"], metric_type=METRICS[state.metric],
                    params=wanted["built"])  # fmt: skip
    calls("create_collection", place, schema=schema, index_params=index, consistency_level="Strong")


def as_records(rows: Rows, state: State, sent: Callable[[Vectors], Any]) -> list[dict[str, Any]]:
    """Return rows as the client takes them.

    Raises:
        InputError: a text longer than a field holds; the item is named.
    """
    records = []
    for at, (number, path) in enumerate(zip(rows.ids.tolist(), rows.paths, strict=True)):
        text, raw = path_text(path)
        record: dict[str, Any] = {
            "id": number, "path": text, f"path{FOLD}": folded(text), "raw": raw, "stamp": int(rows.stamps[at]),
            "v": sent(rows.vectors[at]),
        }  # fmt: skip
        for column, value in zip(state.kept, rows.values[at], strict=True):
            record[column.field] = value
            if column.type == "text":
                if len(str(value).encode()) > MAX_TEXT:
                    raise InputError(
                        f"Column {column.name!r} of {path!r} is longer than {MAX_TEXT:,} bytes, which Milvus holds."
                    )
                record[column.field + FOLD] = None if value is None else folded(str(value))
        records.append(record)
    return records


def find_state(calls: MilvusCalls, address: Address) -> State | None:
    """Return the description of a store, or None where there is no such store."""
    if not calls.has(STATES):
        return None
    calls("load_collection", STATES)
    rows = calls(
        "query", STATES, filter=f'name == "{address.name}"', output_fields=["state"], consistency_level="Strong"
    )
    return State.from_json(rows[0]["state"], f"The store {address}") if rows else None


def keep_state(calls: MilvusCalls, name: str, state: State) -> None:
    """Keep the description of a store."""
    if not calls.has(STATES):
        calls.make_states(STATES)
    calls("upsert", STATES, data=[{"name": name, "state": state.to_json(), "v": [0.0, 1.0]}])


def fields_of(calls: MilvusCalls, place: str) -> set[str]:
    """Return the fields of a collection that hold a column."""
    fixed = {"id", "path", "path_fold", "raw", "stamp", "v"}
    names = {field["name"] for field in calls("describe_collection", place)["fields"]}
    return {name for name in names if name not in fixed and not name.endswith("_fold")}
