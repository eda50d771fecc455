"""The demo's picture of real results: queries, their nearest pictures, right and wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lookalike.catalogue.catalogue import Catalogue
from lookalike.images.sheet import Tile, save_sheet
from lookalike.rank.search import search

SHOWN, NEAREST = 6, 6


def contact_sheet(catalogue: Catalogue, path: Path, *, seed: int) -> Path:
    """Write a JPEG, one row a query: it and its nearest pictures, framed by whether the object is right."""
    ids = catalogue.ids()
    kinds = np.array(catalogue.column("label", ids))
    rng = np.random.default_rng(seed)
    shown = rng.permutation([int(rng.choice(ids[kinds == kind])) for kind in np.unique(kinds)])[:SHOWN].tolist()
    found = search(catalogue, catalogue.vectors(np.array(shown)), k=NEAREST, exclude=shown)
    rows = []
    for query, ranked in zip(shown, found, strict=True):
        numbers = np.concatenate([[query], ranked.ids])
        objects = catalogue.column("identity", numbers)
        files = list(map(str, catalogue.files(numbers)))
        row = [Tile(files[0], f"query: {objects[0]}", "query")]
        for place, score in enumerate(ranked.scores, start=1):
            right = objects[place] == objects[0]
            row.append(Tile(files[place], f"{score:.3f} {objects[place]}", "right" if right else "wrong"))
        rows.append(row)
    return save_sheet(rows, path)
