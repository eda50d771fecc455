"""The gallery graph of a catalogue: one of its derived files, brought up to date with the items."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue import cards, generations, view
from lookalike.catalogue.cards import Stamp
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.generations import Generation
from lookalike.errors import CatalogueError, InputError, NotFoundError
from lookalike.rank.graph import GalleryGraph
from lookalike.rank.graph_file import load_graph, save_graph
from lookalike.rank.kreciprocal import KReciprocal

KIND = "graph"
_FILE, _IDS = "graph.npz", "ids.npy"
_MOST_CHANGED = 0.2  # m new items cost m·n distances and a build n²/2: beyond a fifth an update saves little
_log = logging.getLogger("lookalike")


@dataclass(frozen=True)
class _Held:
    stamp: Stamp
    ids: Ids
    graph: GalleryGraph


_HELD: WeakKeyDictionary[Catalogue, _Held] = WeakKeyDictionary()  # a server asks the same catalogue again and again


def kept_graph(catalogue: Catalogue, settings: KReciprocal) -> tuple[GalleryGraph, Ids]:
    """Return the graph of the present items and their (n,) ids, ascending: row i is item `ids[i]`.

    Read from the catalogue where it fits, else brought up to date or built, and kept where that can be written. Lists
    of a larger k1 serve a smaller one.

    Raises:
        InputError: the catalogue is empty.
    """
    held = _HELD.get(catalogue)
    if held is None or held.stamp != _stamp(catalogue) or not _serves(held.graph, settings):
        held = _present(catalogue, settings)
    if held.graph.settings != settings:
        held = dataclasses.replace(held, graph=_with(held.graph, settings))
    _HELD[catalogue] = held
    return held.graph, held.ids


def _stamp(catalogue: Catalogue) -> Stamp:
    with catalogue.database.reading() as connection:
        return cards.stamp(connection, catalogue.stored)


def _present(catalogue: Catalogue, settings: KReciprocal) -> _Held:
    with catalogue.database.reading():
        stamp, ids = _stamp(catalogue), catalogue.ids()
        vectors = catalogue.vectors(ids)
    graph = _read(catalogue, stamp, ids, vectors, settings)
    if graph is None:
        graph = _made(catalogue, ids, vectors, settings)
        _keep(catalogue, stamp, ids, graph)  # outside the snapshot: a commit inside one is lost
    return _Held(stamp, ids, graph)


def _made(catalogue: Catalogue, ids: Ids, vectors: Vectors, settings: KReciprocal) -> GalleryGraph:
    updated = _updated(catalogue, ids, vectors)
    if updated is not None and _serves(updated, settings):
        return updated
    _log.info("building the gallery graph of %s items", f"{len(ids):,}")
    return GalleryGraph.build(vectors, metric=catalogue.metric, settings=settings, threads=catalogue.threads)


def _serves(graph: GalleryGraph, settings: KReciprocal) -> bool:
    return bool(graph.lists.names.shape[1] >= min(settings.k1 + 1, len(graph)))


def _with(graph: GalleryGraph, settings: KReciprocal) -> GalleryGraph:
    """Return the graph under other settings, its lists cut to their k1."""
    count = min(settings.k1 + 1, len(graph))
    lists = dataclasses.replace(
        graph.lists,
        names=np.ascontiguousarray(graph.lists.names[:, :count]),
        distances=np.ascontiguousarray(graph.lists.distances[:, :count]),
    )
    return dataclasses.replace(graph, settings=settings, lists=lists)


def _name(stamp: Stamp) -> str:
    return f"{stamp.revision}-{stamp.token}"


def _read(catalogue: Catalogue, stamp: Stamp, ids: Ids, vectors: Vectors, settings: KReciprocal) -> GalleryGraph | None:
    made = generations.current(catalogue.database, catalogue.stored, KIND)
    if made is None or made.stamp != stamp or made.details.get("items") != len(ids):
        return None
    graph = _loaded(made, vectors)
    return graph if graph is not None and _serves(graph, settings) else None


def _loaded(made: Generation, vectors: Vectors) -> GalleryGraph | None:
    try:
        return load_graph(made.folder / _FILE, vectors, stamp=_name(made.stamp))
    except (InputError, NotFoundError) as error:  # derived: made again
        _log.info("%s", error)
        return None


def _updated(catalogue: Catalogue, ids: Ids, vectors: Vectors) -> GalleryGraph | None:
    """Bring the lists of an earlier state up to date; None where building them anew is right or as quick."""
    made = generations.current(catalogue.database, catalogue.stored, KIND)
    if made is None:
        return None
    try:
        old = np.load(made.folder / _IDS, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    with catalogue.database.reading() as connection:
        changed = view.changed(connection, catalogue.stored, made.stamp.revision)
    stayed = np.isin(old, ids)
    fresh = ids[~np.isin(ids, old)]
    few = len(fresh) + int((~stayed).sum()) <= _MOST_CHANGED * len(old)
    appended = not len(fresh) or bool(fresh[0] > old.max(initial=-1))
    if not few or not appended or not stayed.any() or np.isin(changed, old).any():
        return None  # an item whose picture changed keeps its id, and its place in the middle
    before = np.zeros((len(old), vectors.shape[1]), np.float32)  # what is gone is ranked by nobody
    before[stayed] = vectors[np.isin(ids, old)]
    before[~stayed] = before[np.flatnonzero(stayed)[0]]
    graph = _loaded(made, before)
    if graph is None:
        return None
    graph = graph.remove(np.flatnonzero(~stayed)) if not stayed.all() else graph
    return graph.add(vectors[-len(fresh) :], threads=catalogue.threads) if len(fresh) else graph


def _keep(catalogue: Catalogue, stamp: Stamp, ids: Ids, graph: GalleryGraph) -> None:
    def fill(folder: Path) -> Mapping[str, Any]:
        save_graph(graph, folder / _FILE, stamp=_name(stamp))
        np.save(folder / _IDS, ids)
        return {"items": len(ids), "settings": dataclasses.asdict(graph.settings)}

    try:
        with catalogue.database.writing(KIND):
            made = generations.prepare(catalogue.database, catalogue.stored, KIND, stamp, fill)
            generations.switch(catalogue.database, catalogue.stored, KIND, made)
    except CatalogueError as error:  # read-only, or somebody writes: it is made again next time
        _log.info("the gallery graph is not kept: %s", error)
