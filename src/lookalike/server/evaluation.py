"""One evaluation of stored vectors: the sides, the split and the measure of `lookalike eval`."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import InputError
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side
from lookalike.evaluate.splits import Split, holdout, leave_one_out
from lookalike.evaluate.staged import Stages
from lookalike.index.neighbours import check_metric
from lookalike.rank.stages import expand_stage, rerank_stage
from lookalike.server.commands import command
from lookalike.server.items import plain
from lookalike.server.jobs import Work
from lookalike.server.runs import number_of
from lookalike.server.schemas.jobs import EvaluateRequest
from lookalike.server.shop import Shop


@dataclass(frozen=True)
class Prepared:
    """A checked job: the command that does the same, and what it does."""

    command: str
    run: Callable[[Work], dict[str, Any]]


def prepared(shop: Shop, request: EvaluateRequest) -> Prepared:
    """Check a request before its job begins, so that a misspelt name is an answer and not a failed job.

    Raises:
        UnknownNameError: no such column, re-ranker or encoder.
        InputError: a filter that cannot be understood, two ways to split at once, a name of a run that is taken.
    """
    store = shop.store(request.encoder)
    for column in filter(None, (request.relevance, request.camera, request.identity)):
        store.column(column, store.ids()[:0])
    if request.holdout is not None and (request.query_where or request.gallery_where):
        raise InputError("A holdout and filters each say who asks; name one of them.")
    for where in filter(None, (request.query_where, request.gallery_where)):
        store.ids(where=where)
    stages = stages_of(request)
    folder = free(shop.runs, request.save or _name(request))
    metric = check_metric(request.metric or store.metric)
    said = _command(shop, request, metric, folder)
    return Prepared(said, lambda work: _run(shop, request, stages, folder, said, work))


def stages_of(request: EvaluateRequest) -> Stages:
    """Return what happens between the first ranking and the scored one."""
    expand = None if request.expand is None else expand_stage(_expand(request))
    return Stages(expand=expand, rerank=rerank_stage(request.rerank) if request.rerank else None, pool=request.pool)


def sides(store: Catalogue, request: EvaluateRequest) -> tuple[Side, Side, str]:
    """Return who asks, who answers, and the split in words."""
    everything = Side.of_catalogue(store)
    split = _split(store, request, everything)
    queries = everything.having(everything.ids[list(split.query)])
    gallery = queries if split.leave_one_out else everything.having(everything.ids[list(split.gallery)])
    return queries, gallery, split.description


def free(parent: Path, name: str) -> Path:
    """Return the folder of a new run, numbered where the name is taken.

    >>> free(Path("nowhere"), "label").name
    'label'
    """
    candidates: Iterable[Path] = (parent / (name if n == 1 else f"{name}-{n}") for n in range(1, 10_000))
    found = next((path for path in candidates if not path.exists()), None)
    if found is None:
        raise InputError(f"There are too many runs called {name!r}.", hint="Choose another name.")
    return found


def _run(shop: Shop, request: EvaluateRequest, stages: Stages, folder: Path, said: str, work: Work) -> dict[str, Any]:
    store = shop.store(request.encoder)
    work.progress(0, 2, "reading vectors")
    queries, gallery, split = sides(store, request)
    work.progress(1, 2, f"ranking {len(gallery):,} items for {len(queries):,} queries")
    report = measure(
        queries, gallery, relevance=request.relevance, camera=request.camera, cluster=request.identity,
        metric=check_metric(request.metric or store.metric), ks=request.ks, split=split, seed=request.seed,
        self_match=request.self_match, stages=stages, card=store.card, threads=shop.settings.threads,
    )  # fmt: skip
    work.check()  # a run that was given up is not saved
    saved = dataclasses.replace(report, command=said).save(folder)
    return {"run_id": number_of(folder), "report": plain(saved.to_dict())}


def _split(store: Catalogue, request: EvaluateRequest, everything: Side) -> Split:
    wheres = (request.query_where, request.gallery_where)
    if any(wheres):
        asks, answers = (
            np.flatnonzero(np.isin(everything.ids, store.ids(where=where or None))).tolist() for where in wheres
        )
        return Split.of_rows(everything.names, asks, answers, " against ".join(where or "all" for where in wheres))
    if request.holdout is None:
        return leave_one_out(everything.names)
    column = request.identity or request.relevance if request.holdout_by == "identity" else request.relevance
    labels = [None if value is None else str(value) for value in everything.column(column)]
    return holdout(everything.names, labels, request.holdout, by=request.holdout_by, seed=request.seed)


def _name(request: EvaluateRequest) -> str:
    words = [request.relevance, request.rerank or "", "expanded" if request.expand else ""]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(filter(None, words))).strip("-.") or "run"
    return f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{name}"[:100]


def _expand(request: EvaluateRequest) -> str:
    return "" if request.expand is None else f"alpha:n={request.expand.n},alpha={request.expand.alpha:g}"


def _command(shop: Shop, request: EvaluateRequest, metric: str, folder: Path) -> str:
    by_identity = request.holdout is not None and request.holdout_by == "identity"
    return command(
        "eval", shop.shown, relevance=request.relevance, camera=request.camera, identity=request.identity,
        query_where=request.query_where, gallery_where=request.gallery_where, holdout=request.holdout,
        holdout_by="identity" if by_identity else None, ks=",".join(map(str, request.ks)),
        metric=None if metric == "cosine" else metric, encoder=request.encoder, rerank=request.rerank,
        pool=request.pool if request.rerank else None, expand=_expand(request) or None, self_match=request.self_match,
        seed=request.seed or None, save=folder,
    )  # fmt: skip
