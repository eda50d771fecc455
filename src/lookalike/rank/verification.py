"""Geometric verification as a stage: the pictures behind the queries and the candidates, instead of their vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lookalike.arrays import Ids
from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.sources import Item
from lookalike.index.neighbours import Neighbours
from lookalike.rank.geometric import Geometric, GeometricVerifier

Files: TypeAlias = Callable[[Ids], Sequence[str]]
"""(n,) items in, the paths of their pictures out, in this order."""

FOLDER = "local-features"
"""Where a catalogue keeps the local features of its pictures, named by content: safe to delete."""


@dataclass(frozen=True)
class VerifyStage:
    """A verifier ready to re-order the candidates of several queries."""

    verifier: GeometricVerifier

    def __call__(self, pictures: Sequence[Item], files: Files, found: Neighbours) -> Neighbours:
        """Put verified candidates first, most inliers first, and leave the others in their order after them.

        Scores, higher is better: the inliers of a verified candidate, and below 1 for one that is not.

        Raises:
            ShapeError: not one picture a row of candidates.
            ImageError: a query cannot be read.
        """
        return self.verifier.verify(pictures, files, found)

    def __str__(self) -> str:
        return f"inliers>={self.verifier.settings.min_inliers}"


def verify_stage(
    settings: Geometric | None = None, *, catalogue: str | os.PathLike[str] | None = None, threads: int | None = 1
) -> VerifyStage:
    """Make a stage whose local features are kept inside the catalogue at this path, where it can be written.

    Raises:
        MissingExtraError: OpenCV is not installed.
    """
    cache = None if catalogue is None or not os.access(catalogue, os.W_OK) else Path(catalogue) / FOLDER
    return VerifyStage(GeometricVerifier(settings, cache=cache, threads=threads))


def files_of(catalogue: Catalogue) -> Files:
    """Return how the pictures of a catalogue's items are found."""
    return lambda ids: [str(path) for path in catalogue.files(ids)]
