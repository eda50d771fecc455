"""Saved runs of evaluation and of training."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from lookalike.server import runs
from lookalike.server.binary import binary, tagged
from lookalike.server.routes.wiring import PROBLEMS, TheGate, TheShop
from lookalike.server.schemas.runs import (
    CompareRequest,
    Comparison,
    RunDetail,
    RunList,
    RunQueries,
    TrainedDetail,
    TrainedList,
)

router = APIRouter(tags=["runs"], responses=PROBLEMS)
Number = Annotated[str, Path(max_length=40, description="The id of a saved run.")]
Metric = Annotated[str, Query(max_length=100, description="recall@1, map@r, …")]


@router.get("/runs")
async def listed(shop: TheShop, gate: TheGate, metric: Metric = "recall@1") -> RunList:
    """List saved evaluations, best first within each protocol."""
    return await gate.run(runs.listed, shop, metric)


@router.get("/runs/{number}")
async def run(shop: TheShop, gate: TheGate, number: Number) -> RunDetail:
    """Return a saved evaluation."""
    return await gate.run(runs.detail, shop, number)


@router.get("/runs/{number}/queries")
async def queries(
    shop: TheShop,
    gate: TheGate,
    number: Number,
    only: Annotated[Literal["all", "failed"], Query(description="failed: no relevant item among the first K")] = "all",
    metric: Metric = "recall@1",
    cursor: Annotated[str | None, Query(max_length=20)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> RunQueries:
    """Return the queries of a run with their values."""
    return await gate.run(runs.queries, shop, number, only, metric, cursor, limit)


@router.get(
    "/runs/{number}/values",
    response_class=Response,
    responses=binary("One float32 an item in id order, little-endian, NaN where the item did not ask."),
)
async def values(
    request: Request, shop: TheShop, gate: TheGate, number: Number, metric: Metric = "recall@1"
) -> Response:
    """Return the value of a metric for every item that asked in a run, to colour the map by."""
    content, etag = await gate.run(runs.values, shop, number, metric)
    return tagged(request, content, etag)


@router.post("/runs/compare")
async def compare(shop: TheShop, gate: TheGate, request: CompareRequest) -> Comparison:
    """Compare two saved runs of one protocol, query by query."""
    return await gate.run(runs.compared, shop, request)


@router.get("/trained")
async def trained(shop: TheShop, gate: TheGate) -> TrainedList:
    """List saved training runs, newest first."""
    return await gate.run(runs.trained, shop)


@router.get("/trained/{number}")
async def trained_run(shop: TheShop, gate: TheGate, number: Number) -> TrainedDetail:
    """Return a saved training run, epoch by epoch."""
    return await gate.run(runs.trained_detail, shop, number)
