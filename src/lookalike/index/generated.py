"""Vectors that look like an encoder's, made from a seed: for benchmarks, tests, and trying an index before any data."""

from __future__ import annotations

import numpy as np

from lookalike.arrays import Vectors

BLOCK = 65_536


def clustered(n: int, d: int, *, seed: int = 0, points_per_cluster: int = 100, intrinsic: int = 64) -> Vectors:
    """Return (n, d) unit float32 rows in clusters of falling size, randomly rotated.

    Offsets inside a cluster have a falling spectrum over `intrinsic` directions and a little noise over all of them, as
    embeddings of pictures do. The rotation matters: without it the first axes hold most of the variance, which flatters
    codes that cut vectors by axis.

    >>> clustered(1000, 32).shape
    (1000, 32)
    """
    rng = np.random.default_rng(seed)
    clusters = max(1, n // points_per_cluster)
    spectrum = np.where(np.arange(d) < intrinsic, 1 / np.sqrt(1 + np.arange(d) / 8), 0.1)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    centres = rng.standard_normal((clusters, d)) * spectrum
    weights = 1 / (1 + np.arange(clusters)) ** 0.5
    member = rng.choice(clusters, n, p=weights / weights.sum())
    out = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, BLOCK):
        part = member[start : start + BLOCK]
        rows = (centres[part] + 0.7 * rng.standard_normal((len(part), d)) * spectrum) @ rotation
        out[start : start + BLOCK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return out
