"""A gallery graph on disk: derived from the vectors, stamped with their revision, made again when in doubt."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lookalike.arrays import as_vectors
from lookalike.errors import InputError, NotFoundError
from lookalike.index.neighbours import check_metric
from lookalike.rank.graph import GalleryGraph
from lookalike.rank.kreciprocal import KReciprocal
from lookalike.rank.lists import RankingLists, space

_FORMAT = 1


def save_graph(graph: GalleryGraph, path: str | os.PathLike[str], *, stamp: str) -> None:
    """Write the lists to an `.npz` file; `stamp` names the vectors they were made from, a revision for example."""
    about = {
        "format": _FORMAT,
        "stamp": stamp,
        "metric": graph.metric,
        "settings": dataclasses.asdict(graph.settings),
    }
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    with partial.open("wb") as file:
        np.savez(file, names=graph.lists.names, farthest=graph.lists.farthest, about=np.array(json.dumps(about)))
    partial.replace(target)  # a killed run leaves the old file whole


def load_graph(path: str | os.PathLike[str], vectors: npt.ArrayLike, *, stamp: str) -> GalleryGraph:
    """Read a saved graph and join it with the vectors it was made from.

    Raises:
        NotFoundError: no such file.
        InputError: made from other vectors (another stamp or number of rows), or not a graph of this format.
    """
    if not Path(path).is_file():
        raise NotFoundError(f"There is no file {os.fspath(path)!r}.")
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            names, farthest = stored["names"], stored["farthest"]
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{os.fspath(path)!r} is no gallery graph: {error}.", hint="Build it again.") from error
    rows = as_vectors(vectors)
    found = (about.get("format"), about.get("stamp"), len(names))
    if found != (_FORMAT, stamp, len(rows)):
        raise InputError(
            f"The gallery graph has format, stamp and rows {found}; expected {(_FORMAT, stamp, len(rows))}.",
            hint="Build it again from the vectors as they are now.",
        )
    points = space(rows, check_metric(about["metric"]))
    distances = points.pairs(np.repeat(np.arange(len(rows)), names.shape[1]), names.ravel()).reshape(names.shape)
    scale = points.pairs(np.arange(len(rows)), farthest)
    lists = RankingLists(names, distances, farthest, np.where(scale > 0, scale, 1.0))
    return GalleryGraph(points=points, lists=lists, metric=about["metric"], settings=KReciprocal(**about["settings"]))
