"""Empty FAISS indexes, one maker a kind; constructors rather than factory strings, which hide choices.

(`PQ64` in a factory string turns polysemous training on, which takes minutes and serves nobody here.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lookalike.index.kinds import Hnsw, IvfPq, IvfPqFs, Settings
from lookalike.index.library import faiss
from lookalike.index.neighbours import Metric, higher_is_better


def empty(settings: Settings, d: int, metric: Metric, seed: int, *, rotate: bool) -> Any:
    """Return an untrained index for resolved settings; seeds go into every step that draws."""
    measure = faiss().METRIC_INNER_PRODUCT if higher_is_better(metric) else faiss().METRIC_L2
    index = _MAKERS[settings.kind](settings, d, measure)
    if isinstance(settings, Hnsw):
        index.hnsw.efConstruction = settings.ef_construction
    else:
        index.cp.seed, index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = seed, 1, 1 << 20
        index.cp.niter = 10
    if isinstance(settings, IvfPq | IvfPqFs):
        index.pq.cp.seed, index.pq.cp.min_points_per_centroid = seed, 1
    if rotate:
        rotation = faiss().RandomRotationMatrix(d, d)
        rotation.init(seed)
        index = _owned(faiss().IndexPreTransform(rotation, index), rotation, index)
    if getattr(settings, "refine", "none") == "sq8":
        codes = faiss().IndexScalarQuantizer(d, faiss().ScalarQuantizer.QT_8bit, measure)
        index = _owned(faiss().IndexRefine(index, codes), index, codes)
    return index


def _coarse(d: int, measure: int) -> Any:
    return faiss().IndexFlat(d, measure)


def _owned(outer: Any, *inner: Any) -> Any:
    outer.referenced_objects = [*getattr(outer, "referenced_objects", []), *inner]  # Python must not free the parts
    return outer


def _ivf(settings: Any, d: int, measure: int) -> Any:
    coarse = _coarse(d, measure)
    return _owned(faiss().IndexIVFFlat(coarse, d, settings.nlist, measure), coarse)


def _ivf_sq8(settings: Any, d: int, measure: int) -> Any:
    coarse = _coarse(d, measure)
    code = faiss().ScalarQuantizer.QT_8bit
    return _owned(faiss().IndexIVFScalarQuantizer(coarse, d, settings.nlist, code, measure), coarse)


def _ivf_pq(settings: Any, d: int, measure: int) -> Any:
    coarse = _coarse(d, measure)
    # the metric is explicit because IndexIVFPQ without one is L2, whatever its quantiser measures
    return _owned(faiss().IndexIVFPQ(coarse, d, settings.nlist, settings.m, settings.bits, measure), coarse)


def _ivf_pqfs(settings: Any, d: int, measure: int) -> Any:
    coarse = _coarse(d, measure)
    return _owned(faiss().IndexIVFPQFastScan(coarse, d, settings.nlist, settings.m, settings.bits, measure), coarse)


def _ivf_rabitq(settings: Any, d: int, measure: int) -> Any:
    coarse = _coarse(d, measure)
    return _owned(faiss().IndexIVFRaBitQFastScan(coarse, d, settings.nlist, measure), coarse)


def _hnsw(settings: Any, d: int, measure: int) -> Any:
    return faiss().IndexHNSWFlat(d, settings.m, measure)


def _hnsw_sq8(settings: Any, d: int, measure: int) -> Any:
    return faiss().IndexHNSWSQ(d, faiss().ScalarQuantizer.QT_8bit, settings.m, measure)


_MAKERS: Mapping[str, Callable[[Any, int, int], Any]] = {
    "ivf": _ivf,
    "ivf-sq8": _ivf_sq8,
    "ivf-pq": _ivf_pq,
    "ivf-pqfs": _ivf_pqfs,
    "ivf-rabitq": _ivf_rabitq,
    "hnsw": _hnsw,
    "hnsw-sq8": _hnsw_sq8,
}
