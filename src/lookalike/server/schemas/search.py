"""A query and its ranked candidates."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from lookalike.server.schemas.base import Cell, FilterText, ItemId, Metric, Model, Name

Weight = Annotated[float, Field(ge=-100, le=100)]


class QueryTerm(Model):
    """One part of a query: exactly one of text, item, vector and picture, and its weight."""

    text: Annotated[str, Field(min_length=1, max_length=2_000)] | None = None
    item: ItemId | None = None
    vector: Annotated[list[float], Field(min_length=1, max_length=65_536)] | None = None
    picture: Annotated[int, Field(ge=0, le=7)] | None = None
    """Number of an uploaded picture, from 0 (multipart requests only)."""
    weight: Weight = 1.0
    """Negative asks for less of it; 0 is refused."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in ("text", "item", "vector", "picture") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of text, item, vector and picture, not {given or 'none'}")
        return self


class Expansion(Model):
    """Alpha query expansion before the pool is retrieved."""

    n: Annotated[int, Field(ge=1, le=100)] = 10
    alpha: Annotated[float, Field(ge=0, le=20)] = 3.0


class SearchRequest(Model):
    """What is asked, and of what."""

    terms: Annotated[list[QueryTerm], Field(max_length=8)] = Field(default_factory=list)
    """The parts of one query; uploaded pictures that no term names are added with weight 1."""
    k: Annotated[int, Field(ge=1, le=1_000)] = 10
    where: FilterText | None = None
    rerank: Name | None = None
    """`NAME` or `NAME:setting=value,…`, such as `k-reciprocal:k1=30`."""
    pool: Annotated[int, Field(ge=1, le=2_000)] = 100
    """How many candidates the re-ranker sees; at least k."""
    expand: Expansion | None = None
    encoder: Name | None = None
    """Which of the catalogue's encoders; its first where null."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Chooses the sample lift is measured against."""


class Candidate(Model):
    """One ranked match, with the fields of `lookalike search --format jsonl`."""

    query: str
    rank: int
    id: ItemId
    path: str
    score: float
    metric: Metric
    higher_is_better: bool
    lift: float | None
    """Robust standard deviations above this query's own median score; null where all scores are equal."""
    first_rank: int
    """Rank before re-ranking."""
    columns: dict[str, Cell]
    thumb: str


class SearchResponse(Model):
    """The candidates of one query, best first."""

    query: str
    candidates: list[Candidate]
    metric: Metric
    higher_is_better: bool
    encoder: str
    searched: int
    """Items that pass the filter."""
    revision: int
    notes: list[str]
    """Why there are fewer than k, what the index leaves out, …"""
    took_ms: float
    command: str | None
    """The command that gives the same candidates; null where there is none (ready vectors, uploads)."""


class Neighbour(Model):
    """A true neighbour in the full space."""

    rank: int
    id: ItemId
    path: str
    cosine: float
    dot: float
    columns: dict[str, Cell]
    thumb: str


class NeighbourLists(Model):
    """The true neighbours of an item, exact, by cosine and by raw dot product side by side."""

    id: ItemId
    norm: float
    by_cosine: list[Neighbour]
    by_dot: list[Neighbour]
    differ: bool
    """Whether the first neighbours differ."""
    note: str
    command: str
