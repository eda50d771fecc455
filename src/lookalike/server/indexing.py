"""Measured indexes: the whole choice, or one setting whose built index is kept for other efforts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from lookalike.arrays import Vectors
from lookalike.errors import InputError
from lookalike.index.ann import AnnIndex, build
from lookalike.index.kinds import Settings, resolve, settings_dict, settings_for
from lookalike.index.memory import predict
from lookalike.index.neighbours import Neighbours
from lookalike.index.overlap import overlap
from lookalike.index.view import EXACT_ROWS
from lookalike.server.items import plain
from lookalike.server.jobs import Work
from lookalike.server.schemas.jobs import IndexRequest, TuneRequest
from lookalike.server.shop import Shop

_EFFORT = ("nprobe", "ef_search", "k_factor")
"""Settings of a search, not of what is built."""
_TYPES: Mapping[str, type] = {"rotate": bool, "refine": str}
_SAID: Mapping[type, str] = {bool: "true or false", str: "a word", int: "a whole number"}
_HELD_OUT = 200
_KEPT = 4


def tuned(shop: Shop, request: TuneRequest, work: Work) -> dict[str, Any]:
    """Measure kinds of index on the stored vectors, as `lookalike tune` does."""
    from lookalike.index.tune import tune

    store = shop.store(request.encoder)
    vectors = store.vectors(store.ids())
    report = tune(
        vectors, recall=request.recall, latency_ms=request.latency_ms, ram=request.ram, metric=store.metric,
        seed=request.seed, kinds=request.kinds, sample_rows=request.sample_rows,
        progress=lambda text, share: work.progress(round(share, 4), 1.0, text),
    )  # fmt: skip
    return dict(plain(report.as_dict()))


def checked(kind: str, values: Mapping[str, int | bool | str | None]) -> Settings:
    """Return the settings asked for; those that are None keep their defaults.

    Raises:
        UnknownNameError: no such kind, or no such setting of it.
        InputError: a value of another type.

    >>> checked("ivf", {"nprobe": 3, "nlist": None}).nprobe
    3
    """
    given = {name: value for name, value in values.items() if value is not None}
    for name, value in given.items():
        if type(value) is not _TYPES.get(name, int):
            raise InputError(f"{name}={value!r} must be {_SAID[_TYPES.get(name, int)]}.")
    return settings_for(kind, given)


def measured(shop: Shop, request: IndexRequest, settings: Settings, work: Work) -> dict[str, Any]:
    """Build one index (or take the one built before) and measure it at the effort asked for."""
    store = shop.store(request.encoder)
    all_ids = store.ids()
    if len(all_ids) < 20:
        raise InputError(f"{len(all_ids)} vectors are too few to measure an index on; 20 are needed.")
    vectors = store.vectors(all_ids)
    queries, items = _split(vectors, request.sample_rows, request.seed)
    asked = _buildable(settings)
    key = (store.card.digest, store.revision, request.sample_rows, request.seed, asked)
    work.progress(0, 3, f"building {settings.kind} over {len(items):,} vectors")
    index, build_s = _BUILT.get(key, lambda: _build(items, asked, store.metric, request.seed))
    work.progress(1, 3, "searching exactly")
    flat, _ = _BUILT.get((*key[:4], "flat"), lambda: _build(items, settings_for("flat"), store.metric, request.seed))
    k = min(request.k, len(items))
    exact = flat.search(queries, k)
    work.progress(2, 3, f"measuring {len(queries)} queries on one thread")
    filled, _ = resolve(settings, len(items), items.shape[1])
    found, times = _timed(index, queries, k, filled, work)
    agreed = overlap(found, exact, k, seed=request.seed)
    rotated = index.structure is not None and index.structure.rotated
    table = predict(len(vectors), items.shape[1], kind=settings, metric=store.metric, rotated=rotated)
    sampled = len(vectors) > len(items) + len(queries)
    said = "estimated" if sampled else "measured"
    row = {
        "kind": settings.kind, "settings": settings_dict(filled), "overlap": agreed.value,
        "overlap_interval": [agreed.low, agreed.high], "p50_ms": float(np.quantile(times, 0.5)),
        "p95_ms": float(np.quantile(times, 0.95)), "bytes": table.resident, "build_s": build_s, "fits": True,
        "tags": {"overlap": said, "p50_ms": said, "p95_ms": said, "build_s": "measured",
                 "bytes": "exact" if table.exact else "estimated"},
    }  # fmt: skip
    told = {
        "measured": [row], "chosen": None, "reason": " ".join([*index.notices, *_scanned(len(items))]),
        "n": len(vectors), "dim": items.shape[1], "measured_n": len(items), "metric": store.metric,
    }  # fmt: skip
    return dict(plain(told))


def _scanned(n: int) -> list[str]:
    """Return a sentence where every kind answers by a scan, so that a moved slider is seen to change nothing."""
    if n > EXACT_ROWS:
        return []
    return [f"Up to {EXACT_ROWS:,} vectors every kind is answered by a scan, which is exact and quicker."]


class _Kept:
    """The last few built indexes."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[Any, tuple[AnnIndex, float]] = {}

    def get(self, key: Any, make: Any) -> tuple[AnnIndex, float]:
        """Return the index of this key, built where it is not kept."""
        with self._guard:
            if key in self._kept:
                return self._kept[key]
        made: tuple[AnnIndex, float] = make()
        with self._guard:
            self._kept[key] = made
            while len(self._kept) > _KEPT:
                self._kept.pop(next(iter(self._kept)))
        return made


_BUILT = _Kept()


def _build(items: Vectors, settings: Settings, metric: Any, seed: int) -> tuple[AnnIndex, float]:
    started = time.process_time()
    made = build(items, kind=settings, metric=metric, seed=seed, sample=0)
    return made, time.process_time() - started


def _buildable(settings: Settings) -> Settings:
    """Return the settings without those of a search, so that a moved slider builds nothing."""
    kept = {name: value for name, value in settings_dict(settings).items() if name not in _EFFORT}
    return settings_for(settings.kind, kept)


def _timed(
    index: AnnIndex, queries: Vectors, k: int, settings: Settings, work: Work
) -> tuple[Neighbours, np.ndarray[Any, np.dtype[np.float64]]]:
    effort = None if settings.kind == "flat" else settings
    found = index.search(queries, k, settings=effort)
    times = np.empty(len(queries))
    for place in range(len(queries)):
        work.check()
        started = time.perf_counter()
        index.search(queries[place : place + 1], k, settings=effort, threads=1)
        times[place] = 1e3 * (time.perf_counter() - started)
    return found, times


def _split(vectors: Vectors, sample_rows: int, seed: int) -> tuple[Vectors, Vectors]:
    """Hold out queries the index never sees, as `tune` does."""
    held = min(_HELD_OUT, max(1, len(vectors) // 10))
    order = np.random.default_rng(seed).permutation(len(vectors))
    return vectors[np.sort(order[:held])], vectors[np.sort(order[held : held + sample_rows])]
