"""Lab 3: recall@K, query by query and rank by rank."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lookalike.server.schemas.base import FilterText, ItemId, Metric, Model, Name


class RecallRequest(Model):
    """The query × rank strip of one evaluation, one page of queries at a time."""

    relevance: Name = "label"
    where: FilterText | None = None
    """Only these items, as queries and as gallery."""
    depth: Annotated[int, Field(ge=1, le=100)] = 20
    """Ranks shown."""
    self_match: bool = False
    absent: Literal["leave-out", "count-as-miss"] = "leave-out"
    """What becomes of queries without any relevant item."""
    metric: Metric | None = None
    encoder: Name | None = None
    only: Literal["all", "failed"] = "all"
    """`failed`: no relevant item among the first `at`."""
    at: Annotated[int, Field(ge=1, le=100)] = 1
    offset: Annotated[int, Field(ge=0, le=2**53 - 1)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    sample: Annotated[int, Field(ge=1, le=5_000)] = 2_000
    """Beyond this many queries a seeded sample asks."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class RecallAt(Model):
    """Recall@K with its interval."""

    k: int
    value: float | None
    low: float | None
    high: float | None


class RecallRow(Model):
    """One query and the relevance of its first answers."""

    id: ItemId
    path: str
    label: str | None
    thumb: str
    status: str
    """`evaluated`, or why not: `label_missing`, `label_absent`, `self_only`."""
    first: int | None
    """Rank of the first relevant answer within the depth; null where none is."""
    relevant: str
    """One letter a rank: `1` relevant, `0` not."""
    ids: list[ItemId]
    scores: list[float]


class RecallStrip(Model):
    """Recall@K for every K of the strip, and a page of its rows."""

    num_queries: int
    num_evaluated: int
    num_gallery: int
    excluded: dict[str, int]
    recall: list[RecallAt]
    measurement: bool
    """False where self-matches were kept or absent labels counted: not a measurement."""
    sampled: bool
    definition: str
    matching: int
    """Rows that match `only`."""
    rows: list[RecallRow]
    diagnosis: list[str]
    command: str
