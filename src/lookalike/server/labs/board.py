"""Lab 5: several prompts by several encoders, each score over that query's own histogram."""

from __future__ import annotations

import numpy as np

from lookalike.arrays import Vectors
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import LookalikeError
from lookalike.index.neighbours import pair_scores
from lookalike.rank.query import Term, query_vector
from lookalike.rank.search import MAD_TO_SIGMA, search
from lookalike.server.items import one
from lookalike.server.labs.space import histogram
from lookalike.server.problems import problem_of
from lookalike.server.ranking import candidates
from lookalike.server.schemas.labs import Board, BoardCell, BoardRequest
from lookalike.server.shop import Shop

SCORED = 20_000
"""Items a histogram is drawn of; beyond it a seeded sample."""


def cells(shop: Shop, request: BoardRequest) -> Board:
    """Answer every query by every encoder; one that cannot be answered fails alone."""
    encoders = request.encoders or [card.name for card in shop.store().cards()]
    queries = [(text, Term(kind="text", value=text)) for text in request.prompts]
    queries += [(f"item {number}", Term(kind="item", value=number)) for number in request.items]
    return Board(
        cells=[_cell(shop, request, encoder, name, term) for name, term in queries for encoder in encoders],
        note="Scores of two encoders, or of a text and a picture, are not comparable; each query's own histogram is.",
    )


def _cell(shop: Shop, request: BoardRequest, encoder: str, name: str, term: Term) -> BoardCell:
    try:
        store = shop.store(encoder)
        return _answered(store, request, name, term)
    except LookalikeError as error:
        return BoardCell(query=name, encoder=encoder, status="failed", problem=problem_of(error))


def _answered(store: Catalogue, request: BoardRequest, name: str, term: Term) -> BoardCell:
    own = None
    if term.kind == "item":
        own = int(term.value)  # type: ignore[arg-type]
        one(store, own)
    query = query_vector([term], store, lambda: store.encoder)
    found = search(store, query[None], k=request.k, where=request.where, exclude=[own])[0]
    scores = pair_scores(query, _scored(store, request.where, own), store.metric)
    median = float(np.median(scores)) if len(scores) else None
    sigma = float(MAD_TO_SIGMA * np.median(np.abs(scores - median))) if median is not None else None
    return BoardCell(
        query=name, encoder=store.card.name, status="ok", metric=store.metric, scores=histogram(scores, request.bins),
        median=median, sigma=sigma, candidates=candidates(store, name, found),
    )  # fmt: skip


def _scored(store: Catalogue, where: str | None, own: int | None) -> Vectors:
    ids = store.ids(where=where)
    ids = ids[ids != own] if own is not None else ids
    if len(ids) > SCORED:
        ids = np.sort(np.random.default_rng(0).choice(ids, SCORED, replace=False))
    return store.vectors(ids)
