"""The map, the columns it is coloured by, and masks of filters: binary, sent once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from lookalike.rank.maps import Method
from lookalike.server import columns, layout
from lookalike.server.binary import BINARY, binary, tagged
from lookalike.server.routes.catalogue import Encoder, Where
from lookalike.server.routes.wiring import PROBLEMS, TheGate, TheShop
from lookalike.server.schemas.catalogue import ColumnLegend, MapInfo, MaskRequest

router = APIRouter(tags=["map"], responses=PROBLEMS)
Name = Annotated[str, Path(max_length=500, description="A column; `@norm` is the length of each vector.")]
Way = Annotated[Method, Query(description="`umap` must have been made by a map job.")]


@router.get(
    "/map",
    response_class=Response,
    responses=binary("x float32, y float32, id uint32, little-endian, one after another."),
)
async def points(
    request: Request, shop: TheShop, gate: TheGate, method: Way = "pca", encoder: Encoder = None
) -> Response:
    """Return the points of a 2-D map in id order; `/map/info` says where each column begins."""
    content, etag = await gate.run(layout.packed, shop, method, encoder)
    return tagged(request, content, etag)


@router.get("/map/info")
async def info(shop: TheShop, gate: TheGate, method: Way = "pca", encoder: Encoder = None) -> MapInfo:
    """Describe a 2-D map: the layout of its bytes, and the share of neighbours on it that are true ones."""
    return await gate.run(layout.info, shop, method, encoder)


@router.get("/ids", response_class=Response, responses=binary("Ids of the items, uint32, little-endian, ascending."))
async def ids(request: Request, shop: TheShop, gate: TheGate, where: Where = None) -> Response:
    """Return the ids of all items that pass the filter."""
    store = shop.store()
    found = await gate.run(store.ids, where=where)
    content = layout.numbers(found)
    return tagged(request, content, f"{store.revision}-{hash_of(content)}", X_Count=str(len(found)))


@router.get("/columns/{name}")
async def legend(shop: TheShop, gate: TheGate, name: Name, where: Where = None) -> ColumnLegend:
    """Describe a column: its codes and what they stand for, counted over the items that pass the filter."""
    return await gate.run(columns.legend, shop, name, where)


@router.get(
    "/columns/{name}/values",
    response_class=Response,
    responses=binary("One value an item in id order, int32 codes or float32 numbers, little-endian."),
)
async def values(request: Request, shop: TheShop, gate: TheGate, name: Name) -> Response:
    """Return the values of a column; `/columns/{name}` says how to read them."""
    content, etag = await gate.run(columns.packed, shop, name)
    return tagged(request, content, etag)


@router.post(
    "/mask",
    response_class=Response,
    responses=binary("One bit an item in id order, the first in the lowest bit of the first byte."),
)
async def mask(shop: TheShop, gate: TheGate, request: MaskRequest) -> Response:
    """Return which items pass a filter; the headers X-Count and X-Selected say how many there are and how many pass."""
    content, selected, count = await gate.run(columns.mask, shop.store(), request.where, request.ids)
    headers = {"X-Count": str(count), "X-Selected": str(selected), "X-Revision": str(shop.store().revision)}
    return Response(content, media_type=BINARY, headers=headers)


def hash_of(content: bytes) -> str:
    """Return 16 hex digits of some bytes."""
    import hashlib

    return hashlib.blake2b(content, digest_size=8).hexdigest()
