"""Errors as RFC 9457 problem JSON: a status, one sentence, and the next step."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from lookalike.errors import (
    CatalogueError,
    EncoderMismatchError,
    LookalikeError,
    MissingExtraError,
    NotFoundError,
    ProtocolError,
    UnknownNameError,
)
from lookalike.server.schemas.base import Problem

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("lookalike.server")

STATUSES: Mapping[type[LookalikeError], int] = {
    NotFoundError: 404,
    CatalogueError: 409,
    EncoderMismatchError: 422,
    ProtocolError: 409,
    UnknownNameError: 422,
    MissingExtraError: 424,  # Failed Dependency: nothing is wrong with the request or the server
    LookalikeError: 422,
}
"""The most specific class decides."""


class RefusedError(LookalikeError):
    """A request that is refused by HTTP's own rules, with its status."""

    def __init__(self, status: int, message: str, *, hint: str = "", job: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.job = job


def problem_of(error: LookalikeError) -> Problem:
    """Return the problem an error is told as.

    >>> problem_of(NotFoundError("There is no run 'a'.", hint="See /runs.")).status
    404
    """
    if isinstance(error, RefusedError):
        title = "RefusedError" if error.status != 404 else "NotFoundError"
        return Problem(title=title, status=error.status, detail=error.message, hint=error.hint, job=error.job)
    status = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    return Problem(title=type(error).__name__, status=status, detail=_utf8(error.message), hint=_utf8(error.hint))


def response(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a problem as a response."""
    return JSONResponse(
        problem.model_dump(mode="json"), status_code=problem.status, media_type=MEDIA_TYPE, headers=dict(headers or {})
    )


def install(app: FastAPI) -> None:
    """Let every error of the app leave as a problem."""
    app.add_exception_handler(LookalikeError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _fault)


def _known(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, LookalikeError):
        raise error
    problem = problem_of(error)
    return response(problem, {"Retry-After": "2"} if problem.status in (429, 503) else None)


def _invalid(_request: Request, error: Exception) -> JSONResponse:
    details = error.errors() if isinstance(error, RequestValidationError) else []
    return response(invalid(details))


def invalid(details: Any) -> Problem:
    """Return the problem of a request whose fields are wrong, from pydantic's list of errors."""
    errors = [
        {"field": ".".join(str(part) for part in each["loc"]), "message": str(each["msg"]), "kind": str(each["type"])}
        for each in details
    ]
    said = "; ".join(f"{each['field']}: {each['message']}" for each in errors[:3])
    return Problem(
        title="InvalidRequest", status=422, detail=_utf8(f"The request is not understood: {said}."),
        hint="The fields and their limits are listed in /api/v1/openapi.json.",
        errors=[_plain(each) for each in errors],
    )  # fmt: skip


def _http(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    said = {404: "There is nothing at this address.", 405: "This address does not take that method."}
    problem = Problem(
        title="HTTPError", status=error.status_code, detail=said.get(error.status_code, str(error.detail)),
        hint="The addresses are listed in /api/v1/openapi.json.",
    )  # fmt: skip
    return response(problem, error.headers)


def _fault(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return response(
        Problem(
            title="InternalError",
            status=500,
            detail="This is a fault of lookalike's own.",
            hint="The server's terminal shows where; please report it.",
        )
    )


def _plain(error: dict[str, Any]) -> dict[str, Any]:
    return {key: _utf8(str(value)) for key, value in error.items()}


def _utf8(text: str) -> str:
    """Make text that may hold a path of odd bytes sendable."""
    return text.encode("utf-8", "backslashreplace").decode()
