"""Long work: started, watched, cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Path
from starlette.responses import StreamingResponse

from lookalike.server import work
from lookalike.server.jobs import Watched
from lookalike.server.routes.wiring import PROBLEMS, TheJobs, TheShop
from lookalike.server.schemas.jobs import (
    EvaluateRequest,
    IndexRequest,
    Job,
    JobEvent,
    JobList,
    JobStarted,
    MapRequest,
    SyncRequest,
    TrainRequest,
    TuneRequest,
)

router = APIRouter(tags=["jobs"], responses=PROBLEMS)
Number = Annotated[str, Path(max_length=40, description="The number of a job.")]


@router.post("/evaluate", status_code=202)
def evaluate(shop: TheShop, jobs: TheJobs, request: EvaluateRequest) -> JobStarted:
    """Measure the stored vectors; the result is the report of `lookalike eval --format json`."""
    return _started(work.evaluate(shop, jobs, request))


@router.post("/tune", status_code=202)
def tune(shop: TheShop, jobs: TheJobs, request: TuneRequest) -> JobStarted:
    """Measure kinds of index on the stored vectors; the result is a TuneResult."""
    return _started(work.tune(shop, jobs, request))


@router.post("/train", status_code=202)
def train(shop: TheShop, jobs: TheJobs, request: TrainRequest) -> JobStarted:
    """Fine-tune a head on the stored vectors; every epoch is an event."""
    return _started(work.train(shop, jobs, request))


@router.post("/sync", status_code=202)
def sync(shop: TheShop, jobs: TheJobs, request: SyncRequest) -> JobStarted:
    """Bring the catalogue up to date with its folder; the result is that of `lookalike sync --format json`."""
    return _started(work.sync(shop, jobs, request))


@router.post("/map", status_code=202)
def lay_out(shop: TheShop, jobs: TheJobs, request: MapRequest) -> JobStarted:
    """Lay out a 2-D map; the result is its MapInfo."""
    return _started(work.lay_out(shop, jobs, request))


@router.post("/labs/index", status_code=202, tags=["labs"])
def index(shop: TheShop, jobs: TheJobs, request: IndexRequest) -> JobStarted:
    """Build one index and measure it at one effort; the result is a TuneResult with one row."""
    return _started(work.index(shop, jobs, request))


@router.get("/jobs")
def listed(jobs: TheJobs) -> JobList:
    """List the jobs of this server, newest first."""
    return JobList(jobs=[job.show() for job in jobs.all()])


@router.get("/jobs/{number}")
def job(jobs: TheJobs, number: Number) -> Job:
    """Return a job as it is now."""
    return jobs.find(number).show()


@router.delete("/jobs/{number}")
def cancel(jobs: TheJobs, number: Number) -> Job:
    """Ask a job to end; what it has committed by then is kept."""
    return jobs.cancel(number).show()


@router.get(
    "/jobs/{number}/events",
    response_class=StreamingResponse,
    responses={200: {"model": JobEvent, "description": "Server-sent events; each `data` is a JobEvent.",
                     "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/JobEvent"}}}}},
)  # fmt: skip
async def events(
    jobs: TheJobs,
    number: Number,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> StreamingResponse:
    """Stream the events of a job from the first, or after Last-Event-ID, until its last."""
    watched = jobs.find(number)
    after = int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else 0
    return StreamingResponse(_stream(watched, after), media_type="text/event-stream")


async def _stream(watched: Watched, after: int) -> AsyncIterator[str]:
    async for event in watched.events(after):
        if event is None:
            yield ": still here\n\n"
            continue
        yield f"id: {event.number}\nevent: {event.event}\ndata: {event.model_dump_json()}\n\n"


def _started(watched: Watched) -> JobStarted:
    url = f"/api/v1/jobs/{watched.id}"
    return JobStarted(job=watched.id, kind=watched.kind, url=url, events=f"{url}/events")
