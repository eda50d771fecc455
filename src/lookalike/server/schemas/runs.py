"""Saved runs of evaluation and of training."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from lookalike.server.schemas.base import ItemId, Model, Name


class Report(Model):
    """The JSON contract of `lookalike eval --format json`."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, use_attribute_docstrings=True)

    num_queries: int
    num_evaluated: int
    excluded: dict[str, int]
    num_gallery: int
    embedding_dim: int
    metrics: dict[str, float | None]
    intervals: dict[str, list[float | None]]
    protocol: dict[str, Any]
    encoder: dict[str, Any] | None
    index: dict[str, Any]
    timings: dict[str, float]
    diagnosis: list[str]
    warnings: list[str]
    run: str | None


class RunSummary(Model):
    """One saved evaluation."""

    id: str
    name: str
    created: float
    """Seconds since 1970."""
    encoder: str
    protocol: str
    """Digest of the protocol; numbers of two protocols are never compared."""
    relevance: str
    num_queries: int
    num_evaluated: int
    metrics: dict[str, float | None]
    intervals: dict[str, list[float | None]]


class RunList(Model):
    """Saved evaluations, best first within each protocol, the protocol with most runs first."""

    runs: list[RunSummary]
    metric: str
    command: str


class RunDetail(Model):
    """A saved evaluation with its whole report."""

    id: str
    name: str
    report: Report
    text: str
    """The report as the command line prints it."""


class RunQuery(Model):
    """One query of a saved evaluation."""

    name: str
    """Its path."""
    id: ItemId | None
    """The item, where the catalogue still holds it."""
    thumb: str | None
    label: str | None
    values: dict[str, float | None]
    """Metric to value; null where the query was not evaluated."""


class RunQueries(Model):
    """Queries of a run, worst first for `only=failed`."""

    run: str
    total: int
    """Queries that match."""
    queries: list[RunQuery]
    next: str | None


class CompareRequest(Model):
    """Two saved runs of one protocol."""

    a: Name
    b: Name
    seed: int = 0


class ComparedMetric(Model):
    """One metric of two runs over the same queries; `difference` is b minus a."""

    a: float | None
    b: float | None
    difference: float | None
    interval: list[float | None]
    p: float | None
    won: int
    lost: int
    tied: int
    verdict: str
    """`a`, `b` or `undecided`."""


class Comparison(Model):
    """Two runs compared query by query."""

    metrics: dict[str, ComparedMetric]
    command: str


class TrainedSummary(Model):
    """One saved training run."""

    id: str
    name: str
    created: float
    epochs: int
    finished: bool
    loss: str | None
    encoder: str
    """What to open it as: `run:FOLDER`."""
    held_out: dict[str, Any] | None


class TrainedList(Model):
    """Saved training runs, newest first."""

    runs: list[TrainedSummary]
    command: str


class TrainedDetail(Model):
    """A saved training run, epoch by epoch."""

    id: str
    name: str
    epochs: list[dict[str, Any]]
    """The objects of `lookalike train --format jsonl`."""
    card: str | None
    """The model card, in Markdown."""
    described: dict[str, Any] | None
