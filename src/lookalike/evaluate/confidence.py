"""How sure a number is: bootstrap intervals over queries, and paired comparison of two runs.

Queries of one identity are not independent; where groups are given, whole groups are drawn (Davison and Hinkley,
Bootstrap Methods and their Application, 1997, section 3.8) and whole groups change sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Scores, factorise
from lookalike.errors import InputError, ProtocolError, ShapeError
from lookalike.evaluate.relevance import Column

RESAMPLES = 10_000
_BLOCK_BYTES = 16 << 20
_FEW = 50  # one binomial draw costs about what fifty units cost when drawn one by one


@dataclass(frozen=True)
class Paired:
    """The difference of two runs over the same queries, second minus first."""

    difference: float
    low: float
    high: float
    p: float
    """Two-sided sign-flip permutation p-value: how often chance alone makes a difference this large."""
    won: int
    """Queries on which the second run is better."""
    lost: int
    tied: int


def bootstrap(
    values: Scores,
    *,
    groups: Column | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile interval of the mean of (q,) values; NaN values are not evaluated queries.

    `groups` (q,): labels by which whole groups of queries are drawn; a query without one is a group of its own. Where
    all values are equal the interval has no width, which says nothing about other queries.

    Raises:
        ShapeError: not one group a query.
        InputError: fewer than one resample, or a level outside (0, 1).

    >>> low, high = bootstrap(np.array([1.0] * 80 + [0.0] * 20), seed=1)
    >>> round(low, 2), round(high, 2)
    (0.72, 0.87)
    """
    return intervals({"": values}, groups=groups, resamples=resamples, level=level, seed=seed)[""]


def intervals(
    values: Mapping[str, Scores],
    *,
    groups: Column | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Return the `bootstrap` interval of several metrics of one run, drawn together: one pass for all.

    Raises:
        ShapeError: lengths differ.
        InputError: fewer than one resample, or a level outside (0, 1).
    """
    _check(values, groups, resamples, level)
    nothing = (float("nan"), float("nan"))
    result = dict.fromkeys(values, nothing)
    for names in _same_queries(values):
        units = _units(np.stack([values[name] for name in names], axis=1), groups)
        if not len(units):
            continue
        sums = np.concatenate(list(_resampled(units, resamples, np.random.default_rng(seed))))
        means = sums[:, :-1] / sums[:, -1:]
        low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
        result |= {name: (float(low[i]), float(high[i])) for i, name in enumerate(names)}
    return result


def paired(
    first: Scores,
    second: Scores,
    *,
    groups: Column | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Paired:
    """Compare (q,) values of two runs query by query.

    The p-value flips the sign of each query's (or group's) difference at random (Smucker et al., CIKM 2007, call it
    Fisher's randomisation test); it is never below 1 / (resamples + 1).

    Raises:
        ProtocolError: the runs did not evaluate the same queries.
        ShapeError: lengths differ.

    >>> a, b = np.zeros(20), np.array([1.0] * 8 + [0.0] * 12)
    >>> paired(a, b).difference, paired(a, b).won, paired(a, b).tied, paired(a, b).p < 0.02
    (0.4, 8, 12, True)
    """
    _check({"first": first, "second": second}, groups, resamples, level)
    unlike = int((np.isnan(first) != np.isnan(second)).sum())
    if unlike:
        raise ProtocolError(f"The two runs did not evaluate the same queries: {unlike} stand in one of them only.")
    differences = second - first
    units = _units(differences[:, None], groups)
    if not len(units):
        nan = float("nan")
        return Paired(nan, nan, nan, nan, 0, 0, 0)
    low, high = bootstrap(differences, groups=groups, resamples=resamples, level=level, seed=seed)
    won, lost, tied = ((differences > 0).sum(), (differences < 0).sum(), (differences == 0).sum())
    p = _sign_flips(units[:, 0], resamples, np.random.default_rng(seed))
    return Paired(float(np.nanmean(differences)), low, high, p, int(won), int(lost), int(tied))


def _check(values: Mapping[str, Scores], groups: Column | None, resamples: int, level: float) -> None:
    lengths = {len(column) for column in values.values()}
    if groups is not None:
        lengths.add(len(groups))
    if len(lengths) > 1:
        raise ShapeError(f"Values and groups must have one entry a query; their lengths are {sorted(lengths)}.")
    if resamples < 1:
        raise InputError(f"resamples={resamples}: at least one is needed; 10,000 is usual.")
    if not 0 < level < 1:
        raise InputError(f"level={level}: an interval's level lies between 0 and 1, such as 0.95.")


def _same_queries(values: Mapping[str, Scores]) -> Iterator[list[str]]:
    """Put metrics that are evaluated on the same queries together."""
    together: dict[bytes, list[str]] = {}
    for name, column in values.items():
        together.setdefault(np.packbits(np.isnan(column)).tobytes(), []).append(name)
    yield from together.values()


def _units(values: npt.NDArray[np.float64], groups: Column | None) -> npt.NDArray[np.float64]:
    """Return (u, m + 1): what is drawn as one, its sums and its number of queries."""
    kept = ~np.isnan(values).any(axis=1)
    table = np.concatenate([values[kept], np.ones((int(kept.sum()), 1))], axis=1)
    if groups is None:
        return table
    codes = factorise(groups)[0][kept]
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(alone.sum())
    _, unit = np.unique(codes, return_inverse=True)
    return np.stack([np.bincount(unit, weights=column) for column in table.T], axis=1)


def _resampled(
    units: npt.NDArray[np.float64], resamples: int, rng: np.random.Generator
) -> Iterator[npt.NDArray[np.float64]]:
    """Yield (b, m + 1) column sums of draws with replacement, as many draws as units.

    Equal units are interchangeable: how often each kind is drawn is multinomial, which is exact and, for the zeros
    and ones of recall, thousands of times cheaper than drawing the units.
    """
    kinds, sizes = np.unique(units, axis=0, return_counts=True)
    if len(kinds) * _FEW <= len(units):
        for size in _blocks(resamples, len(kinds)):
            yield rng.multinomial(len(units), sizes / len(units), size=size).astype(np.float64) @ kinds
        return
    for size in _blocks(resamples, len(units)):
        counts = np.empty((size, len(units)))
        for row in counts:
            row[:] = np.bincount(rng.integers(0, len(units), len(units), dtype=np.int32), minlength=len(units))
        yield counts @ units


def _sign_flips(differences: Scores, resamples: int, rng: np.random.Generator) -> float:
    sizes = np.abs(differences[differences != 0])
    if not sizes.size:
        return 1.0
    # sums of the same numbers in another order differ in their last bits; they are the same sum
    observed = abs(differences.sum()) - 1e-12 * sizes.sum()
    kinds, counts = np.unique(sizes, return_counts=True)
    reached = 0
    if len(kinds) * _FEW <= len(sizes):
        for size in _blocks(resamples, len(kinds)):
            signs = 2 * rng.binomial(counts, 0.5, size=(size, len(kinds))) - counts
            reached += int((np.abs(signs @ kinds) >= observed).sum())
    else:
        for size in _blocks(resamples, len(sizes)):
            width = -(-len(sizes) // 8)
            bits = np.frombuffer(rng.bytes(size * width), np.uint8).reshape(size, width)
            plus = np.unpackbits(bits, axis=1, count=len(sizes)).astype(np.float64) @ sizes
            reached += int((np.abs(2 * plus - sizes.sum()) >= observed).sum())
    return (1 + reached) / (1 + resamples)


def _blocks(resamples: int, width: int) -> Iterator[int]:
    size = max(1, _BLOCK_BYTES // (8 * width))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)
