"""From a request to ranked candidates, through the same functions as `lookalike search`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Encoder
from lookalike.embed.pipeline import embed_files
from lookalike.errors import ImageError, InputError
from lookalike.images.load import Picture, load
from lookalike.index.exact import topk
from lookalike.index.neighbours import Metric, Neighbours, higher_is_better, pair_scores
from lookalike.rank.expansion import AlphaExpansion, expand_queries
from lookalike.rank.query import Term, query_vector
from lookalike.rank.search import Ranked, search
from lookalike.rank.stages import rerank_stage
from lookalike.server.commands import command
from lookalike.server.items import one, plain, sendable, thumbs, values
from lookalike.server.schemas.search import (
    Candidate,
    Expansion,
    Neighbour,
    NeighbourLists,
    QueryTerm,
    SearchRequest,
    SearchResponse,
)
from lookalike.server.shop import Shop


def answer(shop: Shop, request: SearchRequest, pictures: Sequence[bytes] = ()) -> SearchResponse:
    """Rank the items for one query.

    Raises:
        InputError: nothing is asked, an item that is not there, a picture that cannot be read, a text for an encoder
            of pictures only.
    """
    started = time.perf_counter()
    store = shop.store(request.encoder)
    asked = _with_pictures(request.terms, len(pictures))
    name = ", ".join(map(_shown, asked))
    terms = [_term(each, pictures, store, shop.settings.max_pixels) for each in asked]
    query = query_vector(terms, store, lambda: store.encoder)[None]
    own = [asked[0].item if asked else None]
    if request.expand is not None:
        query = _expanded(store, query, request.expand, own)
    stage = rerank_stage(request.rerank) if request.rerank else None
    found = search(
        store, query, k=request.k, pool=request.pool, where=request.where, stage=stage, exclude=own, seed=request.seed
    )[0]
    searched = shop.count(store, request.where)
    return SearchResponse(
        query=name,
        candidates=candidates(store, name, found),
        metric=store.metric,
        higher_is_better=higher_is_better(store.metric),
        encoder=store.card.name,
        searched=searched,
        revision=store.revision,
        notes=_notes(store, request, len(found), searched, own[0] is not None),
        took_ms=round(1e3 * (time.perf_counter() - started), 3),
        command=_command(shop, request, asked),
    )


def candidates(store: Catalogue, query: str, found: Ranked) -> list[Candidate]:
    """Return ranked items with everything a page shows of them."""
    rows = zip(
        found.ids.tolist(), found.scores.tolist(), plain(found.lifts), found.first_ranks.tolist(),
        store.paths(found.ids), values(store, found.ids), thumbs(store, found.ids), strict=True,
    )  # fmt: skip
    return [
        Candidate(
            query=query,
            rank=rank,
            id=number,
            path=sendable(path),
            score=score,
            metric=found.metric,
            higher_is_better=higher_is_better(found.metric),
            lift=lift,
            first_rank=first,
            columns=columns,
            thumb=thumb,
        )
        for rank, (number, score, lift, first, path, columns, thumb) in enumerate(rows, 1)
    ]


def neighbour_lists(shop: Shop, number: int, k: int, where: str | None, encoder: str | None) -> NeighbourLists:
    """Return an item's true neighbours by cosine and by raw dot product: exact, the item itself left out.

    Raises:
        RefusedError: no such item (404).
    """
    store = shop.store(encoder)
    query = store.vectors(one(store, number))
    ids = store.ids(where=where)
    gallery = store.vectors(ids)
    lists = []
    metrics: tuple[Metric, ...] = ("cosine", "ip")
    for metric in metrics:
        found = topk(query, gallery, k, metric=metric, ids=ids, exclude=[[number]], threads=store.threads)
        lists.append(_neighbours(store, query[0], found.ids))
    by_cosine, by_dot = lists
    same = [row.id for row in by_cosine[:1]] == [row.id for row in by_dot[:1]]
    return NeighbourLists(
        id=number,
        norm=float(np.linalg.norm(query[0].astype(np.float64))),
        by_cosine=by_cosine,
        by_dot=by_dot,
        differ=not same,
        note="Vectors have length 1, so cosine and dot product are the same number."
        if store.card.normalised
        else "The dot product grows with the length of a vector; cosine does not look at it.",
        command=command("search", shop.shown, item=number, k=k, where=where, encoder=encoder),
    )


def embed_upload(picture: bytes, encoder: Encoder, *, max_pixels: int, threads: int | None = None) -> Vectors:
    """Return the (d,) vector of an uploaded picture, which may not have more pixels than that.

    Raises:
        ImageError: it cannot be read, or is too large.
    """
    [chunk] = embed_files([picture], encoder, threads=threads, loader=partial(_load, max_pixels=max_pixels))
    if chunk.failures:
        raise ImageError("the uploaded picture", chunk.failures[0].reason, chunk.failures[0].detail)
    row: Vectors = chunk.vectors[0]
    return row


def _load(item: bytes, short_side: int | None, *, max_pixels: int) -> Picture:
    return load(item, short_side=short_side, max_pixels=max_pixels)


def _with_pictures(terms: Sequence[QueryTerm], pictures: int) -> list[QueryTerm]:
    named = {term.picture for term in terms if term.picture is not None}
    beyond = sorted(number for number in named if number >= pictures)
    if beyond:
        raise InputError(
            f"A term asks with picture {beyond[0]}, and {pictures} came with the request.",
            hint="Pictures are counted from 0 and are sent as multipart/form-data, in the field `pictures`.",
        )
    return [*terms, *(QueryTerm(picture=number) for number in range(pictures) if number not in named)]


def _term(term: QueryTerm, pictures: Sequence[bytes], store: Catalogue, max_pixels: int) -> Term:
    if term.picture is not None:
        row = embed_upload(pictures[term.picture], store.encoder, max_pixels=max_pixels, threads=store.threads)
        return Term(kind="vector", value=row, weight=term.weight)
    if term.text is not None:
        return Term(kind="text", value=term.text, weight=term.weight)
    if term.item is not None:
        one(store, term.item)
        return Term(kind="item", value=term.item, weight=term.weight)
    return Term(kind="vector", value=np.array(term.vector, dtype=np.float64), weight=term.weight)


def _shown(term: QueryTerm) -> str:
    if term.text is not None:
        said = term.text
    elif term.item is not None:
        said = f"item {term.item}"
    else:
        said = "vector" if term.vector is not None else f"picture {term.picture}"
    return said if term.weight == 1 else f"{term.weight:g}*{said}"


def _expanded(store: Catalogue, query: Vectors, settings: Expansion, own: Sequence[int | None]) -> Vectors:
    first = search(store, query, k=settings.n, exclude=own)[0]
    rows = Neighbours.from_rows([(first.ids, first.scores)], store.metric)
    return expand_queries(store, query, rows, AlphaExpansion(n=settings.n, alpha=settings.alpha))


def _neighbours(store: Catalogue, query: Vectors, ids: Ids) -> list[Neighbour]:
    rows = store.vectors(ids)
    cosines, dots = pair_scores(query, rows, "cosine"), pair_scores(query, rows, "ip")
    told = zip(ids.tolist(), store.paths(ids), values(store, ids), thumbs(store, ids), strict=True)
    return [
        Neighbour(
            rank=place + 1,
            id=number,
            path=sendable(path),
            cosine=float(cosines[place]),
            dot=float(dots[place]),
            columns=columns,
            thumb=thumb,
        )
        for place, (number, path, columns, thumb) in enumerate(told)
    ]


def _notes(store: Catalogue, request: SearchRequest, found: int, searched: int, own: bool) -> list[str]:
    notes = []
    if found < request.k:
        left = " The item itself is not counted." if own else ""
        notes.append(f"{found} candidates instead of {request.k}: {searched} items pass the filter.{left}")
    info = store.index_info()
    if info is not None and info.overlap:
        notes.append(f"Searched through {info.kind}: overlap with exact search {info.overlap['value']:.3f} when built.")
    return notes


def _command(shop: Shop, request: SearchRequest, asked: Sequence[QueryTerm]) -> str | None:
    """Return the command for a text or an item with texts added and taken; others need a file the server has not."""
    first, rest = asked[0], asked[1:]
    if request.expand is not None or first.weight != 1 or any(term.text is None for term in rest):
        return None
    if first.text is None and first.item is None:
        return None
    words = [] if first.text is None else [first.text]
    options = {"item": first.item, "k": request.k, "where": request.where, "encoder": request.encoder}
    if request.rerank:
        options |= {"rerank": request.rerank, "pool": request.pool}
    base = command("search", shop.shown, *words, **options)
    added = [command("", **{"plus" if t.weight > 0 else "minus": f"{abs(t.weight):g}*{t.text}"}) for t in rest]
    return " ".join([base, *(each.removeprefix("lookalike '' ") for each in added)])
