"""Lab 4: bytes of an index before it is built, and measured settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lookalike.server.schemas.base import Metric, Model, Name


class MemoryRequest(Model):
    """Bytes of an index before it is built."""

    n: Annotated[int, Field(ge=1, le=10**11)] | None = None
    """Vectors; the catalogue's where null."""
    dim: Annotated[int, Field(ge=1, le=65_536)] | None = None
    kind: Name = "flat"
    settings: dict[str, int | bool | str | None] = Field(default_factory=dict)
    metric: Metric | None = None
    factors: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=6)] = Field(
        default=[1, 10, 100]
    )


class MemoryTable(Model):
    """The JSON contract of `lookalike memory --format json`, for one number of vectors."""

    kind: str
    n: int
    dim: int
    factor: int
    settings: dict[str, int | bool | str | None]
    components: dict[str, int]
    total: int
    bytes_per_vector: float
    exact: bool
    """True: exact; false: estimated, because it depends on how the vectors fall into lists."""
    file: int
    beside: dict[str, int]
    resident: int
    build: dict[str, int]
    build_peak: int
    command: str


class MemoryAnswer(Model):
    """Byte tables for this many vectors and its multiples."""

    tables: list[MemoryTable]


class MeasuredIndex(Model):
    """One setting, measured."""

    kind: str
    settings: dict[str, int | bool | str | None]
    overlap: float
    overlap_interval: list[float]
    p50_ms: float
    p95_ms: float
    bytes: int
    build_s: float
    fits: bool
    tags: dict[str, Literal["exact", "measured", "estimated"]]


class TuneResult(Model):
    """The JSON contract of `lookalike tune --format json`: the result of a tune job."""

    measured: list[MeasuredIndex]
    chosen: MeasuredIndex | None
    reason: str
    n: int
    dim: int
    measured_n: int
    metric: Metric
