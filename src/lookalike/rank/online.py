"""Candidates re-ordered by the neighbourhoods of a whole store, whose graph a catalogue keeps."""

from __future__ import annotations

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors, as_vectors
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.store import Store
from lookalike.errors import InputError, ShapeError
from lookalike.index.neighbours import Neighbours
from lookalike.rank.graph import GalleryGraph
from lookalike.rank.kept_graph import kept_graph
from lookalike.rank.kreciprocal import KReciprocal
from lookalike.rank.pools import members


def rerank_on_graph(
    store: Store,
    queries: Vectors,
    neighbours: Neighbours,
    settings: KReciprocal | None = None,
    *,
    own: Ids | None = None,
) -> Neighbours:
    """Re-rank retrieved neighbours by neighbourhoods of the whole gallery; nothing else is found.

    A catalogue keeps the graph among its derived files and brings it up to date; of another store it is built at every
    call. `own`, (q,), names the item of the store that a query is, or -1.

    Raises:
        ShapeError: not one query a row of neighbours.
        InputError: an own item the store does not hold.
    """
    chosen = settings or KReciprocal()
    if isinstance(store, Catalogue):
        graph, ids = kept_graph(store, chosen)
    else:
        ids = store.ids()
        graph = GalleryGraph.build(store.vectors(ids), metric=store.metric, settings=chosen)
    return rerank_with(graph, ids, queries, neighbours, own=own)


def rerank_with(
    graph: GalleryGraph, ids: Ids, queries: Vectors, neighbours: Neighbours, *, own: Ids | None = None
) -> Neighbours:
    """Re-order retrieved neighbours by a graph whose row i is the item `ids[i]` (ascending); nothing else is found.

    Scores are final distances in [0, 1], lower is better; equal ones stay in retrieved order.

    Raises:
        ShapeError: not one query a row of neighbours.
        InputError: a neighbour or an own item the graph does not hold.
    """
    if len(queries) != len(neighbours):
        raise ShapeError(f"There are {len(queries)} queries for {len(neighbours)} rows of neighbours.")
    rows = np.searchsorted(ids, neighbours.ids)
    if len(neighbours.ids) and not np.array_equal(ids[np.minimum(rows, len(ids) - 1)], neighbours.ids):
        raise InputError("The gallery graph lacks some of the neighbours.", hint="Update the graph with the catalogue.")
    at, _ = members(own, ids, len(queries))
    answers: list[tuple[Ids, Scores]] = []

    def order(query: int, final: Scores) -> None:
        part = slice(neighbours.offsets[query], neighbours.offsets[query + 1])
        found, scores = neighbours.ids[part], final[rows[part]]
        ranked = np.argsort(scores, kind="stable")
        answers.append((found[ranked], scores[ranked]))

    graph.visit(as_vectors(queries, name="queries", dim=graph.points.vectors.shape[1]), order, at=at)
    return Neighbours.from_rows(answers, "l2")
