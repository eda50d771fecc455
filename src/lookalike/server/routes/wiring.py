"""What every route needs: the shop, the jobs and the gate, and how a refusal looks."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request

from lookalike.server.gate import Gate
from lookalike.server.jobs import Jobs
from lookalike.server.schemas.base import Problem
from lookalike.server.shop import Shop


def _shop(request: Request) -> Any:
    return request.app.state.shop


def _jobs(request: Request) -> Any:
    return request.app.state.jobs


def _gate(request: Request) -> Any:
    return request.app.state.gate


TheShop: TypeAlias = Annotated[Shop, Depends(_shop)]
TheJobs: TypeAlias = Annotated[Jobs, Depends(_jobs)]
TheGate: TypeAlias = Annotated[Gate, Depends(_gate)]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "Refused: what is wrong, and the next step."},
    "5XX": {"model": Problem, "description": "Too busy, too slow, or a fault of the server."},
}
