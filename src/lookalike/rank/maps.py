"""Vectors laid out in two dimensions, and how far such a map can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from lookalike import threads as processors
from lookalike.arrays import Scores, Vectors, as_vectors
from lookalike.errors import InputError, MissingExtraError, NonFiniteError, UnknownNameError
from lookalike.index.exact import topk
from lookalike.index.neighbours import Metric
from lookalike.index.overlap import Overlap, overlap

Method: TypeAlias = Literal["pca", "umap"]
METHODS: tuple[Method, ...] = get_args(Method)

FITTED = 10_000  # rows the axes of a PCA are found on; more change the third digit
_BLOCK = 4_096
ASKED = 500  # items whose neighbours on the map are looked up for the trust score


@dataclass(frozen=True, eq=False)
class Map:
    """Points of a 2-D map."""

    method: Method
    points: Vectors
    """(n, 2) float32, centred."""
    explained: tuple[float, float] | None
    """Share of the variance on each axis; None where axes mean nothing."""


def lay_out(vectors: Vectors, method: Method = "pca", *, metric: Metric = "cosine", seed: int = 0) -> Map:
    """Lay (n, d) vectors out in the plane: `pca`, exact and quick; `umap`, which keeps neighbours together.

    Under `cosine` rows count as if brought to length 1, so that the map shows what search compares. The same seed gives
    the same map; each axis points where its largest coordinate is positive.

    Raises:
        UnknownNameError: no such method.
        InputError: fewer than two vectors, or fewer than three for UMAP.
        NonFiniteError: under cosine, a vector of length zero.
        MissingExtraError: UMAP is not installed.

    >>> corners = np.array([[3, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]], dtype=np.float32)
    >>> lay_out(corners, metric="l2").points.round(6).tolist()
    [[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    """
    if method not in METHODS:
        raise UnknownNameError("kind of map", method, METHODS)
    rows = as_vectors(vectors)
    if len(rows) < (2 if method == "pca" else 3):
        raise InputError(f"{len(rows)} vectors make no {method} map.", hint="Add pictures first.")
    lengths = np.ones(len(rows))
    if metric == "cosine":
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        if not lengths.all():
            raise NonFiniteError(f"Row {int(lengths.argmin())} has length zero, which has no direction to lay out.")
    with processors.blas(1):  # a second of work, which more threads make longer on a machine that has other work
        flat = _pca(rows, lengths, seed)
    return flat if method == "pca" else _umap(rows, flat, metric, seed)


def trust(
    points: Vectors, vectors: Vectors, *, metric: Metric = "cosine", k: int = 10, sample: int = ASKED, seed: int = 0,
    threads: int | None = None,
) -> Overlap:  # fmt: skip
    """Return the share of an item's k nearest points that are among its k true neighbours, with its interval.

    Averaged over a seeded sample of items; 1 for a map that lost nothing, k/(n − 1) for one drawn by chance.

    Raises:
        InputError: fewer than two items.

    >>> flat = np.array([[0, 0], [0, 1], [5, 5], [5, 6]], dtype=np.float32)
    >>> trust(flat, flat, metric="l2", k=1).value
    1.0
    """
    if len(points) < 2:
        raise InputError("One item has no neighbours.")
    asked = np.arange(len(points))
    if len(asked) > sample:
        asked = np.sort(np.random.default_rng(seed).choice(asked, sample, replace=False))
    k = min(k, len(points) - 1)
    itself = [[row] for row in asked.tolist()]
    true = topk(vectors[asked], vectors, k, metric=metric, exclude=itself, threads=threads)
    near = topk(points[asked], points, k, metric="l2", exclude=itself, threads=threads)
    return overlap(near, true, k, seed=seed)


def _pca(rows: Vectors, lengths: Scores, seed: int) -> Map:
    """Project rows over their lengths on the directions of largest variance, found on a sample where there are many.

    The products are float32, which moves a point by about 1e-6 of the map's width; nothing (n, d) is copied.
    """
    fitted = np.arange(len(rows))
    if len(rows) > FITTED:
        fitted = np.sort(np.random.default_rng(seed).choice(fitted, FITTED, replace=False))
    mean = np.zeros(rows.shape[1])
    for start in range(0, len(fitted), _BLOCK):
        part = fitted[start : start + _BLOCK]
        mean += (rows[part] / lengths[part, None]).sum(axis=0) / len(fitted)
    spread = np.zeros((rows.shape[1],) * 2)
    for start in range(0, len(fitted), _BLOCK):
        part = fitted[start : start + _BLOCK]
        block = (rows[part] / lengths[part, None] - mean).astype(np.float32)
        spread += block.T @ block
    values, axes = np.linalg.eigh(spread)
    count = min(2, rows.shape[1])
    chosen = axes[:, ::-1][:, :count]
    points = np.zeros((len(rows), 2), dtype=np.float32)
    points[:, :count] = (rows @ chosen.astype(np.float32)) / lengths[:, None] - mean @ chosen
    largest = points[np.abs(points).argmax(axis=0), np.arange(2)]
    points *= np.where(largest < 0, -1, 1).astype(np.float32)
    total = float(values.clip(0).sum())
    shares = [float(value) / total if total > 0 else 0.0 for value in values[::-1][:count].clip(0)]
    first, second = (*shares, 0.0)[:2]
    return Map("pca", points, (first, second))


def _umap(rows: Vectors, flat: Map, metric: Metric, seed: int) -> Map:
    """Start from the PCA, at the width of UMAP's own start: the same map every time, and no spectral solver."""
    import warnings

    widest = float(np.abs(flat.points).max()) or 1.0
    start = (10 * flat.points / widest).astype(np.float32)
    # Under ip there is no distance to lay out; directions are what the eye can compare.
    name = "euclidean" if metric == "l2" else "cosine"
    with warnings.catch_warnings():  # it warns of TensorFlow, of being seeded, and of its own deprecated calls
        warnings.simplefilter("ignore")
        try:
            from umap import UMAP  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError as error:
            raise MissingExtraError("A UMAP map", "maps") from error
        made = UMAP(n_neighbors=min(15, len(rows) - 1), metric=name, random_state=seed, n_jobs=1, init=start)
        points = np.asarray(made.fit_transform(rows), dtype=np.float32)
    return Map("umap", points - points.mean(axis=0), None)
