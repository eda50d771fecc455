"""How much of the exact answer an index finds: a mean over queries, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lookalike.arrays import Ids, Scores
from lookalike.errors import InputError
from lookalike.index.neighbours import Neighbours

RESAMPLES = 1_000
LEVEL = 0.95
_Z = 1.959964  # normal quantile of 0.975


@dataclass(frozen=True)
class Overlap:
    """Share of the k exact neighbours that were returned, averaged over queries, with its 95 % interval."""

    value: float
    low: float
    high: float
    k: int
    queries: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] @{self.k} over {self.queries} queries"


def overlap(found: Neighbours, exact: Neighbours, k: int, *, seed: int = 0) -> Overlap:
    """Compare answers with the exact ones, query by query, over the first k.

    A query with fewer than k exact answers is scored over those it has; one with none is left out. The interval is a
    bootstrap over queries; where every query scores alike it is Wilson's, which does not collapse to a point.

    Raises:
        InputError: not the same number of queries, or none with an exact answer.
    """
    if len(found) != len(exact):
        raise InputError(f"{len(found)} answers cannot be compared with {len(exact)} exact ones.")
    shares = np.array(
        [np.isin(right[:k], ids[:k]).mean() for (ids, _), (right, _) in zip(found, exact, strict=True) if len(right)]
    )
    if not shares.size:
        raise InputError("No query has an exact neighbour, so there is nothing to compare.")
    low, high = interval(shares, seed=seed)
    return Overlap(float(shares.mean()), low, high, k, len(shares))


def interval(shares: Scores, *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean of (q,) values in [0, 1].

    >>> low, high = interval(np.ones(100))
    >>> round(low, 3), high  # Wilson (1927): 100 of 100
    (0.963, 1.0)
    """
    q = len(shares)
    mean = float(shares.mean())
    if np.ptp(shares) == 0:
        centre = (mean + _Z**2 / (2 * q)) / (1 + _Z**2 / q)
        half = _Z / (1 + _Z**2 / q) * math.sqrt(mean * (1 - mean) / q + _Z**2 / (4 * q * q))
        return max(0.0, round(centre - half, 12)), min(1.0, round(centre + half, 12))
    draws: Ids = np.random.default_rng(seed).integers(0, q, (RESAMPLES, q))
    low, high = np.quantile(shares[draws].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
