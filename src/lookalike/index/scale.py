"""Beyond one machine: how many shards a memory makes of an index, and how long embedding takes at a rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lookalike.errors import InputError
from lookalike.index.memory import predict
from lookalike.index.neighbours import Metric
from lookalike.index.plan import PlanRow

SPARE = 0.25
"""Share of a machine's memory that is left to the process itself, the page cache and rebuilding."""


@dataclass(frozen=True)
class Shards:
    """One kind of index cut into equal parts that each fit a machine."""

    kind: str
    count: int
    items: int
    """Vectors of a shard."""
    bytes: int
    """Resident bytes of a shard, by the same arithmetic as `memory`."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"kind": self.kind, "shards": self.count, "items": self.items, "bytes": self.bytes}


@dataclass(frozen=True)
class Embedding:
    """How long it takes to make the vectors."""

    rate: float
    """Pictures a second of one worker process."""
    workers: int
    hours: float
    measured: bool
    """Whether the rate was measured here, with the encoder and size of picture it was measured on; the hours never are:
    they take the rate to hold for every worker and every picture."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "rate": self.rate,
            "workers": self.workers,
            "hours": self.hours,
            "tags": {"rate": "measured" if self.measured else "given", "hours": "extrapolated"},
        }


def shards(row: PlanRow, d: int, *, ram: int, metric: Metric = "cosine") -> Shards:
    """Return the fewest equal shards of a planned index that each leave a quarter of `ram` free.

    A shard is an index of its own, built anew for its share of the vectors, because centroids and codebooks do not
    shrink with it; its bytes are predicted, not divided.

    Raises:
        InputError: a memory that does not hold even one vector.

    >>> from lookalike.index.plan import plan
    >>> flat = next(row for row in plan(10**9, 512) if row.kind == "flat")
    >>> shards(flat, 512, ram=64 * 10**9).count  # 2,048 GB of vectors and 8 of ids, over 48 GB
    43
    """
    room = ram * (1 - SPARE)
    n = row.table.n
    count = max(1, math.ceil(row.table.resident / room))
    while count <= n:
        items = math.ceil(n / count)
        need = row.table.resident if count == 1 else predict(items, d, kind=row.settings, metric=metric).resident
        if need <= room:
            return Shards(row.kind, count, items, need)
        count = max(count + 1, math.ceil(count * need / room))
    raise InputError(f"{ram:,} bytes do not hold even one vector of {d} dimensions.")


def embedding(n: int, *, rate: float, workers: int = 1, measured: bool = False) -> Embedding:
    """Return how long n pictures take at `rate` pictures a second and worker.

    Raises:
        InputError: a rate or a number of workers that is not above 0.

    >>> round(embedding(10**9, rate=100, workers=50).hours, 1)
    55.6
    """
    if rate <= 0 or workers < 1:
        raise InputError(f"rate={rate} must be above 0, and workers={workers} at least 1.")
    return Embedding(rate, workers, n / (rate * workers) / 3600, measured)
