"""Health, version, the catalogue and its items."""

from __future__ import annotations

import platform
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from lookalike import __version__
from lookalike.server import items, overview
from lookalike.server.binary import BINARY, binary
from lookalike.server.pictures import SIZES, original, small
from lookalike.server.ranking import neighbour_lists
from lookalike.server.routes.wiring import PROBLEMS, TheGate, TheShop
from lookalike.server.schemas.base import FilterText, ItemId
from lookalike.server.schemas.catalogue import (
    CatalogueInfo,
    FailureList,
    Health,
    Item,
    ItemPage,
    ItemResults,
    ItemsRequest,
    Version,
)
from lookalike.server.schemas.search import NeighbourLists

router = APIRouter(tags=["catalogue"], responses=PROBLEMS)
Number = Annotated[ItemId, Path(description="The number of an item.")]
Where = Annotated[FilterText | None, Query(description="A filter: category = 'shoe' and price < 50")]
Encoder = Annotated[str | None, Query(max_length=500, description="One of the catalogue's encoders.")]


@router.get("/health")
def health(shop: TheShop) -> Health:
    """Say that the server answers."""
    return Health(revision=shop.store().revision)


@router.get("/version")
def version() -> Version:
    """Say which lookalike answers."""
    return Version(lookalike=__version__, api="v1", python=platform.python_version())


@router.get("/catalogue")
def catalogue(shop: TheShop) -> CatalogueInfo:
    """Describe the catalogue, its encoders and columns, and what can be asked."""
    return overview.catalogue_info(shop)


@router.get("/failures")
def failures(shop: TheShop) -> FailureList:
    """List the files of the last sync that have no vector, and why."""
    return overview.failures(shop.store())


@router.get("/items")
def page(
    shop: TheShop,
    where: Where = None,
    cursor: Annotated[str | None, Query(max_length=40, description="The `next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ItemPage:
    """List items in id order, those that pass the filter."""
    return items.page(shop.store(), where, cursor, limit)


@router.post("/items")
def batch(shop: TheShop, request: ItemsRequest) -> ItemResults:
    """Return items by number, each with its own status."""
    return ItemResults(results=items.batch(shop.store(), request.ids))


@router.get("/items/{number}")
def item(shop: TheShop, number: Number) -> Item:
    """Return one item."""
    store = shop.store()
    return items.describe(store, items.one(store, number))[0]


@router.get("/items/{number}/thumb", response_class=Response, responses=binary("A WebP picture.", "image/webp"))
async def thumb(
    request: Request,
    shop: TheShop,
    gate: TheGate,
    number: Number,
    size: Annotated[
        int, Query(ge=16, le=SIZES[-1], description="Longer side in pixels, rounded up to a made size.")
    ] = 256,
    v: Annotated[
        str | None, Query(max_length=64, description="From the item's `thumb`; lets it be kept for ever.")
    ] = None,
) -> Response:
    """Return an item's picture, small and upright, without metadata."""
    return await gate.run(small, request, shop, number, size, v)


@router.get("/items/{number}/image", response_class=Response, responses=binary("A picture.", "image/*", BINARY))
async def image(
    request: Request,
    shop: TheShop,
    gate: TheGate,
    number: Number,
    form: Annotated[
        Literal["view", "original"], Query(alias="as", description="`original`: the bytes, to save.")
    ] = "view",
) -> Response:
    """Return an item's picture: upright pixels of at most 2048 a side, or the file itself as an attachment."""
    if form == "view":
        return await gate.run(small, request, shop, number, SIZES[-1], None)
    return await gate.run(original, request, shop, number)


@router.get("/items/{number}/neighbours")
async def neighbours(
    shop: TheShop,
    gate: TheGate,
    number: Number,
    k: Annotated[int, Query(ge=1, le=200)] = 10,
    where: Where = None,
    encoder: Encoder = None,
) -> NeighbourLists:
    """Return an item's true neighbours, by cosine and by raw dot product side by side."""
    return await gate.run(neighbour_lists, shop, number, k, where, encoder)
