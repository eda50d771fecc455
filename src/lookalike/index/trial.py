"""One index at a time, measured along its own grid with queries it has never seen."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Scores, Vectors
from lookalike.errors import InputError
from lookalike.index.ann import AnnIndex, build
from lookalike.index.kinds import Cells, Hnsw, Settings, changed, default_nlist, resolve, settings_dict
from lookalike.index.memory import predict
from lookalike.index.neighbours import Metric, Neighbours
from lookalike.index.overlap import overlap

HELD_OUT = 200
K = 10
REPEATS = 2  # every query is timed this often; the faster one counts, since a pause is not the index's
LEAST_TIMED, TIMING_S = 20, 2.0  # a slow setting is timed on fewer queries
SCREENED = 100  # queries used to look along a grid before the setting that is kept is measured with all

PROBES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
BEAMS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384)
FACTORS = (4, 10, 40)


@dataclass(frozen=True)
class Demand:
    """What is asked of an index; None: no demand."""

    recall: float = 0.95
    """Least overlap with exact search."""
    latency_ms: float | None = None
    """Most milliseconds for the median query on one thread."""
    ram: int | None = None
    """Most resident bytes, mapped original vectors not counted."""

    def __post_init__(self) -> None:
        if not 0 < self.recall <= 1:
            raise InputError(f"recall={self.recall} is not in (0, 1].")
        for name, value in (("latency_ms", self.latency_ms), ("ram", self.ram)):
            if value is not None and value <= 0:
                raise InputError(f"{name}={value} must be above 0.")


@dataclass(frozen=True)
class Row:
    """One setting, measured."""

    kind: str
    settings: Settings
    overlap: float
    overlap_interval: tuple[float, float]
    p50_ms: float
    p95_ms: float
    bytes: int
    """Resident bytes at the full size: structure, id map, tables; not the mapped file of original vectors."""
    build_s: float
    """Processor seconds to build what was measured."""
    fits: bool
    tags: tuple[tuple[str, str], ...]
    """Value name to `exact`, `measured` or `estimated`."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            "settings": settings_dict(self.settings),
            "overlap": self.overlap,
            "overlap_interval": list(self.overlap_interval),
            "p50_ms": self.p50_ms,
            "p95_ms": self.p95_ms,
            "bytes": self.bytes,
            "build_s": self.build_s,
            "fits": self.fits,
            "tags": dict(self.tags),
        }


