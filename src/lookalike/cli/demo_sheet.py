"""The demo's picture of real results: queries, their nearest pictures, right and wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lookalike.arrays import Vectors
from lookalike.datasets.pictures import LabelledPictures
from lookalike.images.sheet import Tile, save_sheet
from lookalike.index.exact import topk

SHOWN, NEAREST = 6, 6


def contact_sheet(pictures: LabelledPictures, vectors: Vectors, path: Path, *, seed: int, threads: int | None) -> Path:
    """Write a JPEG, one row a query: it and its nearest pictures, framed by whether the object is right."""
    labels, identities = pictures.column("label"), pictures.column("identity")
    kinds = sorted({label for label in labels if label is not None})
    rng = np.random.default_rng(seed)
    shown = [int(rng.choice([i for i, label in enumerate(labels) if label == kind])) for kind in kinds]
    queries = np.sort(rng.permutation(shown)[:SHOWN])
    found = topk(vectors[queries], vectors, NEAREST, exclude=[np.array([q]) for q in queries], threads=threads)
    rows = []
    for query, (ids, scores) in zip(queries, found, strict=True):
        row = [Tile(pictures.paths[query], f"query: {identities[query]}", "query")]
        for item, score in zip(ids, scores, strict=True):
            right = identities[item] == identities[query]
            row.append(Tile(pictures.paths[item], f"{score:.3f} {identities[item]}", "right" if right else "wrong"))
        rows.append(row)
    return save_sheet(rows, path)
