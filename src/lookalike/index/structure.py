"""The FAISS structure under an approximate index: built from settings, searched with parameters passed per call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Vectors, unit
from lookalike.index.kinds import Hnsw, Settings, training_points
from lookalike.index.library import faiss, single_thread
from lookalike.index.makers import empty
from lookalike.index.memory import ADD_BATCH
from lookalike.index.neighbours import Metric

PCA_LIKE = 2.0  # arithmetic over geometric mean of the variances of 8 neighbouring dimensions; isotropic data has 1.0
_GROUPS = 8


@dataclass(frozen=True)
class Effort:
    """How hard one search looks: cells or beam width, and candidates re-scored per result."""

    reach: int
    k_factor: int = 1


class Structure:
    """A trained and filled FAISS index; nothing here changes after construction."""

    def __init__(self, index: Any, settings: Settings, metric: Metric, rotated: bool) -> None:
        self.index = index
        self.settings = settings
        self.metric = metric
        self.rotated = rotated
        self.d = int(index.d)
        self.n = int(index.ntotal)
        refine = getattr(settings, "refine", "none")
        self.refines_inside = refine == "sq8"
        self.refines_outside = refine == "vectors"
        self._cached: dict[Effort, Any] = {}  # FAISS only reads parameters, so one object serves every thread

    @property
    def most_reach(self) -> int:
        """Cells there are, or nodes of the graph: beyond it nothing more can be found."""
        return self.n if isinstance(self.settings, Hnsw) else int(getattr(self.settings, "nlist", 1) or 1)

    def search(self, queries: Vectors, k: int, effort: Effort, selector: Any = None) -> Ids:
        """Return (q, k) row numbers, -1 where fewer were found; queries are unit rows where the metric is cosine."""
        n = len(queries)
        pointer = faiss().swig_ptr
        distances = np.empty((n, k), dtype=np.float32)
        rows = np.empty((n, k), dtype=np.int64)
        if selector is not None:
            parameters = self.parameters(effort, selector)
        elif (parameters := self._cached.get(effort)) is None:
            parameters = self._cached[effort] = self.parameters(effort)
        self.index.search_c(n, pointer(queries), k, pointer(distances), pointer(rows), parameters)
        return rows

    def parameters(self, effort: Effort, selector: Any = None) -> Any:
        """Return FAISS's search parameters for an effort: passed with every call, so that none changes a later one."""
        reach = min(effort.reach, self.most_reach)
        if isinstance(self.settings, Hnsw):
            return faiss().SearchParametersHNSW(efSearch=reach, sel=selector)
        base = faiss().SearchParametersIVF(nprobe=reach, sel=selector)
        if self.refines_inside:
            return faiss().IndexRefineSearchParameters(k_factor=float(effort.k_factor), base_index_params=base)
        return base


def effort_of(settings: Settings) -> Effort:
    """Return the effort resolved settings ask for."""
    if isinstance(settings, Hnsw):
        return Effort(settings.ef_search)
    factor = settings.k_factor if getattr(settings, "refine", "none") != "none" else 1  # type: ignore[union-attr]
    return Effort(int(getattr(settings, "nprobe", None) or 1), int(factor))


def build_structure(
    vectors: Vectors,
    settings: Settings,
    metric: Metric,
    seed: int,
    *,
    like: Structure | None = None,
    tick: Callable[[int], None] | None = None,
) -> Structure:
    """Train and fill a structure for resolved settings; row i of `vectors` becomes row number i.

    One thread throughout: k-means and graph building change with the number of threads, and PQ training with two
    threads on a busy machine costs twenty times the processor time of one. `like` lends its cells where it has as many
    in the same rotation, which saves most of the time.
    """
    sample = _sample(vectors, settings, metric, seed)
    rotate = getattr(settings, "rotate", False)
    if rotate is None:
        rotate = settings.kind != "ivf" and is_pca_like(sample)
    with single_thread():
        index = empty(settings, vectors.shape[1], metric, seed, rotate=bool(rotate))
        if like is not None:
            _take_cells(index, like, settings, bool(rotate))
        if not index.is_trained:
            index.train(sample)
        for start in range(0, len(vectors), ADD_BATCH):
            index.add(prepared(vectors[start : start + ADD_BATCH], metric))
            if tick is not None:
                tick(min(start + ADD_BATCH, len(vectors)))
    return Structure(index, settings, metric, bool(rotate))


def prepared(vectors: Vectors, metric: Metric) -> Vectors:
    """Return rows as FAISS is given them: of length 1 for cosine, as they are otherwise."""
    return unit(vectors) if metric == "cosine" else np.ascontiguousarray(vectors, dtype=np.float32)


def is_pca_like(sample: Vectors) -> bool:
    """Return whether the variance falls along the dimensions so that compressing parts alike would waste bits.

    The distortion of a product quantiser follows the product of the variances of its parts (Ge et al., CVPR 2013,
    equation 9): the arithmetic over the geometric mean is what a rotation can win.
    """
    d = sample.shape[1]
    if d < 2 * _GROUPS or len(sample) < 2:
        return False
    variances = np.array([part.sum() for part in np.array_split(sample.var(axis=0, dtype=np.float64), d // _GROUPS)])
    if variances.min() <= 0:
        return bool(variances.max() > 0)
    return bool(variances.mean() / np.exp(np.log(variances).mean()) > PCA_LIKE)


def selector(rows_wanted: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """Return a FAISS selector of the rows that are True, and the array that must outlive it."""
    bits = np.packbits(rows_wanted, bitorder="little")
    return faiss().IDSelectorBitmap(bits), bits


def list_sizes(structure: Structure) -> Ids | None:
    """Return the (nlist,) number of rows in each cell, or None where there are no cells."""
    if isinstance(structure.settings, Hnsw):
        return None
    lists = faiss().extract_index_ivf(structure.index).invlists
    return np.array([lists.list_size(i) for i in range(lists.nlist)], dtype=np.int64)


def _take_cells(index: Any, like: Structure, settings: Settings, rotated: bool) -> None:
    if isinstance(settings, Hnsw) or isinstance(like.settings, Hnsw) or like.rotated != rotated:
        return
    mine, theirs = faiss().extract_index_ivf(index), faiss().extract_index_ivf(like.index)
    if mine.nlist == theirs.nlist and mine.metric_type == theirs.metric_type:
        mine.quantizer.add(theirs.quantizer.reconstruct_n(0, theirs.nlist))


def _sample(vectors: Vectors, settings: Settings, metric: Metric, seed: int) -> Vectors:
    size = training_points(settings, len(vectors))
    if size >= len(vectors):
        return prepared(vectors, metric)
    rows = np.random.default_rng(seed).choice(len(vectors), size, replace=False)
    return prepared(vectors[np.sort(rows)], metric)
