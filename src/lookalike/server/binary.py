"""Answers that are bytes: their OpenAPI, and their ETags."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

BINARY = "application/octet-stream"


def binary(what: str, *media_types: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI of a binary answer."""
    schema = {"type": "string", "format": "binary"}
    content = {media_type: {"schema": schema} for media_type in media_types or (BINARY,)}
    return {
        200: {"description": what, "content": content},
        304: {"description": "Not changed since the ETag the request named."},
    }


def tagged(request: Request, content: bytes, etag: str, *, media_type: str = BINARY, **headers: str) -> Response:
    """Return content with its ETag, or 304 where the asker has it."""
    tag = f'"{etag}"'
    sent = {"ETag": tag, "Cache-Control": "private, no-cache", **{k.replace("_", "-"): v for k, v in headers.items()}}
    named = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in named or "*" in named:
        return Response(status_code=304, headers=sent)
    return Response(content, media_type=media_type, headers=sent)
