"""Lab 4: bytes of an index before it is built."""

from __future__ import annotations

from lookalike.index.kinds import settings_dict
from lookalike.index.memory import predict
from lookalike.index.neighbours import check_metric
from lookalike.server.commands import command
from lookalike.server.indexing import checked
from lookalike.server.schemas.indexes import MemoryAnswer, MemoryRequest, MemoryTable
from lookalike.server.shop import Shop


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
    made = predict(n * factor, dim, kind=settings, metric=check_metric(request.metric or metric))
    given = {name: value for name, value in settings_dict(settings).items() if request.settings.get(name) is not None}
    told = {name: value for name, value in made.as_dict().items() if name in MemoryTable.model_fields}
    return MemoryTable(
        **told, n=n * factor, dim=dim, factor=factor, settings=settings_dict(made.settings),
        command=command("memory", n * factor, dim, kind=request.kind, **given),
    )  # fmt: skip
