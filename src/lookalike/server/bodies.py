"""How large a request may be and how long it may take to arrive."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookalike.server.problems import response
from lookalike.server.schemas.base import Problem
from lookalike.server.settings import Settings

_LEAVE = {"Connection": "close"}


class Bodies:
    """Counts the bytes of a request as they come, whatever its headers promise."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; where it is too large or too slow, 413 or 408 is the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        multipart = headers.get("content-type", "").lower().startswith("multipart/")
        limit = self._settings.max_upload if multipart else self._settings.max_body
        promised = headers.get("content-length", "0")
        if not promised.isdigit() or int(promised) > limit:
            problem = Problem(
                title="TooLarge", status=413, detail=_too_large(limit),
                hint="Send a smaller picture, or fewer at a time.",
            )  # fmt: skip
            await response(problem, {"Connection": "close"})(scope, receive, send)
            return
        await self._app(scope, _counted(receive, limit, self._settings.body_seconds), send)


def _counted(receive: Receive, limit: int, seconds: float) -> Receive:
    seen = 0
    whole = False
    deadline = time.monotonic() + seconds

    async def counted() -> Message:
        nonlocal seen, whole
        if whole:  # what comes now is the end of the connection, for which there is no hurry
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), max(0.001, deadline - time.monotonic()))
        except TimeoutError:
            raise HTTPException(408, f"The request did not arrive within {seconds:g} s.", _LEAVE) from None
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > limit:
                raise HTTPException(413, _too_large(limit), _LEAVE)
        return message

    return counted


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit:,} bytes."
