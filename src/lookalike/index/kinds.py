"""The kinds of index and their settings: frozen records, one literal table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from lookalike.errors import InputError, InputTypeError, UnknownNameError

Refine: TypeAlias = Literal["none", "sq8", "vectors"]
"""What re-scores the candidates of a compressed code: nothing, one byte a dimension, or the original vectors."""

POINTS_PER_CELL = 39  # below this FAISS warns that k-means has too few points (Clustering.h: min_points_per_centroid)
TRAIN_PER_CELL = 64  # training points drawn per cell; FAISS's own ceiling of 256 quadruples the time for < 0.1 % recall
MIN_PROBE = 8  # a default never probes fewer cells, however few there are in all
PROBE_SHARE = 0.03  # between the 1 and 5 % in common use; few cells need more of them, so at least their square root:
# 10,000 clustered vectors gave an overlap of 0.81 at 3 % of 256 cells


@dataclass(frozen=True, kw_only=True)
class Flat:
    """Every vector is compared; the answer is exact."""

    kind: ClassVar[str] = "flat"


@dataclass(frozen=True, kw_only=True)
class Cells:
    """`nlist` k-means cells (4·√n where None), `nprobe` of them read per query (3 % or √nlist, where None)."""

    nlist: int | None = None
    nprobe: int | None = None
    rotate: bool | None = None
    """A random rotation before compression; None: where the spectrum of the vectors falls like a PCA's."""

    def __post_init__(self) -> None:
        _at_least(1, nlist=self.nlist, nprobe=self.nprobe)
        if self.nlist is not None and self.nprobe is not None and self.nprobe > self.nlist:
            raise InputError(f"nprobe={self.nprobe} is more than the nlist={self.nlist} cells there are.")


@dataclass(frozen=True, kw_only=True)
class Ivf(Cells):
    """Cells of whole vectors."""

    kind: ClassVar[str] = "ivf"


@dataclass(frozen=True, kw_only=True)
class IvfSq8(Cells):
    """Cells of vectors at one byte a dimension."""

    kind: ClassVar[str] = "ivf-sq8"


@dataclass(frozen=True, kw_only=True)
class IvfPq(Cells):
    """Cells of product-quantised residuals: `m` parts of 8 bits (about one part per 8 dimensions where None)."""

    kind: ClassVar[str] = "ivf-pq"
    bits: ClassVar[int] = 8
    dims_per_part: ClassVar[int] = 8
    m: int | None = None
    refine: Refine = "none"
    k_factor: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(1, m=self.m, k_factor=self.k_factor)
        _check_refine(self.refine)


@dataclass(frozen=True, kw_only=True)
class IvfPqFs(Cells):
    """Cells of 4-bit product codes scanned in registers, then refined (`m`: one part per 2 dimensions where None)."""

    kind: ClassVar[str] = "ivf-pqfs"
    bits: ClassVar[int] = 4
    dims_per_part: ClassVar[int] = 2
    m: int | None = None
    refine: Refine = "sq8"
    k_factor: int = 10
    """Candidates re-scored per wanted result; it limits overlap together with nprobe, so tune both."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(1, m=self.m, k_factor=self.k_factor)
        _check_refine(self.refine)


@dataclass(frozen=True, kw_only=True)
class IvfRabitq(Cells):
    """Cells of one-bit RaBitQ codes scanned in registers, then refined (Gao and Long, SIGMOD 2024)."""

    kind: ClassVar[str] = "ivf-rabitq"
    refine: Refine = "sq8"
    k_factor: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(1, k_factor=self.k_factor)
        _check_refine(self.refine)


@dataclass(frozen=True, kw_only=True)
class Hnsw:
    """A navigable graph over whole vectors: `m` links a node (twice as many at the base), widths of the two beams."""

    kind: ClassVar[str] = "hnsw"
    m: int = 32
    ef_construction: int = 80
    ef_search: int = 64

    def __post_init__(self) -> None:
        _at_least(2, m=self.m)
        _at_least(1, ef_construction=self.ef_construction, ef_search=self.ef_search)


@dataclass(frozen=True, kw_only=True)
class HnswSq8(Hnsw):
    """A navigable graph over vectors at one byte a dimension."""

    kind: ClassVar[str] = "hnsw-sq8"
    rotate: bool | None = None


Settings: TypeAlias = Flat | Ivf | IvfSq8 | IvfPq | IvfPqFs | IvfRabitq | Hnsw | HnswSq8

KINDS: Mapping[str, type[Settings]] = {
    "flat": Flat,
    "ivf": Ivf,
    "ivf-sq8": IvfSq8,
    "ivf-pq": IvfPq,
    "ivf-pqfs": IvfPqFs,
    "ivf-rabitq": IvfRabitq,
    "hnsw": Hnsw,
    "hnsw-sq8": HnswSq8,
}


def settings_for(kind: str, values: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a kind with `values` over its defaults.

    Raises:
        UnknownNameError: no such kind, or a setting this kind does not have.

    >>> settings_for("ivf-pq", {"m": 64})
    IvfPq(nlist=None, nprobe=None, rotate=None, m=64, refine='none', k_factor=8)
    """
    if kind not in KINDS:
        raise UnknownNameError("index kind", kind, KINDS)
    known = [field.name for field in dataclasses.fields(KINDS[kind])]
    for name in values or {}:
        if name not in known:
            raise UnknownNameError(f"setting of {kind}", name, known)
    return KINDS[kind](**(values or {}))


