"""Geometric verification of a search's candidates: which pictures are compared, and what is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import output

if TYPE_CHECKING:
    from lookalike.arrays import Vectors
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.store import Store
    from lookalike.index.neighbours import Neighbours
    from lookalike.rank.query import Term
    from lookalike.rank.search import Ranked


class Checks:
    """The pictures behind the queries of one search, and the stage that compares them with the candidates'.

    Raises:
        click.UsageError: a query that is no picture and no item.
        InputError: a catalogue of ready vectors.
        MissingExtraError: OpenCV is not installed.
    """

    def __init__(self, settings: Mapping[str, Any], catalogue: Catalogue, terms: Sequence[Term]) -> None:
        import numpy as np

        from lookalike.rank.geometric import Geometric
        from lookalike.rank.verification import files_of, verify_stage

        for term in terms:
            if term.kind not in ("picture", "item"):
                raise click.UsageError(f"--verify compares pictures, and a query here is a {term.kind}.")
        self.files = files_of(catalogue)
        self.pictures = [
            self.files(np.array([term.value]))[0] if term.kind == "item" else str(term.value) for term in terms
        ]
        chosen = Geometric(min_inliers=settings["min_inliers"])
        self.stage = verify_stage(chosen, catalogue=catalogue.folder, threads=settings["threads"])

    def __call__(self, _store: Store, _queries: Vectors, found: Neighbours) -> Neighbours:
        """Re-order the candidates of each query by what its picture has in common with theirs."""
        return self.stage(self.pictures, self.files, found)

    def inliers(self, ranked: Ranked, place: int) -> int | None:
        """Return how many points of a verified candidate agree; None for one that is not verified."""
        if ranked.proofs is None or ranked.proofs[place] < self.stage.verifier.settings.min_inliers:
            return None
        return int(ranked.proofs[place])

    def finish(self, found: Sequence[Ranked], folder: Path | None) -> None:
        """Note what could not be compared, and draw each pair of a query and a candidate into the folder."""
        failures = self.stage.verifier.failures
        if failures:
            path, reason = next(iter(failures.items()))
            output.note(
                f"{len(failures)} pictures could not be compared and keep their order; the first: {path}: {reason}"
            )
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for query, ranked in enumerate(found, 1):
            for rank, (number, path) in enumerate(zip(ranked.ids, self.files(ranked.ids), strict=True), 1):
                if path not in failures:
                    name = f"query-{query}-rank-{rank:0{len(str(len(ranked)))}}-item-{number}.png"
                    (folder / name).write_bytes(self.stage.verifier.explain_png(self.pictures[query - 1], path))
        output.note(f"pairs with their matches drawn: {folder} (green: agreeing, red: not)")
