"""Search by text, item, vector, picture, or their weighted sum."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from lookalike.server import ranking
from lookalike.server.problems import RefusedError
from lookalike.server.routes.wiring import PROBLEMS, TheGate, TheShop
from lookalike.server.schemas.search import SearchRequest, SearchResponse

router = APIRouter(tags=["search"], responses=PROBLEMS)
_PICTURES = 8
_REFERENCE = {"$ref": "#/components/schemas/SearchRequest"}
_FORM = {
    "type": "object",
    "properties": {
        "request": {
            "type": "string",
            "description": "A SearchRequest as JSON text; `{}` asks with the pictures alone.",
        },
        "pictures": {
            "type": "array",
            "maxItems": _PICTURES,
            "items": {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"},
        },
    },
    "required": ["pictures"],
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _REFERENCE}, "multipart/form-data": {"schema": _FORM}},
    }
}


@router.post("/search", openapi_extra=_BODY)
async def search(http: Request, shop: TheShop, gate: TheGate) -> SearchResponse:
    """Rank the items for one query: JSON, or multipart/form-data where pictures come with it."""
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        text, pictures = await _form(http)
    elif kind in ("application/json", ""):
        text, pictures = await http.body(), []
    else:
        raise RefusedError(415, f"A search is no {kind!r}.", hint="Send application/json or multipart/form-data.")
    return await gate.run(ranking.answer, shop, _parsed(text), pictures)


async def _form(http: Request) -> tuple[bytes, list[bytes]]:
    async with http.form(max_files=_PICTURES, max_fields=4, max_part_size=1 << 20) as form:
        asked = form.get("request") or "{}"
        pictures = [await each.read() for each in form.getlist("pictures") if isinstance(each, UploadFile)]
        text = await asked.read() if isinstance(asked, UploadFile) else asked.encode("utf-8", "surrogatepass")
    return text, pictures


def _parsed(text: bytes) -> SearchRequest:
    try:
        return SearchRequest.model_validate_json(text or b"{}")
    except ValidationError as error:
        raise _refused(error) from error


def _refused(error: ValidationError) -> Exception:
    from fastapi.exceptions import RequestValidationError

    details: Any = error.errors(include_url=False, include_context=False, include_input=False)
    return RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in details])
