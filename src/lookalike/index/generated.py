"""Vectors that look like an encoder's, made from a seed: for benchmarks, tests, and trying an index before any data."""

from __future__ import annotations

import numpy as np

from lookalike.arrays import Vectors

BLOCK = 65_536


def clustered(n: int, d: int, *, seed: int = 0, points_per_cluster: int = 1_000, spread: float = 1.2) -> Vectors:
    """Return (n, d) unit float32 rows in overlapping clusters of unequal size, randomly rotated.

    Centres and offsets share a falling spectrum, as embeddings of pictures do: a tenth neighbour has a cosine of about
    0.55 and a thousandth of 0.25. The rotation matters: without it the first axes hold most of the variance, which
    misleads codes that cut vectors by axis.

    >>> clustered(1000, 32).shape
    (1000, 32)
    """
    rng = np.random.default_rng(seed)
    clusters = max(8, n // points_per_cluster)
    spectrum = (1 + np.arange(d) / 8) ** -0.5
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    centres = rng.standard_normal((clusters, d)) * spectrum
    weights = 1 / (1 + np.arange(clusters)) ** 0.5
    member = rng.choice(clusters, n, p=weights / weights.sum())
    out = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, BLOCK):
        part = member[start : start + BLOCK]
        rows = (centres[part] + spread * rng.standard_normal((len(part), d)) * spectrum) @ rotation
        out[start : start + BLOCK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return out
