"""The indexes of pgvector: how each is built, and what a session must say for it to find k rows."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lookalike.errors import InputError, UnknownNameError
from lookalike.index.neighbours import Metric

OPERATORS: Mapping[Metric, tuple[str, str]] = {"cosine": ("<=>", "cosine"), "ip": ("<#>", "ip"), "l2": ("<->", "l2")}
MAX_DIM = {"float32": 2_000, "float16": 4_000}
"""Dimensions an index of pgvector takes: a row must fit a page of 8 kB."""


@dataclass(frozen=True, kw_only=True)
class PgIndex:
    """No index: every search compares all rows that pass the filter."""

    kind: ClassVar[str] = "none"

    def check(self, dim: int, dtype: str) -> None:
        """Refuse what cannot be built.

        Raises:
            InputError: too many dimensions.
        """
        if self.kind != "none" and dim > MAX_DIM[dtype]:
            half = dtype == "float32" and dim <= MAX_DIM["float16"]
            raise InputError(
                f"pgvector indexes up to {MAX_DIM[dtype]:,} dimensions of {dtype}, and these vectors have {dim:,}.",
                hint="Keep them in half precision: --dtype float16." if half else "Use no index: --index none.",
            )

    def text(self) -> str:
        """Write as JSON."""
        return json.dumps({"kind": self.kind, **dataclasses.asdict(self)})

    def operator(self, metric: Metric) -> str:
        """Return the operator that orders rows, the nearest first."""
        return OPERATORS[metric][0]

    def session(self) -> tuple[str, ...]:
        """Return what every session says first."""
        return ()

    def build(self, table: str, metric: Metric, vector: str, rows: int) -> str:
        """Return the statement that builds the index where there is none; empty where there is none to build."""
        del table, metric, vector, rows
        return ""


@dataclass(frozen=True, kw_only=True)
class HnswIndex(PgIndex):
    """A graph (Malkov and Yashunin, 2016). Iterative scans go on until k rows pass the filter."""

    kind: ClassVar[str] = "hnsw"
    m: int = 16
    ef_construction: int = 64
    ef_search: int = 100
    max_scan_tuples: int = 20_000
    """Rows one search visits before it gives up, and all rows that pass are compared instead."""

    def __post_init__(self) -> None:
        _between("m", self.m, 2, 100)
        _between("ef_construction", self.ef_construction, 2 * self.m, 1_000)
        _between("ef_search", self.ef_search, 1, 1_000)
        _between("max_scan_tuples", self.max_scan_tuples, 1, 2**31 - 1)

    def session(self) -> tuple[str, ...]:
        """Return what every session says first. Order is relaxed because candidates are scored again here."""
        return (
            f"SET hnsw.ef_search = {self.ef_search}",
            "SET hnsw.iterative_scan = relaxed_order",
            f"SET hnsw.max_scan_tuples = {self.max_scan_tuples}",
        )

    def build(self, table: str, metric: Metric, vector: str, rows: int) -> str:
        """Return the statement."""
        del rows
        return (
            f'CREATE INDEX IF NOT EXISTS "{table}_v" ON "{table}" USING hnsw (v {vector}_{OPERATORS[metric][1]}_ops) '
            f"WITH (m = {self.m}, ef_construction = {self.ef_construction})"
        )


@dataclass(frozen=True, kw_only=True)
class IvfflatIndex(PgIndex):
    """Cells around centroids; built once there are rows to find centroids of."""

    kind: ClassVar[str] = "ivfflat"
    lists: int | None = None
    """Cells; by pgvector's own advice rows / 1,000 up to a million, and the square root of the rows beyond."""
    probes: int = 10

    def __post_init__(self) -> None:
        if self.lists is not None:
            _between("lists", self.lists, 1, 32_768)
        _between("probes", self.probes, 1, 32_768)

    def session(self) -> tuple[str, ...]:
        """Return what every session says first."""
        return (f"SET ivfflat.probes = {self.probes}", "SET ivfflat.iterative_scan = relaxed_order")

    def build(self, table: str, metric: Metric, vector: str, rows: int) -> str:
        """Return the statement."""
        advised = max(1, rows // 1_000) if rows <= 1_000_000 else math.isqrt(rows)
        return (
            f'CREATE INDEX IF NOT EXISTS "{table}_v" ON "{table}" USING ivfflat '
            f"(v {vector}_{OPERATORS[metric][1]}_ops) WITH (lists = {min(self.lists or advised, 32_768)})"
        )


KINDS: Mapping[str, type[PgIndex]] = {"hnsw": HnswIndex, "ivfflat": IvfflatIndex, "none": PgIndex}


def pg_index(kind: str) -> PgIndex:
    """Return the index of that kind with its default settings.

    Raises:
        UnknownNameError: no such kind.
    """
    if kind not in KINDS:
        raise UnknownNameError("index of pgvector", kind, KINDS)
    return KINDS[kind]()


def read_index(text: str) -> PgIndex:
    """Read what `PgIndex.text` wrote.

    >>> read_index(HnswIndex(m=8).text())
    HnswIndex(m=8, ef_construction=64, ef_search=100, max_scan_tuples=20000)
    """
    values = json.loads(text)
    return KINDS[values.pop("kind")](**values)


def _between(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name}={value} is outside {low}..{high}.")