class Trial:
    """The held-out queries, their exact answers, and the indexes tried on them."""

    def __init__(self, queries: Vectors, items: Vectors, full: int, metric: Metric, demand: Demand, seed: int) -> None:
        self.queries, self.items, self.full, self.metric = queries, items, full, metric
        self.demand, self.seed = demand, seed
        self.sampled = full > len(items) + len(queries)
        self.flat = build(items, kind="flat", metric=metric)
        self.cells: AnnIndex | None = None
        self.cells_s = 0.0
        self.k = min(K, len(items))
        self.exact = self.flat.search(queries, self.k)

    def measure(self, asked: Settings) -> list[Row]:
        """Build one index and measure it along its grid; nothing where these vectors cannot make one."""
        try:
            settings, _ = resolve(asked, len(self.items), self.items.shape[1])
        except InputError:
            return []
        start = time.process_time()
        index = self._built(asked)
        spent = time.process_time() - start
        if isinstance(settings, Cells):
            if self.cells is None:
                self.cells, self.cells_s = index, spent
            else:  # the cells were lent; what they cost belongs to every index that has them
                spent += self.cells_s
        return [self._row(index, knobs, spent) for knobs in self._promising(index, settings)]

    def _built(self, asked: Settings) -> AnnIndex:
        if asked.kind == "flat":
            return self.flat
        return build(self.items, kind=asked, metric=self.metric, seed=self.seed, sample=0, like=self.cells)

    def _promising(self, index: AnnIndex, settings: Settings) -> list[Settings]:
        """Return, for every ladder of efforts, the first that reaches the demand and its neighbours on both sides."""
        picked: list[Settings] = []
        exact, queries = _first(self.exact, SCREENED), self.queries[:SCREENED]
        for ladder in _ladders(settings):
            place = 0
            for place, knobs in enumerate(ladder):
                if place == len(ladder) - 1:
                    break
                found = index.search(queries, self.k, settings=knobs)
                if overlap(found, exact, self.k).value >= self.demand.recall:
                    break
            picked += ladder[max(0, place - 1) : place + 3]
        return picked

    def _row(self, index: AnnIndex, knobs: Settings, build_s: float) -> Row:
        found = index.search(self.queries, self.k, settings=knobs)
        agreed = overlap(found, self.exact, self.k, seed=self.seed)
        times = self._timed(index, knobs) * self._growth(knobs)
        full_settings = _at_full_size(knobs, index, self.full)
        rotated = index.structure is not None and index.structure.rotated
        table = predict(self.full, index.dim, kind=full_settings, metric=self.metric, rotated=rotated)
        p50, p95 = (float(np.quantile(times, q)) for q in (0.5, 0.95))
        fits = (
            agreed.value >= self.demand.recall
            and (self.demand.latency_ms is None or p50 <= self.demand.latency_ms)
            and (self.demand.ram is None or table.resident <= self.demand.ram)
        )
        measured = "estimated" if self.sampled else "measured"
        tags = {"overlap": measured, "p50_ms": measured, "p95_ms": measured, "build_s": "measured"}
        tags["bytes"] = "exact" if table.exact else "estimated"
        return Row(
            knobs.kind, full_settings, agreed.value, (agreed.low, agreed.high), p50, p95, table.resident, build_s,
            fits, tuple(tags.items()),
        )  # fmt: skip

    def _timed(self, index: AnnIndex, knobs: Settings) -> Scores:
        settings = knobs if knobs.kind != "flat" else None
        best: list[float] = []
        began = time.perf_counter()
        for i in range(len(self.queries)):
            query = self.queries[i : i + 1]
            laps = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                index.search(query, self.k, settings=settings, threads=1)
                laps.append(time.perf_counter() - start)
            best.append(min(laps))
            if i >= LEAST_TIMED and time.perf_counter() - began > TIMING_S:
                break
        return np.array(best) * 1e3

    def _growth(self, settings: Settings) -> float:
        n, full = len(self.items), self.full
        if not self.sampled:
            return 1.0
        if settings.kind == "flat":
            return full / n
        return float(np.log(full) / np.log(n)) if isinstance(settings, Hnsw) else float(np.sqrt(full / n))


def _ladders(settings: Settings) -> list[list[Settings]]:
    if settings.kind == "flat":
        return [[settings]]
    if isinstance(settings, Hnsw):
        return [[changed(settings, {"ef_search": beam}) for beam in BEAMS]]
    nlist = int(getattr(settings, "nlist", 1) or 1)
    cells = [changed(settings, {"nprobe": probe}) for probe in sorted({min(nlist, probe) for probe in PROBES})]
    if getattr(settings, "refine", "none") == "none":
        return [cells]
    return [[changed(cell, {"k_factor": factor}) for cell in cells] for factor in FACTORS]


def _at_full_size(knobs: Settings, index: AnnIndex, full: int) -> Settings:
    """Carry cells over to the full size: as many as that size would get, probed in the same share."""
    if not isinstance(knobs, Cells) or full <= 1.1 * len(index):
        return knobs
    grown = default_nlist(full)
    nprobe = max(1, round((knobs.nprobe or 1) * grown / (knobs.nlist or 1)))
    return changed(knobs, {"nlist": grown, "nprobe": min(grown, nprobe)})


def held_out_split(vectors: Vectors, sample_rows: int, seed: int) -> tuple[Vectors, Vectors]:
    """Return (q, d) queries and (m, d) items, disjoint, drawn with a seed."""
    held = min(HELD_OUT, max(1, len(vectors) // 10))
    order = np.random.default_rng(seed).permutation(len(vectors))
    keep = np.sort(order[held : held + sample_rows])
    return vectors[np.sort(order[:held])], vectors[keep]


def _first(answers: Neighbours, q: int) -> Neighbours:
    stop = min(q, len(answers))
    end = answers.offsets[stop]
    return Neighbours(answers.ids[:end], answers.scores[:end], answers.offsets[: stop + 1], answers.metric)
