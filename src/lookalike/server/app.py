"""The application: routes, errors and the layers around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.types import ASGIApp

from lookalike import __version__
from lookalike.server import problems, static
from lookalike.server.bodies import Bodies
from lookalike.server.gate import Gate
from lookalike.server.items import API
from lookalike.server.jobs import Jobs
from lookalike.server.routes import catalogue, jobs, labs, runs, search, space
from lookalike.server.schemas.indexes import TuneResult
from lookalike.server.schemas.jobs import JobEvent
from lookalike.server.schemas.search import SearchRequest
from lookalike.server.security import Guard
from lookalike.server.settings import Settings
from lookalike.server.shop import Shop

ROUTERS = (catalogue.router, search.router, space.router, jobs.router, runs.router, labs.router)
_SHOWN = (SearchRequest, JobEvent, TuneResult)
"""Models that no route names in a way FastAPI sees, and that a client needs."""
_DESCRIPTION = (
    "Image retrieval you can trust, over one catalogue. Errors are RFC 9457 problem JSON with a `hint`; numbers are "
    "finite; binary answers are little-endian. Where the server was started with a token, send it as "
    "`Authorization: Bearer TOKEN`."
)


@dataclass(frozen=True)
class Application:
    """The routes, and the routes inside their guards, which is what may listen."""

    routes: FastAPI
    guarded: ASGIApp


def application(settings: Settings) -> Application:
    """Open the catalogue and return the application over it.

    Raises:
        NotFoundError: no catalogue there.
        CatalogueError: it cannot be opened.
    """
    app = _routes()
    app.state.shop = Shop(settings)
    app.state.jobs = Jobs()
    app.state.gate = Gate(settings.parallel, settings.waiting, settings.answer_seconds)
    static.install(app)
    return Application(app, Guard(Bodies(app, settings), settings))


def document() -> dict[str, Any]:
    """Return the OpenAPI document, the same for every catalogue."""
    return _document(_routes())


def _routes() -> FastAPI:
    app = FastAPI(
        title="lookalike", version=__version__, openapi_url=None, docs_url=None, redoc_url=None, lifespan=_lifespan,
        generate_unique_id_function=_operation, separate_input_output_schemas=False,
    )  # fmt: skip
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router, prefix=API)

    @app.get(f"{API}/openapi.json", include_in_schema=False)
    def openapi() -> JSONResponse:
        return JSONResponse(_document(app))

    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.jobs.close(seconds=30)
    app.state.gate.close()
    app.state.shop.close()


def _operation(route: APIRoute) -> str:
    """Name an operation by its router and function, for the names of generated clients."""
    return f"{route.tags[-1] if route.tags else 'api'}_{route.name}"


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes, description=_DESCRIPTION,
        separate_input_output_schemas=False,
    )  # fmt: skip
    schemas = made["components"]["schemas"]
    for model in _SHOWN:
        shown = model.model_json_schema(ref_template="#/components/schemas/{model}")
        for name, inner in shown.pop("$defs", {}).items():
            schemas.setdefault(name, inner)
        schemas.setdefault(model.__name__, shown)
    for path in made["paths"].values():
        for operation in path.values():
            _as_problems(operation)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    made["components"]["schemas"] = dict(sorted(schemas.items()))
    return made


def _as_problems(operation: dict[str, Any]) -> None:
    """Say that errors are problem JSON, and nothing of FastAPI's own form of a validation error."""
    answers = operation["responses"]
    answers.pop("422", None)
    for status, answer in answers.items():
        if status in ("4XX", "5XX"):
            answer["content"] = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
