"""The five labs on the catalogue's own pictures; the index lab's measuring is a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from lookalike.server.labs import board, memory, recall, space, triplets
from lookalike.server.routes.catalogue import Encoder
from lookalike.server.routes.wiring import PROBLEMS, TheGate, TheShop
from lookalike.server.schemas.indexes import MemoryAnswer, MemoryRequest
from lookalike.server.schemas.labs import (
    Board,
    BoardRequest,
    Space,
    TripletAnswer,
    TripletBatch,
    TripletBatchRequest,
    TripletRequest,
)
from lookalike.server.schemas.recall import RecallRequest, RecallStrip

router = APIRouter(prefix="/labs", tags=["labs"], responses=PROBLEMS)


@router.get("/space")
async def embedding_space(
    shop: TheShop, gate: TheGate, encoder: Encoder = None, bins: Annotated[int, Query(ge=5, le=200)] = 40
) -> Space:
    """Lab 1: where cosine and raw dot product disagree, and the lengths of the vectors."""
    return await gate.run(space.disagreement, shop, encoder, bins)


@router.post("/triplet")
async def triplet(shop: TheShop, gate: TheGate, request: TripletRequest) -> TripletAnswer:
    """Lab 2: one triplet in plain and in squared distance."""
    return await gate.run(triplets.one_triplet, shop, request)


@router.post("/triplets")
async def triplet_batch(shop: TheShop, gate: TheGate, request: TripletBatchRequest) -> TripletBatch:
    """Lab 2, batch tab: what all valid triplets of a batch say, and its hardest rows."""
    return await gate.run(triplets.whole_batch, shop, request)


@router.post("/recall")
async def recall_strip(shop: TheShop, gate: TheGate, request: RecallRequest) -> RecallStrip:
    """Lab 3: the query × rank strip and recall@K for every K."""
    return await gate.run(recall.strip, shop, request)


@router.post("/memory")
async def bytes_of(shop: TheShop, gate: TheGate, request: MemoryRequest) -> MemoryAnswer:
    """Lab 4: bytes of an index before it is built, for this many vectors and its multiples."""
    return await gate.run(memory.tables, shop, request)


@router.post("/board")
async def query_board(shop: TheShop, gate: TheGate, request: BoardRequest) -> Board:
    """Lab 5: several prompts by several encoders, each over the histogram of its own scores."""
    return await gate.run(board.cells, shop, request)
