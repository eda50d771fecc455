"""Lab 3: recall@K, query by query and rank by rank, through the functions of `lookalike eval`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookalike.arrays import Ids, Mask, Scores, label_key
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import InputError
from lookalike.evaluate.confidence import intervals
from lookalike.evaluate.diagnose import diagnose
from lookalike.evaluate.metrics import mean
from lookalike.evaluate.protocol import RECALL_DEFINITION
from lookalike.evaluate.relevance import REASONS, SameLabel, Truth, build_truth
from lookalike.index.exact import topk
from lookalike.index.neighbours import Neighbours, check_metric
from lookalike.server.commands import command
from lookalike.server.items import sendable, thumbs
from lookalike.server.schemas.recall import RecallAt, RecallRequest, RecallRow, RecallStrip
from lookalike.server.shop import Shop


@dataclass(frozen=True, eq=False)
class _Strip:
    """Ranked answers of the queries and which of them are relevant."""

    queries: Ids
    labels: list[str | None]
    reasons: list[str]
    """(q,) empty where the query is evaluated."""
    found: Neighbours
    relevant: list[Mask]
    first: Scores
    """(q,) rank of the first relevant answer within the depth, infinite where none is."""
    gallery: int
    excluded: dict[str, int]
    sampled: bool


def strip(shop: Shop, request: RecallRequest) -> RecallStrip:
    """Return recall@K for every K up to the depth, and a page of queries with the relevance of each answer.

    Raises:
        UnknownNameError: no such column.
        InputError: fewer than two labels, or nothing passes the filter.
    """
    store = shop.store(request.encoder)
    what = (
        request.relevance,
        request.where,
        request.depth,
        request.self_match,
        request.metric,
        request.sample,
        request.seed,
    )
    made = shop.kept(store, ("strip", what), lambda: _strip(store, request))
    counted = np.array([not reason for reason in made.reasons])
    if request.absent == "count-as-miss":
        counted[:] = True
    values = {
        f"recall@{k}": np.where(counted, made.first <= k, np.nan).astype(np.float64)
        for k in range(1, request.depth + 1)
    }
    bounds = intervals(values, seed=request.seed) if counted.any() else {}
    metric = request.metric or store.metric
    recall = [_at(k, values[f"recall@{k}"], bounds.get(f"recall@{k}")) for k in range(1, request.depth + 1)]
    rows = np.flatnonzero(counted & (made.first > request.at)) if request.only == "failed" else np.arange(len(counted))
    measurement = not request.self_match and request.absent == "leave-out"
    means = {f"recall@{row.k}": row.value for row in recall if row.value is not None}
    return RecallStrip(
        num_queries=len(made.queries), num_evaluated=int(counted.sum()), num_gallery=made.gallery,
        excluded={} if request.absent == "count-as-miss" else made.excluded, recall=recall, measurement=measurement,
        sampled=made.sampled, definition=f"recall@K: {RECALL_DEFINITION}", matching=len(rows),
        rows=_rows(store, made, rows[request.offset : request.offset + request.limit]),
        diagnosis=diagnose(
            means, num_queries=len(made.queries), num_evaluated=int(counted.sum()), excluded=made.excluded,
            measured=not request.self_match,
        ),
        command=command(
            "eval", shop.shown, relevance=request.relevance, ks=f"1,{request.depth}" if request.depth > 1 else "1",
            query_where=request.where, gallery_where=request.where, metric=None if metric == "cosine" else metric,
            encoder=request.encoder, self_match=request.self_match, seed=request.seed or None,
        ),
    )  # fmt: skip


def _strip(store: Catalogue, request: RecallRequest) -> _Strip:
    ids = store.ids(where=request.where)
    if not len(ids):
        raise InputError("No item passes the filter.", hint="Widen it.")
    held = [label_key(value) for value in store.column(request.relevance, ids)]
    if len(set(held) - {None}) < 2:
        raise InputError(f"Column {request.relevance!r} has fewer than two values: every answer would be right.")
    asked = np.arange(len(ids))
    if len(asked) > request.sample:
        asked = np.sort(np.random.default_rng(request.seed).choice(asked, request.sample, replace=False))
    names = [held[row] for row in asked]
    truth = build_truth(
        SameLabel(names, held, name=request.relevance), num_queries=len(asked), num_gallery=len(ids),
        query_ids=None if request.self_match else ids[asked], gallery_ids=None if request.self_match else ids,
    )  # fmt: skip
    vectors = store.vectors(ids)
    exclude = None if request.self_match else [[number] for number in ids[asked].tolist()]
    metric = check_metric(request.metric or store.metric)
    found = topk(vectors[asked], vectors, request.depth, metric=metric, ids=ids, exclude=exclude, threads=store.threads)
    relevant = _relevant(truth, ids, found)
    first = np.array([np.flatnonzero(row)[0] + 1 if row.any() else np.inf for row in relevant])
    reasons = [REASONS[code] for code in truth.reasons.tolist()]
    return _Strip(ids[asked], names, reasons, found, relevant, first, len(ids), truth.excluded, len(asked) < len(ids))


def _relevant(truth: Truth, ids: Ids, found: Neighbours) -> list[Mask]:
    rows = np.repeat(np.arange(len(found)), found.lengths)
    hits = truth.relevant.has(rows, np.searchsorted(ids, found.ids))
    return np.split(np.asarray(hits, dtype=np.bool_), found.offsets[1:-1])


def _at(k: int, values: Scores, bound: tuple[float, float] | None) -> RecallAt:
    value = mean(values)
    low, high = bound or (np.nan, np.nan)
    return RecallAt(k=k, value=_finite(value), low=_finite(low), high=_finite(high))


def _rows(store: Catalogue, made: _Strip, rows: Ids) -> list[RecallRow]:
    ids = made.queries[rows]
    told = zip(rows.tolist(), ids.tolist(), store.paths(ids), thumbs(store, ids), strict=True)
    return [
        RecallRow(
            id=number,
            path=sendable(path),
            label=made.labels[row],
            thumb=thumb,
            status=made.reasons[row] or "evaluated",
            first=int(made.first[row]) if np.isfinite(made.first[row]) else None,
            relevant="".join("1" if hit else "0" for hit in made.relevant[row]),
            ids=made.found[row][0].tolist(),
            scores=made.found[row][1].tolist(),
        )
        for row, number, path, thumb in told
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
