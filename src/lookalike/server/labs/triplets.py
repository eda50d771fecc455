"""Lab 2: triplets of the catalogue, worked out as training does."""

from __future__ import annotations

import numpy as np

from lookalike.arrays import Ids, factorise, unit
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import InputError
from lookalike.index.neighbours import pair_scores
from lookalike.server.items import label_column, labels, one, sendable, thumbs
from lookalike.server.schemas.labs import (
    HardRow,
    TripletAnswer,
    TripletBatch,
    TripletBatchRequest,
    TripletCorner,
    TripletRequest,
    TripletSide,
    TripletVerdict,
)
from lookalike.server.shop import Shop
from lookalike.train import triplets


def one_triplet(shop: Shop, request: TripletRequest) -> TripletAnswer:
    """Work out one triplet, of three items or of two cosines.

    Raises:
        RefusedError: an item that is not there (404).
    """
    third, named, warning = None, None, None
    if request.anchor is not None:
        store = shop.store(request.encoder)
        numbers = [request.anchor, request.positive, request.negative]
        ids = np.concatenate([one(store, int(number or 0)) for number in numbers])
        positive, negative, third = _cosines(store, ids)
        named, warning = _labels(store, ids)
    else:
        positive, negative = float(request.cos_positive or 0.0), float(request.cos_negative or 0.0)
    made = triplets.triplet(positive, negative, margin=request.margin)
    return TripletAnswer(
        margin=made.margin,
        positive=_side(positive),
        negative=_side(negative),
        third=None if third is None else _side(third),
        plain=TripletVerdict(loss=made.loss_plain, kind=made.kind_plain),
        squared=TripletVerdict(loss=made.loss_squared, kind=made.kind_squared),
        labels=named,
        warning=warning,
        command=f"python -c 'from lookalike.train.triplets import triplet; "
        f"print(triplet({positive:.17g}, {negative:.17g}, margin={request.margin:g}))'",
    )


def whole_batch(shop: Shop, request: TripletBatchRequest) -> TripletBatch:
    """Add up all valid triplets of a batch and return its hardest rows.

    Raises:
        UnknownNameError: no such column.
        InputError: fewer than two classes of two items.
    """
    store = shop.store(request.encoder)
    ids = _drawn(store, request) if request.ids is None else np.concatenate([one(store, n) for n in request.ids])
    names = labels(store, ids, request.column)
    codes = factorise(names)[0]
    vectors = store.vectors(ids)
    matrix = triplets.distances(vectors, squared=request.squared)
    summary = triplets.batch_of(matrix, codes, margin=request.margin, squared=request.squared)
    worst = triplets.hardest(matrix, codes, margin=request.margin, top=request.top)
    corners = [
        TripletCorner(id=number, path=sendable(path), label=label, thumb=thumb)
        for number, path, label, thumb in zip(ids.tolist(), store.paths(ids), names, thumbs(store, ids), strict=True)
    ]
    return TripletBatch(
        items=summary.items, classes=len(set(codes[codes >= 0].tolist())), triplets=summary.triplets, easy=summary.easy,
        semi_hard=summary.semi_hard, hard=summary.hard, open_share=summary.open_share, loss_mean=summary.loss_mean,
        loss_open=summary.loss_open, positive_mean=_finite(summary.positive_mean),
        negative_mean=_finite(summary.negative_mean), collapsed=summary.collapsed, margin=request.margin,
        squared=request.squared,
        hardest=[
            HardRow(
                anchor=corners[row.row], positive=corners[row.worst_pair[0]], negative=corners[row.worst_pair[1]],
                worst=row.worst, easy=row.counts[0], semi_hard=row.counts[1], hard=row.counts[2],
            )
            for row in worst
        ],
        note="An anchor that stands out is often a wrong label: look at the pictures.",
    )  # fmt: skip


def _drawn(store: Catalogue, request: TripletBatchRequest) -> Ids:
    """Draw P classes with K items each, by the seed."""
    ids = store.ids(where=request.where)
    codes = factorise(labels(store, ids, request.column))[0]
    sizes = np.bincount(codes[codes >= 0]) if (codes >= 0).any() else np.empty(0, np.int64)
    usable = np.flatnonzero(sizes >= 2)
    if len(usable) < 2:
        raise InputError(
            f"Column {request.column!r} has {len(usable)} values that two items share; a triplet needs two of them.",
            hint="Choose another column, or a wider filter.",
        )
    rng = np.random.default_rng(request.seed)
    chosen = np.sort(rng.choice(usable, min(request.classes, len(usable)), replace=False))
    rows = [np.flatnonzero(codes == code) for code in chosen]
    drawn = [np.sort(rng.choice(row, min(request.per_class, len(row)), replace=False)) for row in rows]
    return np.asarray(ids[np.concatenate(drawn)])


def _cosines(store: Catalogue, ids: Ids) -> tuple[float, float, float]:
    rows = unit(store.vectors(ids))
    both = pair_scores(rows[0], rows[1:], "cosine")
    across = pair_scores(rows[1], rows[2:], "cosine")
    positive, negative, third = (min(1.0, max(-1.0, float(value))) for value in (*both, *across))
    return positive, negative, third


def _labels(store: Catalogue, ids: Ids) -> tuple[list[str | None] | None, str | None]:
    """Return the labels of the three, and a warning where they say that this is no triplet."""
    if len(set(ids.tolist())) < 3:
        return None, "The three are not three different items."
    column = label_column(store)
    if column is None:
        return None, None
    anchor, positive, negative = labels(store, ids, column)
    warning = None
    if anchor is not None and positive is not None and anchor != positive:
        warning = f"The positive is {positive!r} and the anchor {anchor!r}: no positive by column {column!r}."
    elif anchor is not None and anchor == negative:
        warning = f"The negative is {negative!r} as well: no negative by column {column!r}."
    return [anchor, positive, negative], warning


def _side(cosine: float) -> TripletSide:
    squared = 2 - 2 * cosine
    return TripletSide(cosine=cosine, squared=squared, plain=squared**0.5)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
