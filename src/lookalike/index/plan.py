"""What fits before there is any data: bytes and latency of every kind for n vectors of d dimensions."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.errors import InputError
from lookalike.index.kinds import KINDS, TIGHT, Cells, Hnsw, Settings, settings_dict, settings_for
from lookalike.index.memory import FLOAT, ID, MemoryTable, predict
from lookalike.index.neighbours import check_metric
from lookalike.threads import blas

BANDWIDTH = 8.6e9  # bytes a second one thread reads in a scan, measured on a two-core cloud machine
MISS_S = 120e-9  # seconds to reach one vector at random in main memory
CALL_S = 40e-6  # seconds around every search: preparing the query, scoring and ordering its candidates
VISITS = 16  # vectors a graph looks at per place in its beam, measured at 100,000 × 384
K = 10
READ_S = 100e-6  # seconds to read one vector from a solid-state disk
# Overlap with exact search at default settings on `generated.clustered` vectors of 384 dimensions, 30,000 to 100,000 of
# them, the lower value, rounded down; other data differ, which is what `tune` measures.
TYPICAL: Mapping[tuple[str, bool], float] = {
    ("flat", False): 1.0,
    ("ivf", False): 0.94,
    ("ivf-sq8", False): 0.94,
    ("ivf-pq", False): 0.4,
    ("ivf-pq", True): 0.9,
    ("ivf-pqfs", True): 0.94,
    ("ivf-rabitq", True): 0.94,
    ("hnsw", False): 0.97,
    ("hnsw-sq8", False): 0.97,
}
"""(kind, refined) to overlap."""
_PROBE_SIZE = 128 << 20  # bytes scanned to measure bandwidth: more than any cache holds


@dataclass(frozen=True)
class PlanRow:
    """One kind at its default settings."""

    kind: str
    settings: Settings
    table: MemoryTable
    latency_ms: float
    overlap: float
    fits: bool
    misses: tuple[str, ...]
    """Demands it does not meet, as sentences with both numbers."""
    tags: tuple[tuple[str, str], ...]
    """Value name to `exact`, `measured` or `estimated`."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            "settings": settings_dict(self.settings),
            "bytes": self.table.resident,
            "bytes_per_vector": self.table.resident / self.table.n,
            "build_peak": self.table.build_peak,
            "vectors_file": FLOAT * self.table.n * self.table.d,
            "latency_ms": self.latency_ms,
            "overlap": self.overlap,
            "fits": self.fits,
            "misses": list(self.misses),
            "tags": dict(self.tags),
        }


def plan(
    n: int,
    d: int,
    *,
    ram: int | None = None,
    latency_ms: float | None = None,
    recall: float | None = None,
    metric: str = "cosine",
    bandwidth: float | None = None,
) -> tuple[PlanRow, ...]:
    """Return one row a kind and refinement, fitting ones first, then by bytes; impossible kinds are left out.

    Bytes are resident bytes after loading and are exact where the format allows. Latency is the bytes a query reads
    over `bandwidth` (bytes a second of one thread; `measure_bandwidth()` for this machine, 8.6e9 where None), plus a
    miss for every vector reached at random, or a disk read where index and original vectors together exceed `ram`: an
    estimate. Overlap is what clustered test vectors gave: an estimate, and the reason to run `tune`.

    Raises:
        InputError: n, d or a demand that is not above 0.

    >>> rows = plan(100_000_000, 512, ram=16 * 10**9, latency_ms=50)
    >>> [(row.kind, row.settings.refine) for row in rows if row.fits]
    [('ivf-pq', 'none'), ('ivf-pq', 'vectors')]
    """
    for name, value in (("n", n), ("d", d), ("ram", ram), ("latency_ms", latency_ms), ("recall", recall)):
        if value is not None and value <= 0:
            raise InputError(f"{name}={value} must be above 0.")
    speed, source = (BANDWIDTH, "estimated") if bandwidth is None else (bandwidth, "measured")
    rows = []
    for settings in (*map(settings_for, KINDS), *TIGHT):
        try:
            table = predict(n, d, kind=settings, metric=check_metric(metric))
        except InputError:
            continue
        rows.append(_row(table, speed, source, ram, latency_ms, recall))
    return tuple(sorted(rows, key=lambda row: (not row.fits, row.table.resident)))


def measure_bandwidth(*, seconds: float = 0.3) -> float:
    """Return the bytes a second one thread reads in a scan of float32 vectors: the best of the passes that fit."""
    rows = np.ones((_PROBE_SIZE // (FLOAT * 256), 256), dtype=np.float32)
    query = np.ones(256, dtype=np.float32)
    best, began = math.inf, time.perf_counter()
    with blas(1):
        while best == math.inf or time.perf_counter() - began < seconds:
            start = time.perf_counter()
            rows @ query
            best = min(best, time.perf_counter() - start)
    return rows.nbytes / best


def bytes_read(table: MemoryTable) -> tuple[int, int, int]:
    """Return the bytes a query streams, the vectors it reaches at random in the index, and those in their own file."""
    settings, n, d = table.settings, table.n, table.d
    refine = getattr(settings, "refine", "none")
    candidates = K * getattr(settings, "k_factor", 1)
    if isinstance(settings, Hnsw):
        item = table.components.get("codes", table.components.get("vectors", 0)) // n + FLOAT * 2 * settings.m
        visits = min(n, VISITS * settings.ef_search)
        return visits * item, visits, K
    if isinstance(settings, Cells):
        share = (settings.nprobe or 1) / (settings.nlist or 1)
        lists = table.components.get("codes", table.components.get("vectors", 0)) + ID * n
        return (
            round(share * lists) + table.components["centroids"],
            candidates * (refine == "sq8"),
            candidates if refine == "vectors" else K,
        )
    return FLOAT * n * d, 0, K


def _row(
    table: MemoryTable,
    speed: float,
    source: str,
    ram: int | None,
    latency_ms: float | None,
    recall: float | None,
) -> PlanRow:
    streamed, reached, filed = bytes_read(table)
    on_disk = ram is not None and table.resident + table.beside["vectors_mapped"] > ram and table.kind != "flat"
    latency = 1e3 * (streamed / speed + reached * MISS_S + filed * (READ_S if on_disk else MISS_S) + CALL_S)
    overlap = TYPICAL[table.kind, getattr(table.settings, "refine", "none") != "none"]
    misses = []
    if ram is not None and table.resident > ram:
        misses.append(f"{table.resident:,} bytes are more than {ram:,}.")
    if latency_ms is not None and latency > latency_ms:
        misses.append(f"about {latency:,.2f} ms is more than {latency_ms} ms.")
    if recall is not None and overlap < recall:
        misses.append(f"an overlap of about {overlap:.2f} is less than {recall}.")
    tags = {
        "bytes": "exact" if table.exact else "estimated",
        "bandwidth": source,
        "latency_ms": "estimated",
        "overlap": "exact" if table.kind == "flat" else "estimated",
    }
    return PlanRow(table.kind, table.settings, table, latency, overlap, not misses, tuple(misses), tuple(tags.items()))
