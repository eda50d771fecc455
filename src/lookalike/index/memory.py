"""Bytes of an index before it is built, component by component."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Ids
from lookalike.errors import InputError
from lookalike.index.kinds import (
    Flat,
    Hnsw,
    HnswSq8,
    IvfPq,
    IvfPqFs,
    IvfRabitq,
    Settings,
    resolve,
    settings_of,
    training_points,
)
from lookalike.index.neighbours import Metric

FLOAT = 4
ID = 8
BLOCK = 32  # fast-scan reads 32 codes at a time and pads every list to a multiple of it
ADD_BATCH = 65_536  # rows handed to FAISS at once while building
SLACK = 0.35  # inverted lists grow by doubling: measured 20-50 % more than they hold until written and read back
TABLE_LIMIT = 2 << 30  # IndexIVFPQ.cpp: precomputed_table_max_bytes; beyond it FAISS computes tables per query

# FAISS's own fields around the components, in bytes: read off its writer, index_write.cpp, and held by the tests.
_FLAT_HEADER = 45
_SQ_HEADER = 81
_IVF_HEADER, _IVF_PQ_HEADER, _IVF_SQ_HEADER = 139, 180, 184
_IVF_PQFS_HEADER, _IVF_RABITQ_HEADER = 208, 206
_HNSW_HEADER, _HNSW_LEVEL = 101, 12  # a double and an int for every level the graph could have
_ROTATION_HEADER = 71
_REFINE_HEADER = 41
_LIST_SIZE = 8  # one size a list; block lists carry two
_SPARSE_LIST = 16  # where at most half of the lists are used, (number, size) pairs are written instead


DRAWN_UP_TO = 20_000_000  # beyond it the levels of a graph are expected instead of drawn: seconds against a digit


@dataclass(frozen=True)
class MemoryTable:
    """Bytes of one index."""

    kind: str
    settings: Settings
    n: int
    d: int
    components: Mapping[str, int]
    """What is stored per vector and per centroid: codes, ids, centroids, codebooks, vectors, graph, refine, rotation.

    These bytes are both in the file and resident once it is read.
    """
    overhead: int
    """Headers and list sizes, in the file only."""
    beside: Mapping[str, int]
    """Resident bytes outside the index file: id_map, tombstones, precomputed_table; vectors_mapped is page cache."""
    build: Mapping[str, int]
    """Live only while building: training_sample, raw_batch, list_slack."""
    exact: bool
    """True where the components do not depend on how the vectors fall into lists."""

    @property
    def total(self) -> int:
        """Bytes of all components."""
        return sum(self.components.values())

    @property
    def file(self) -> int:
        """Bytes FAISS writes."""
        return self.total + self.overhead

    @property
    def bytes_per_vector(self) -> float:
        """`total` / n."""
        return self.total / self.n

    @property
    def resident(self) -> int:
        """Bytes in memory after loading, without the mapped vectors, which the system may drop at any time."""
        return self.total + sum(size for name, size in self.beside.items() if name != "vectors_mapped")

    @property
    def build_peak(self) -> int:
        """Bytes in memory at the height of a build, without the caller's own vectors and the process itself."""
        return self.resident + sum(self.build.values())

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            "components": dict(self.components),
            "total": self.total,
            "bytes_per_vector": self.bytes_per_vector,
            "exact": self.exact,
            "file": self.file,
            "beside": dict(self.beside),
            "resident": self.resident,
            "build": dict(self.build),
            "build_peak": self.build_peak,
        }


