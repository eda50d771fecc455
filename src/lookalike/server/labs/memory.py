"""Lab 4: bytes of an index before it is built."""

from __future__ import annotations

from lookalike.index.kinds import settings_dict
from lookalike.index.memory import predict
from lookalike.index.neighbours import check_metric
from lookalike.server.commands import command
from lookalike.server.indexing import checked
from lookalike.server.schemas.labs import MemoryAnswer, MemoryRequest, MemoryTable
from lookalike.server.shop import Shop

_LARGEST_GRAPH = 50_000_000
"""Nodes whose levels are drawn one by one, as FAISS will; beyond it that takes seconds, and the largest is scaled."""


def tables(shop: Shop, request: MemoryRequest) -> MemoryAnswer:
    """Return a byte table for each multiple of the catalogue's (or the given) number of vectors.

    Raises:
        UnknownNameError: no such kind, or no such setting of it.
        InputError: settings that are impossible for that many vectors; both numbers are named.
    """
    store = shop.store()
    n, dim = request.n or max(1, len(store)), request.dim or store.dim
    return MemoryAnswer(tables=[_table(request, n, dim, factor, store.metric) for factor in request.factors])


def _table(request: MemoryRequest, n: int, dim: int, factor: int, metric: str) -> MemoryTable:
    settings = checked(request.kind, request.settings)
    count = n * factor
    drawn = min(count, _LARGEST_GRAPH) if request.kind.startswith("hnsw") else count
    made = predict(drawn, dim, kind=settings, metric=check_metric(request.metric or metric))
    scale = count / drawn
    told = made.as_dict()

    def grown(bytes_: dict[str, int]) -> dict[str, int]:
        return {name: round(size * scale) for name, size in bytes_.items()}

    given = {name: value for name, value in settings_dict(settings).items() if request.settings.get(name) is not None}
    return MemoryTable(
        kind=made.kind, n=count, dim=dim, factor=factor, settings=settings_dict(made.settings),
        components=grown(told["components"]), total=round(made.total * scale), bytes_per_vector=made.bytes_per_vector,
        exact=made.exact and scale == 1, file=round(made.file * scale), beside=grown(told["beside"]),
        resident=round(made.resident * scale), build=grown(told["build"]), build_peak=round(made.build_peak * scale),
        command=command("memory", count, dim, kind=request.kind, **given),
    )  # fmt: skip
