"""Long work: asked for, watched, cancelled."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from lookalike.server.schemas.base import FilterText, Metric, Model, Name, Problem
from lookalike.server.schemas.search import Expansion

JobKind: TypeAlias = Literal["evaluate", "tune", "train", "sync", "map", "index"]
JobState: TypeAlias = Literal["running", "cancelling", "done", "failed", "cancelled"]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]


class JobProgress(Model):
    """How far a job is."""

    done: float
    total: float | None
    text: str


class Job(Model):
    """A piece of long work."""

    id: str
    kind: JobKind
    state: JobState
    progress: JobProgress
    seconds: float
    """Since it began, or that it took."""
    request: dict[str, Any]
    result: dict[str, Any] | None = None
    """By kind: the report, the tune table, the sync counts, the map, the measured index, the training verdict."""
    problem: Problem | None = None
    command: str
    """The command that does the same."""


class JobStarted(Model):
    """A job was accepted."""

    job: str
    kind: JobKind
    url: str
    events: str


class JobList(Model):
    """The jobs of this server since it started, newest first."""

    jobs: list[Job]


class JobEvent(Model):
    """One server-sent event of a job: `progress`, `epoch`, or the last one, named by the final state."""

    number: int
    event: Literal["progress", "epoch", "done", "failed", "cancelled"]
    progress: JobProgress | None = None
    data: dict[str, Any] | None = None


class EvaluateRequest(Model):
    """One evaluation of the stored vectors, with the options of `lookalike eval`."""

    relevance: Name = "label"
    """Relevant means: the same value in this column."""
    camera: Name | None = None
    identity: Name | None = None
    """The column by which the bootstrap resamples whole groups."""
    query_where: FilterText | None = None
    gallery_where: FilterText | None = None
    holdout: Annotated[float, Field(gt=0, lt=1)] | None = None
    holdout_by: Literal["item", "identity"] = "item"
    ks: Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(min_length=1, max_length=20)] = Field(
        default=[1, 5, 10]
    )
    metric: Metric | None = None
    """The catalogue's where null."""
    encoder: Name | None = None
    rerank: Name | None = None
    pool: Annotated[int, Field(ge=1, le=2_000)] = 100
    expand: Expansion | None = None
    self_match: bool = False
    """Let each query find itself; the report says: not a measurement."""
    seed: Seed = 0
    save: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = None
    """Name of the run; one is made where null."""


class TuneRequest(Model):
    """What is asked of an index."""

    recall: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Least overlap with exact search."""
    latency_ms: Annotated[float, Field(gt=0, le=1e6)] | None = None
    ram: Annotated[int, Field(gt=0, le=2**50)] | None = None
    """Most resident bytes."""
    kinds: Annotated[list[Name], Field(min_length=1, max_length=20)] | None = None
    sample_rows: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    """Beyond this many vectors a sample is measured."""
    encoder: Name | None = None
    seed: Seed = 0


class TrainRequest(Model):
    """A head on the stored vectors, fine-tuned with the options of `lookalike train`."""

    column: Name = "label"
    """Which pictures are to be near one another: those with the same value here."""
    loss: Name = "triplet"
    loss_options: dict[str, float | bool] = Field(default_factory=dict)
    mining: Name | None = None
    dim: Annotated[int, Field(ge=2, le=4_096)] = 128
    layers: Annotated[int, Field(ge=1, le=2)] = 1
    classes: Annotated[int, Field(ge=2, le=1_000)] = 16
    per_class: Annotated[int, Field(ge=2, le=1_000)] = 4
    epochs: Annotated[int, Field(ge=1, le=1_000)] = 30
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-3
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.3
    encoder: Name | None = None
    seed: Seed = 0
    save: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = None


class SyncRequest(Model):
    """Bring the catalogue up to date with its folder."""

    strict: bool = False
    allow_empty: bool = False


class MapRequest(Model):
    """Lay out a 2-D map; it is kept beside the catalogue until the vectors change."""

    method: Literal["pca", "umap"] = "pca"
    seed: Seed = 0
    encoder: Name | None = None


class IndexRequest(Model):
    """Build one index over the stored vectors (or a sample) and measure it; a built one is kept for other efforts."""

    kind: Name = "ivf"
    settings: dict[str, int | bool | str | None] = Field(default_factory=dict)
    """`nlist`, `nprobe`, `m`, `ef_search`, `k_factor`, … of that kind."""
    sample_rows: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    k: Annotated[int, Field(ge=1, le=100)] = 10
    encoder: Name | None = None
    seed: Seed = 0
