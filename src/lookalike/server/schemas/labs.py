"""Labs 1, 2 and 5: the embedding space, triplets and the query board."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from lookalike.server.schemas.base import FilterText, ItemId, Metric, Model, Name, Problem
from lookalike.server.schemas.search import Candidate

Kind: TypeAlias = Literal["easy", "semi-hard", "hard"]
Cosine: TypeAlias = Annotated[float, Field(ge=-1, le=1)]
Margin: TypeAlias = Annotated[float, Field(gt=0, le=4)]


class Histogram(Model):
    """Counts between edges; there is one edge more than counts."""

    edges: list[float]
    counts: list[int]


# Lab 1: the embedding space


class Space(Model):
    """Where cosine and raw dot product disagree over the whole catalogue."""

    n: int
    asked: int
    """Items whose first neighbour was looked up: all, or a seeded sample."""
    differ: int
    """Of those, how many have another first neighbour by raw dot product than by cosine."""
    differ_share: float
    differ_interval: list[float]
    norms: Histogram
    norm_low: float
    norm_mean: float
    norm_high: float
    normalised: bool
    note: str
    command: str


# Lab 2: triplets


class TripletRequest(Model):
    """Three items, or their cosines, or two cosines with the anchor."""

    anchor: ItemId | None = None
    positive: ItemId | None = None
    negative: ItemId | None = None
    cos_positive: Cosine | None = None
    cos_negative: Cosine | None = None
    margin: Margin = 0.2
    encoder: Name | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        items = [self.anchor, self.positive, self.negative]
        cosines = [self.cos_positive, self.cos_negative]
        by_items, by_cosines = all(x is not None for x in items), all(x is not None for x in cosines)
        if by_items == by_cosines or (by_cosines and any(x is not None for x in items)):
            raise ValueError("give anchor, positive and negative, or cos_positive and cos_negative")
        return self


class TripletSide(Model):
    """One side of the triangle."""

    cosine: float
    plain: float
    """√(2 − 2·cos), from 0 to 2."""
    squared: float
    """2 − 2·cos, from 0 to 4."""


class TripletVerdict(Model):
    """Loss and kind in one convention."""

    loss: float
    kind: Kind


class TripletAnswer(Model):
    """A triplet worked out in both conventions."""

    margin: float
    positive: TripletSide
    """Anchor to positive."""
    negative: TripletSide
    """Anchor to negative."""
    third: TripletSide | None
    """Positive to negative; null where only two cosines were given."""
    plain: TripletVerdict
    squared: TripletVerdict
    labels: list[str | None] | None
    """The labels of anchor, positive and negative."""
    warning: str | None
    """Where the labels say that this is no triplet."""
    command: str | None


class TripletBatchRequest(Model):
    """A batch of P classes with K items each, drawn by the seed, or the items given."""

    column: Name = "label"
    ids: Annotated[list[ItemId], Field(min_length=3, max_length=1_000)] | None = None
    where: FilterText | None = None
    classes: Annotated[int, Field(ge=2, le=100)] = 16
    per_class: Annotated[int, Field(ge=2, le=50)] = 4
    margin: Margin = 0.2
    squared: bool = False
    top: Annotated[int, Field(ge=1, le=100)] = 10
    encoder: Name | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class TripletCorner(Model):
    """An item of a triplet."""

    id: ItemId
    path: str
    label: str | None
    thumb: str


class HardRow(Model):
    """An anchor whose worst triplet loses most: often a wrong label."""

    anchor: TripletCorner
    positive: TripletCorner
    negative: TripletCorner
    worst: float
    """Loss of its worst triplet."""
    easy: int
    semi_hard: int
    hard: int


class TripletBatch(Model):
    """What all valid triplets of a batch say together."""

    items: int
    classes: int
    triplets: int
    """Valid ones: Σ over classes of n·(n − 1)·(N − n)."""
    easy: int
    semi_hard: int
    hard: int
    open_share: float
    loss_mean: float
    loss_open: float
    positive_mean: float | None
    negative_mean: float | None
    collapsed: bool
    margin: float
    squared: bool
    hardest: list[HardRow]
    note: str


# Lab 5: the query board


class BoardRequest(Model):
    """Several prompts by several encoders."""

    prompts: Annotated[list[Annotated[str, Field(min_length=1, max_length=2_000)]], Field(max_length=12)] = Field(
        default_factory=list
    )
    items: Annotated[list[ItemId], Field(max_length=12)] = Field(default_factory=list)
    """Items that ask as well."""
    encoders: Annotated[list[Name], Field(max_length=6)] = Field(default_factory=list)
    """The catalogue's own where empty."""
    where: FilterText | None = None
    k: Annotated[int, Field(ge=1, le=50)] = 5
    bins: Annotated[int, Field(ge=5, le=200)] = 40

    @model_validator(mode="after")
    def _asked(self) -> Self:
        if not self.prompts and not self.items:
            raise ValueError("give at least one prompt or item")
        return self


class BoardCell(Model):
    """One query by one encoder: every score of the gallery as a histogram, and the best candidates on it."""

    query: str
    encoder: str
    status: Literal["ok", "failed"]
    problem: Problem | None = None
    metric: Metric | None = None
    scores: Histogram | None = None
    median: float | None = None
    sigma: float | None = None
    """Robust standard deviation: 1.4826 times the median absolute deviation."""
    candidates: list[Candidate] = Field(default_factory=list)


class Board(Model):
    """Every query by every encoder, each with its own status."""

    cells: list[BoardCell]
    note: str
