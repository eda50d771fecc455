"""What each kind of job does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lookalike.errors import MissingExtraError
from lookalike.evaluate.labels import label
from lookalike.server import evaluation, indexing, layout, training
from lookalike.server.commands import command
from lookalike.server.items import plain
from lookalike.server.jobs import Jobs, Watched, Work
from lookalike.server.pictures import prune
from lookalike.server.schemas.jobs import (
    EvaluateRequest,
    IndexRequest,
    MapRequest,
    SyncRequest,
    TrainRequest,
    TuneRequest,
)
from lookalike.server.shop import Shop


def evaluate(shop: Shop, jobs: Jobs, request: EvaluateRequest) -> Watched:
    """Start an evaluation."""
    checked = evaluation.prepared(shop, request)
    return jobs.start("evaluate", request.model_dump(), checked.command, checked.run)


def tune(shop: Shop, jobs: Jobs, request: TuneRequest) -> Watched:
    """Start measuring kinds of index."""
    latency = None if request.latency_ms is None else f"{request.latency_ms:g}ms"
    said = command("tune", shop.shown, recall=request.recall, latency=latency, ram=request.ram, encoder=request.encoder)
    return jobs.start("tune", request.model_dump(), said, lambda work: indexing.tuned(shop, request, work))


def index(shop: Shop, jobs: Jobs, request: IndexRequest) -> Watched:
    """Start building and measuring one index."""
    said = command("tune", shop.shown, kinds=request.kind)
    checked = indexing.checked(request.kind, request.settings)
    return jobs.start("index", request.model_dump(), said, lambda work: indexing.measured(shop, request, checked, work))


def train(shop: Shop, jobs: Jobs, request: TrainRequest) -> Watched:
    """Start fine-tuning a head.

    Raises:
        MissingExtraError: torch is not installed.
    """
    checked = training.prepared(shop, request)
    return jobs.start("train", request.model_dump(), checked.command, checked.run)


def sync(shop: Shop, jobs: Jobs, request: SyncRequest) -> Watched:
    """Start bringing the catalogue up to date."""

    def run(work: Work) -> dict[str, Any]:
        with shop.writable() as catalogue:
            result = catalogue.sync(
                strict=request.strict,
                allow_empty=request.allow_empty,
                progress=lambda step: work.progress(step.done, step.total, _said(step.failed)),
                cancel=work.cancelled,
            )
            if result.added or result.moved:
                label(catalogue)
        prune(shop)
        return {**plain(result.to_dict()), "cancelled": result.cancelled}

    said = command("sync", shop.shown, strict=request.strict, allow_empty=request.allow_empty)
    return jobs.start("sync", request.model_dump(), said, run)


def lay_out(shop: Shop, jobs: Jobs, request: MapRequest) -> Watched:
    """Start laying out a map.

    Raises:
        MissingExtraError: UMAP is not installed.
    """
    import importlib.util

    if request.method == "umap" and importlib.util.find_spec("umap") is None:
        raise MissingExtraError("A UMAP map", "maps")

    def run(work: Work) -> dict[str, Any]:
        layout.make(shop, request.method, request.encoder, request.seed, lambda text: work.progress(0, None, text))
        return layout.info(shop, request.method, request.encoder).model_dump(mode="json")

    return jobs.start("map", request.model_dump(), "", run)


Function = Callable[[Work], dict[str, Any]]


def _said(failed: int) -> str:
    return f"{failed} failed" if failed else "syncing"
