"""The catalogue, its items and its columns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from lookalike.server.schemas.base import Cell, FilterText, ItemId, Metric, Model, Problem


class Health(Model):
    """That the server answers."""

    status: Literal["ok"] = "ok"
    revision: int


class Version(Model):
    """Which lookalike answers."""

    lookalike: str
    api: str
    python: str


class EncoderInfo(Model):
    """An encoder that has vectors in the catalogue."""

    name: str
    dim: int
    digest: str
    pooling: str
    image_size: int | None
    normalised: bool
    licence: str
    supports_text: bool
    text_refusal: str | None
    """Why a text cannot be asked with this encoder; null where it can."""


class ColumnInfo(Model):
    """A column a filter may name."""

    name: str
    type: Literal["text", "integer", "real", "boolean"]
    builtin: bool


class Choice(Model):
    """One name a request may use, and whether it can be used here."""

    name: str
    summary: str
    available: bool = True
    reason: str | None = None
    """Why it cannot be used here, with the next step."""


class CatalogueInfo(Model):
    """What a page must know to start."""

    name: str
    folder: str
    root: str | None
    """The folder the paths start from; null for ready vectors without pictures."""
    items: int
    revision: int
    metric: Metric
    higher_is_better: bool
    dim: int
    encoder: str
    """The encoder that answers unless another is named."""
    encoders: list[EncoderInfo]
    columns: list[ColumnInfo]
    label: str | None
    """The column the labs begin with: `label`, or the first of text."""
    failures: int
    readonly: bool
    index: dict[str, Any] | None
    """The approximate index in use; null where search is exact."""
    rerankers: list[Choice]
    maps: list[Choice]
    index_kinds: list[str]
    losses: list[str]
    train: Choice
    """Whether `train` can run here."""
    limits: dict[str, int]
    """The largest request of each kind."""


class Item(Model):
    """One picture of the catalogue."""

    id: ItemId
    path: str
    width: int | None
    height: int | None
    frames: int | None
    size: int | None
    """Bytes of the file."""
    content: str | None
    """BLAKE2b of the bytes, in hex."""
    thumb: str
    """Address of its small picture, without the size; it changes with the bytes."""
    columns: dict[str, Cell]


class ItemPage(Model):
    """Some items in id order, and where the next ones begin."""

    items: list[Item]
    total: int
    """Items that pass the filter."""
    next: str | None
    """The `cursor` of the next page; null on the last."""
    revision: int


class ItemsRequest(Model):
    """Items by number."""

    ids: Annotated[list[ItemId], Field(max_length=1_000)]


class ItemResult(Model):
    """One asked-for item: the item, or why there is none."""

    id: int
    status: Literal["ok", "failed"]
    item: Item | None = None
    problem: Problem | None = None


class ItemResults(Model):
    """Every asked-for item with its own status, in the order asked."""

    results: list[ItemResult]


class FailureRow(Model):
    """A file without a vector, and why."""

    path: str
    reason: str
    meaning: str
    """What the reason code means."""
    detail: str


class FailureList(Model):
    """The files of the last sync that have no vector."""

    failures: list[FailureRow]
    by_reason: dict[str, int]


class LegendEntry(Model):
    """One value of a column and the code it has in the binary column."""

    code: int
    value: Cell
    count: int


class ColumnLegend(Model):
    """How the binary values of a column are to be read."""

    name: str
    type: Literal["text", "integer", "real", "boolean"]
    encoding: Literal["codes", "numbers"]
    """`codes`: little-endian int32, -1 where missing, looked up in `legend`. `numbers`: little-endian float32, NaN
    where missing."""
    n: int
    """Values, one an item in id order."""
    missing: int
    low: float | None
    high: float | None
    legend: list[LegendEntry]
    """Most frequent first; empty for `numbers`."""
    legend_total: int
    """Distinct values; more than `legend` has where it was cut."""
    revision: int


class MaskRequest(Model):
    """Which items are wanted."""

    where: FilterText | None = None
    ids: Annotated[list[ItemId], Field(max_length=1_000_000)] | None = None
    """Only these, where given."""


class BinaryColumn(Model):
    """Where one column lies in a binary answer."""

    name: str
    dtype: Literal["float32", "uint32"]
    offset: int
    """Bytes from the beginning."""
    bytes: int


class Trust(Model):
    """Share of an item's 2-D neighbours that are true neighbours in the full space, over a sample of items."""

    value: float
    low: float
    high: float
    """95 % interval."""
    k: int
    sample: int
    definition: str


class MapInfo(Model):
    """A 2-D map and how its binary columns are laid out."""

    method: Literal["pca", "umap"]
    n: int
    revision: int
    columns: list[BinaryColumn]
    bytes: int
    explained: list[float] | None
    """Share of the variance on each axis (PCA); null for UMAP, whose axes mean nothing."""
    trust: Trust
    note: str
    command: str
