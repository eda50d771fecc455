"""Lab 1: where cosine and raw dot product disagree."""

from __future__ import annotations

import numpy as np

from lookalike.catalogue.catalogue import Catalogue
from lookalike.index.exact import topk
from lookalike.index.overlap import interval
from lookalike.server.schemas.labs import Histogram, Space
from lookalike.server.shop import Shop

ASKED = 2_000
"""Items whose first neighbour is looked up; beyond it a seeded sample, whose interval is about ±2 points."""


def disagreement(shop: Shop, encoder: str | None, bins: int) -> Space:
    """Count the items whose first neighbour is another one by raw dot product than by cosine."""
    store = shop.store(encoder)
    return shop.kept(store, ("space", bins), lambda: _disagreement(store, bins))


def histogram(values: np.ndarray, bins: int) -> Histogram:
    """Count values in equal bins from the least to the largest; one bin where all are (nearly) equal.

    >>> histogram(np.array([0.0, 0.1, 1.0]), 2).counts
    [2, 1]
    """
    if not len(values):
        return Histogram(edges=[0.0, 1.0], counts=[0])
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-6 * max(abs(low), abs(high), 1e-9):
        centre, half = (low + high) / 2, max(1e-6, 1e-3 * abs(high))
        return Histogram(edges=[centre - half, centre + half], counts=[len(values)])
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    return Histogram(edges=edges.tolist(), counts=counts.tolist())


def _disagreement(store: Catalogue, bins: int) -> Space:
    ids = store.ids()
    vectors = store.vectors(ids)
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
    asked = np.arange(len(ids))
    if len(asked) > ASKED:
        asked = np.sort(np.random.default_rng(0).choice(asked, ASKED, replace=False))
    differ, low, high = 0, 0.0, 0.0
    if len(ids) > 1:
        itself = [[number] for number in ids[asked].tolist()]
        cosine = topk(vectors[asked], vectors, 1, metric="cosine", ids=ids, exclude=itself, threads=store.threads)
        dot = topk(vectors[asked], vectors, 1, metric="ip", ids=ids, exclude=itself, threads=store.threads)
        other = (cosine.ids != dot.ids).astype(np.float64)
        differ = int(other.sum())
        low, high = interval(other)
    sampled = len(asked) < len(ids)
    note = (
        "Vectors have length 1, so cosine and dot product are the same number and rank alike."
        if store.card.normalised
        else "The dot product prefers long vectors: the same few items come first for many queries."
    )
    if sampled:
        note += f" A sample of {len(asked):,} items was asked."
    return Space(
        n=len(ids), asked=len(asked), differ=differ, differ_share=differ / len(asked) if len(asked) else 0.0,
        differ_interval=[low, high], norms=histogram(norms, bins),
        norm_low=float(norms.min()) if len(ids) else 0.0, norm_mean=float(norms.mean()) if len(ids) else 0.0,
        norm_high=float(norms.max()) if len(ids) else 0.0, normalised=store.card.normalised, note=note,
        command="lookalike index NEW.la FOLDER --raw --metric ip   # keeps the encoder's own lengths",
    )  # fmt: skip
