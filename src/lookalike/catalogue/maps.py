"""A 2-D map kept beside the vectors it was made from, and made again when they change."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue import cards, generations
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import CatalogueError

_log = logging.getLogger("lookalike")


@dataclass(frozen=True, eq=False)
class KeptMap:
    """Points of the live items, and what was said of them when they were made."""

    ids: Ids
    """(n,) ascending: the live items."""
    points: Vectors
    """(n, 2) float32."""
    details: Mapping[str, Any]


def read(catalogue: Catalogue, kind: str) -> KeptMap | None:
    """Return the map of this kind, or None where there is none of the present vectors."""
    with catalogue.database.reading() as connection:
        present = cards.stamp(connection, catalogue.stored)
    made = generations.current(catalogue.database, catalogue.stored, kind)
    if made is None or made.stamp != present:
        return None
    try:
        ids = np.load(made.folder / "ids.npy", allow_pickle=False)
        points = np.load(made.folder / "points.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if points.shape != (len(ids), 2) or len(ids) != made.details.get("items"):
        return None
    return KeptMap(ids, points.astype(np.float32), made.details)


def make(
    catalogue: Catalogue, kind: str, layout: Callable[[Ids, Vectors], tuple[Vectors, Mapping[str, Any]]]
) -> KeptMap:
    """Lay out the present vectors and keep the result where the catalogue can be written; it is returned either way.

    `layout` takes (n,) ids and (n, d) vectors and returns (n, 2) points and details of plain JSON values.
    """
    with catalogue.database.reading() as connection:
        stamp = cards.stamp(connection, catalogue.stored)
        ids = catalogue.ids()
        vectors = catalogue.vectors(ids)
    points, details = layout(ids, vectors)
    kept = {**json.loads(json.dumps(details)), "items": len(ids)}

    def fill(folder: Path) -> Mapping[str, Any]:
        np.save(folder / "ids.npy", ids)
        np.save(folder / "points.npy", points)
        return kept

    try:
        with catalogue.database.writing(kind):
            generation = generations.prepare(catalogue.database, catalogue.stored, kind, stamp, fill)
            generations.switch(catalogue.database, catalogue.stored, kind, generation)
    except CatalogueError as error:  # read-only, or somebody writes: the map is made again next time
        _log.info("the map is not kept: %s", error)
    return KeptMap(ids, points, kept)