def predict(
    n: int,
    d: int,
    *,
    kind: str | Settings = "flat",
    metric: Metric = "cosine",
    rotated: bool = False,
    list_sizes: Ids | None = None,
) -> MemoryTable:
    """Return the bytes of an index of n vectors of d dimensions, before any of them exists.

    `kind` is a name or settings. Exact for what FAISS serialises, graph included: FAISS draws the levels of HNSW from
    a fixed seed, and so does this. Fast-scan kinds pad every list to 32 codes, so they are exact only with the
    (nlist,) `list_sizes`; without them half a block a list is expected. The levels of more than 20 million
    nodes take seconds to draw and are expected too.

    Raises:
        InputError: n or d below 1, or settings that are impossible for them.

    >>> predict(1_000_000, 512).total
    2048000000
    >>> from lookalike.index.kinds import IvfPq
    >>> predict(1_000_000, 512, kind=IvfPq(m=64, nlist=4000)).total
    80716288
    """
    if n < 1 or d < 1:
        raise InputError(f"n={n} vectors of d={d} dimensions: both must be at least 1.")
    asked = settings_of(kind)
    settings, _ = resolve(asked, n, d)
    components, overhead = _components(settings, n, d, list_sizes)
    if rotated:
        components["rotation"] = FLOAT * d * d
        overhead += _ROTATION_HEADER
    exact = list_sizes is not None or not isinstance(settings, IvfPqFs | IvfRabitq)
    exact = exact and not (isinstance(settings, Hnsw) and n > DRAWN_UP_TO)
    beside = {"id_map": ID * n, "tombstones": (n + 7) // 8, "vectors_mapped": FLOAT * n * d}
    table = precomputed_table(settings, metric)
    if table:
        beside["precomputed_table"] = table
    lists = components.get("ids", 0) and sum(components.get(name, 0) for name in ("vectors", "codes", "ids"))
    build = {
        "training_sample": FLOAT * d * training_points(settings, n),
        "raw_batch": FLOAT * d * min(n, ADD_BATCH),
        "list_slack": round(SLACK * lists),
    }
    return MemoryTable(settings.kind, settings, n, d, components, overhead, beside, build, exact)


def precomputed_table(settings: Settings, metric: Metric) -> int:
    """Return the bytes of the distance table FAISS keeps for IVF-PQ under l2 (none for ip and cosine).

    >>> from lookalike.index.kinds import IvfPq
    >>> precomputed_table(IvfPq(m=64, nlist=4000), "l2")
    262144000
    """
    if not isinstance(settings, IvfPq) or metric != "l2":
        return 0
    size = (settings.nlist or 0) * (settings.m or 0) * FLOAT << settings.bits
    return size if size <= TABLE_LIMIT else 0


@functools.lru_cache(maxsize=16)
def hnsw_levels(n: int, m: int) -> Ids:
    """Return how many nodes stand on exactly 1, 2, … levels of an HNSW graph of n nodes, as FAISS will draw them.

    FAISS seeds std::mt19937 with 12345 for every new graph (HNSW.h) and subtracts P(level) = m^-level · (1 - 1/m) from
    each draw until it is spent (HNSW::random_level).

    >>> hnsw_levels(5_000, 16).tolist()
    [4712, 276, 10, 2]
    """
    probabilities = _level_odds(m)
    if n > DRAWN_UP_TO:
        return np.trim_zeros(np.round(n * np.array(probabilities)).astype(np.int64), "b")
    counts = np.zeros(len(probabilities), dtype=np.int64)
    bits = np.random.MT19937()
    bits._legacy_seeding(12345)  # the only door to mt19937's own seeding
    for start in range(0, n, 1 << 20):
        draws = bits.random_raw(min(1 << 20, n - start)).astype(np.float32) / np.float32(2**32 - 1)
        counts += _levels_of(draws.astype(np.float64), probabilities)
    return np.trim_zeros(counts, "b")


def _level_odds(m: int) -> list[float]:
    scale = 1 / np.log(m)
    odds: list[float] = []
    while (p := float(np.exp(-len(odds) / scale) * (1 - np.exp(-1 / scale)))) >= 1e-9:  # HNSW::set_default_probas
        odds.append(p)
    return odds


def _levels_of(draws: np.ndarray[Any, np.dtype[np.float64]], probabilities: list[float]) -> Ids:
    counts = np.zeros(len(probabilities), dtype=np.int64)
    for level, p in enumerate(probabilities):
        counts[level] = np.count_nonzero(draws < p)
        draws = draws[draws >= p] - p
    counts[-1] += draws.size  # HNSW::random_level: what is left goes to the last level
    return counts


def _components(settings: Settings, n: int, d: int, sizes: Ids | None) -> tuple[dict[str, int], int]:
    if isinstance(settings, Flat):
        return {"vectors": FLOAT * n * d}, _FLAT_HEADER
    if isinstance(settings, Hnsw):
        return _graph(settings, n, d)
    nlist = settings.nlist or 1
    cells = {"ids": ID * n, "centroids": FLOAT * d * nlist}
    lists = _list_table(nlist, n, sizes)
    if settings.kind == "ivf":
        return {"vectors": FLOAT * n * d, **cells}, _IVF_HEADER + lists
    if settings.kind == "ivf-sq8":
        return {"codes": n * d, **cells, "codebooks": 2 * FLOAT * d}, _IVF_SQ_HEADER + lists
    if isinstance(settings, IvfPq):
        body = {"codes": n * (settings.m or 0), **cells, "codebooks": FLOAT * d << settings.bits}
        return _refined(body, _IVF_PQ_HEADER + lists, settings.refine, n, d)
    padded = _padded(nlist, n, sizes)
    blocks = 2 * _LIST_SIZE * nlist
    if isinstance(settings, IvfPqFs):
        body = {"codes": padded * (((settings.m or 0) + 1) // 2), **cells, "codebooks": FLOAT * d << settings.bits}
        return _refined(body, _IVF_PQFS_HEADER + blocks, settings.refine, n, d)
    if isinstance(settings, IvfRabitq):
        # one bit a dimension and two floats of correction (RaBitQuantizer.h: FactorsData)
        body = {"codes": padded * ((d + 7) // 8 + 2 * FLOAT), **cells}
        return _refined(body, _IVF_RABITQ_HEADER + blocks, settings.refine, n, d)
    raise InputError(f"No byte table for {settings.kind}.")


def _graph(settings: Hnsw, n: int, d: int) -> tuple[dict[str, int], int]:
    levels = hnsw_levels(n, settings.m)
    links = sum(int(count) * settings.m * (2 + above) for above, count in enumerate(levels))
    graph = FLOAT * links + 8 * (n + 1) + 4 * n  # int32 links, one 64-bit offset and one int32 level a node
    header = _HNSW_HEADER + _HNSW_LEVEL * len(_level_odds(settings.m))
    if isinstance(settings, HnswSq8):
        return {"codes": n * d, "codebooks": 2 * FLOAT * d, "graph": graph}, header + _SQ_HEADER
    return {"vectors": FLOAT * n * d, "graph": graph}, header + _FLAT_HEADER


def _refined(body: dict[str, int], overhead: int, refine: str, n: int, d: int) -> tuple[dict[str, int], int]:
    if refine == "sq8":
        return {**body, "refine": n * d + 2 * FLOAT * d}, overhead + _REFINE_HEADER + _SQ_HEADER
    return body, overhead  # "vectors" reads the originals, which are mapped and not part of the index


def _padded(nlist: int, n: int, sizes: Ids | None) -> int:
    if sizes is None:
        return n + nlist * BLOCK // 2
    return int(((np.asarray(sizes) + BLOCK - 1) // BLOCK * BLOCK).sum())


def _list_table(nlist: int, n: int, sizes: Ids | None) -> int:
    used = min(nlist, n) if sizes is None else int(np.count_nonzero(sizes))
    return _LIST_SIZE * nlist if used > nlist // 2 else _SPARSE_LIST * used