def settings_of(kind: str | Settings) -> Settings:
    """Return the settings of a kind by its name, or the settings themselves.

    Raises:
        UnknownNameError: no such kind.
        InputTypeError: neither.

    >>> settings_of("flat"), settings_of(Ivf(nlist=64)).kind
    (Flat(), 'ivf')
    """
    if isinstance(kind, str):
        return settings_for(kind)
    if not isinstance(kind, tuple(KINDS.values())):
        raise InputTypeError(
            f"{kind!r} is no kind of index.",
            hint=f"Name one of {', '.join(KINDS)}, or give its settings, such as Hnsw(m=32).",
        )
    return kind


def settings_dict(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values, for JSON and tables."""
    return dataclasses.asdict(settings)


def changed(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return the settings with some values replaced.

    >>> changed(Hnsw(), {"ef_search": 128}).ef_search
    128
    """
    return settings_for(settings.kind, {**settings_dict(settings), **values})


def default_nlist(n: int) -> int:
    """Return 4·√n cells, fewer where n would leave less than 39 training points a cell.

    >>> default_nlist(1_000_000), default_nlist(1_000)
    (4000, 25)
    """
    return max(1, min(round(4 * math.sqrt(n)), n // POINTS_PER_CELL))


def default_nprobe(nlist: int) -> int:
    """Return 3 % of the cells, at least their square root and 8, at most all.

    >>> default_nprobe(4000), default_nprobe(256), default_nprobe(4)
    (120, 16, 4)
    """
    return min(nlist, max(MIN_PROBE, round(PROBE_SHARE * nlist), math.isqrt(nlist)))


def default_parts(d: int, dims_per_part: int) -> int:
    """Return the divisor of d nearest (as a ratio) to d / dims_per_part.

    >>> default_parts(512, 8), default_parts(768, 8), default_parts(384, 2), default_parts(7, 2)
    (64, 96, 192, 7)
    """
    target = d / dims_per_part
    divisors = [m for m in range(1, d + 1) if d % m == 0]
    return min(divisors, key=lambda m: (abs(math.log(m / target)), m))


def resolve(settings: Settings, n: int, d: int) -> tuple[Settings, tuple[str, ...]]:
    """Fill every setting left open for n vectors of d dimensions; also return what had to be changed, as sentences.

    Raises:
        InputError: a demand that cannot be met (m does not divide d, fewer vectors than centroids); both numbers named.

    >>> resolve(IvfPq(), 1_000_000, 512)[0]
    IvfPq(nlist=4000, nprobe=120, rotate=None, m=64, refine='none', k_factor=8)
    >>> resolve(Ivf(nlist=1000), 3_900, 8)[1]
    ('1,000 cells need 39,000 vectors to train (39 each) and there are 3,900: 100 cells are used.',)
    """
    if n < 1 and not isinstance(settings, Flat):
        raise InputError(
            "An index needs at least one vector, and there are 0.",
            hint="Add vectors, then build; flat may start empty.",
        )
    if not isinstance(settings, Cells):
        return settings, ()
    nlist, notices = _cells(settings, n)
    nprobe = default_nprobe(nlist) if settings.nprobe is None else min(settings.nprobe, nlist)
    filled: dict[str, Any] = {"nlist": nlist, "nprobe": nprobe}
    if isinstance(settings, IvfPq | IvfPqFs):
        filled["m"] = _parts(settings, n, d)
    return dataclasses.replace(settings, **filled), tuple(notices)


def training_points(settings: Settings, n: int) -> int:
    """Return how many vectors are drawn to train resolved settings on n vectors (0 where nothing is trained)."""
    if isinstance(settings, Cells):
        centroids = 1 << settings.bits if isinstance(settings, IvfPq | IvfPqFs) else 1
        return min(n, max(TRAIN_PER_CELL * (settings.nlist or 1), 256 * centroids))
    return min(n, 65_536) if isinstance(settings, HnswSq8) else 0


def _cells(settings: Cells, n: int) -> tuple[int, list[str]]:
    if settings.nlist is None:
        return default_nlist(n), []
    most = max(1, n // POINTS_PER_CELL)
    if settings.nlist <= most:
        return settings.nlist, []
    need = settings.nlist * POINTS_PER_CELL
    return most, [
        f"{settings.nlist:,} cells need {need:,} vectors to train ({POINTS_PER_CELL} each) and there are {n:,}: "
        f"{most:,} cells are used."
    ]


def _parts(settings: IvfPq | IvfPqFs, n: int, d: int) -> int:
    m = default_parts(d, settings.dims_per_part) if settings.m is None else settings.m
    if d % m:
        near = default_parts(d, max(1, round(d / m)))
        raise InputError(f"m={m} parts do not divide {d} dimensions.", hint=f"m={near} does.")
    centroids = 1 << settings.bits
    if n < centroids:
        raise InputError(
            f"{settings.kind} trains {centroids} centroids a part and there are {n} vectors.",
            hint=f"Add vectors until there are {centroids}, or choose flat, ivf or hnsw.",
        )
    return m


def _at_least(least: int, **values: int | None) -> None:
    for name, value in values.items():
        if value is not None and value < least:
            raise InputError(f"{name}={value} is below the least allowed, {least}.")


def _check_refine(name: str) -> None:
    if name not in get_args(Refine):
        raise UnknownNameError("refine step", name, get_args(Refine))


# Codes refined with the mapped originals: least resident, but every query reads k_factor · k vectors through the page
# cache, which is only quick while the system has memory, or a fast disk, to spare for it.
TIGHT: tuple[Settings, ...] = (IvfPqFs(refine="vectors"), IvfRabitq(refine="vectors"), IvfPq(refine="vectors"))
