"""Re-ranking as message passing on the graph of nearest neighbours, with sparse matrices.

Zhang et al., "Understanding Image Retrieval Re-Ranking: A Graph Neural Network Perspective" (2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Scores, Vectors, as_vectors, unit
from lookalike.catalogue.store import Store
from lookalike.errors import CutOffError, InputError, ShapeError
from lookalike.index.exact import topk
from lookalike.index.neighbours import Neighbours
from lookalike.rank.lists import RankingLists, ranking_lists, space
from lookalike.rank.pools import members, pools

_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class MessagePassing:
    """Settings of graph re-ranking; the defaults are the paper's for Market-1501.

    Raises:
        InputError: k1, k2 or layers is no whole number of at least 1, k2 exceeds k1, or alpha is negative.
    """

    k1: int = 26
    """Entries of a ranking list that are edges, the element itself included."""
    k2: int = 7
    """Entries whose messages an element takes in, itself included."""
    alpha: float = 2.0
    """Power of the cosine in the weight of a message."""
    layers: int = 2

    def __post_init__(self) -> None:
        for name in ("k1", "k2", "layers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name}={value!r}: give a whole number of at least 1.")
        if self.k2 > self.k1:
            raise InputError(f"k2={self.k2} exceeds k1={self.k1}: messages come along the edges of the k1 list.")
        if not 0 <= self.alpha < np.inf:
            raise InputError(f"alpha={self.alpha!r}: give a number of at least 0.")


def rerank_messages(
    store: Store, queries: Vectors, neighbours: Neighbours, settings: MessagePassing | None = None
) -> Neighbours:
    """Re-rank retrieved neighbours, each query in the graph of its own pool.

    Scores are cosines of the propagated features in [0, 1], higher is better; equal ones, among them all without a
    common edge, stay in retrieved order. Vectors are compared by cosine whatever the store's metric.

    Raises:
        ShapeError: not one query a row of neighbours.
    """
    chosen = settings or MessagePassing()
    rows = _queries(store, queries, neighbours)
    answers: list[tuple[Ids, Scores]] = []
    for row, (ids, _, vectors) in enumerate(pools(store, neighbours)):
        if not len(ids):
            answers.append((ids, np.empty(0)))
            continue
        features = propagated(np.concatenate([rows[row : row + 1], vectors]), chosen)
        scores = (features[:1] @ features[1:].T).toarray()[0].clip(0.0, 1.0)
        order = np.argsort(-scores, kind="stable")
        answers.append((ids[order], scores[order]))
    return Neighbours.from_rows(answers, "cosine")


def rerank_messages_on_gallery(
    store: Store,
    queries: Vectors,
    neighbours: Neighbours,
    settings: MessagePassing | None = None,
    *,
    own: Ids | None = None,
) -> Neighbours:
    """Re-rank retrieved neighbours in one graph of all queries and the whole gallery; nothing else is found.

    `own`, (q,), names the item of the store that a query is, or -1: such a query joins the graph once, as that item.

    Raises:
        ShapeError: not one query a row of neighbours.
        InputError: a neighbour or an own item the store does not hold.
    """
    rows = _queries(store, queries, neighbours)
    ids = store.ids()
    at, guests = members(own, ids, len(rows))
    at = np.where(at >= 0, at + len(guests), np.cumsum(at < 0) - 1)  # the guests stand first, in their order
    features = propagated(np.concatenate([rows[guests], store.vectors(ids)]), settings or MessagePassing())
    gallery = features[len(guests) :]
    if not np.isin(neighbours.ids, ids).all():
        raise InputError("The store lacks some of the neighbours.", hint="Retrieve them from the store as it is now.")
    answers: list[tuple[Ids, Scores]] = []
    for row, (found, _) in zip(at.tolist(), neighbours, strict=True):
        scores = (features[row : row + 1] @ gallery[np.searchsorted(ids, found)].T).toarray()[0].clip(0.0, 1.0)
        order = np.argsort(-scores, kind="stable")
        answers.append((found[order], scores[order]))
    return Neighbours.from_rows(answers, "cosine")


def rerank_gallery_messages(
    queries: npt.ArrayLike,
    gallery: npt.ArrayLike,
    k: int,
    *,
    settings: MessagePassing | None = None,
    threads: int | None = 1,
) -> Neighbours:
    """Rank the gallery for every query in one graph of queries and gallery together.

    (q, d) and (g, d) in; ids of the result are gallery rows, scores cosines of propagated features, higher is better.
    Items without a common edge score 0 and follow in plain cosine order.

    Raises:
        InputError: vectors are refused.
        CutOffError: k below 1.
    """
    g = as_vectors(gallery, name="gallery")
    q = as_vectors(queries, name="queries", dim=g.shape[1])
    if k < 1:
        raise CutOffError(k, len(g))
    features = propagated(np.concatenate([q, g]), settings or MessagePassing(), threads=threads)
    from lookalike.rank import gallery_kernels

    index = features[len(q) :].T.tocsr()
    answers: list[tuple[Ids, Scores]] = []
    for start in range(0, len(q), _BLOCK):
        stop = min(start + _BLOCK, len(q))
        plain = topk(q[start:stop], g, k, metric="cosine", threads=threads)
        part = features[start:stop]
        tile = np.zeros((stop - start, len(g)), np.float32)
        gallery_kernels.dot_tile(part.indptr, part.indices, part.data, index.indptr, index.indices, index.data, tile)
        answers.extend(_best(tile[row], plain[row][0], k) for row in range(len(tile)))
    return Neighbours.from_rows(answers, "cosine")


def propagated(vectors: Vectors, settings: MessagePassing, *, threads: int | None = 1) -> Any:
    """Return the (n, n) sparse unit rows of features after all layers, a scipy CSR array.

    The adjacency of the k1 lists is made symmetric before every layer, and an element takes in its k2 nearest
    (itself among them) weighted by max(cosine, 0)^alpha.
    """
    points = space(vectors, "cosine")
    return _propagated(ranking_lists(points, settings.k1, threads=threads), settings)


def _propagated(lists: RankingLists, settings: MessagePassing) -> Any:
    from scipy import sparse

    n, count = lists.names.shape
    k2 = min(settings.k2, count)
    ones = np.ones(n * count, np.float32)
    features = sparse.csr_array((ones, lists.names.ravel(), np.arange(n + 1) * count), shape=(n, n))
    weights = np.maximum(1.0 - lists.distances[:, :k2] / 2.0, 0.0) ** settings.alpha
    messages = sparse.csr_array(
        (weights.astype(np.float32).ravel(), lists.names[:, :k2].ravel(), np.arange(n + 1) * k2), shape=(n, n)
    )
    for _ in range(settings.layers if settings.k2 > 1 else 0):
        features = messages @ (features + features.T).tocsr()
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
        features.data /= np.repeat(lengths, np.diff(features.indptr)).astype(np.float32)
    if settings.k2 == 1:  # no messages: cosines of the bare adjacency rows
        features.data /= np.float32(np.sqrt(count))
    features.sort_indices()
    return features


def _best(similarities: npt.NDArray[np.float32], plain: Ids, k: int) -> tuple[Ids, Scores]:
    names = np.flatnonzero(similarities)
    if len(names) > k:  # sort only what can be among the first k, ties at its end included
        names = names[similarities[names] >= np.partition(similarities, len(similarities) - k)[-k]]
    ids = names[np.lexsort((names, -similarities[names]))[:k]]
    rest = plain[~np.isin(plain, ids)][: k - len(ids)]
    scores = similarities[ids].astype(np.float64).clip(0.0, 1.0)
    return np.concatenate([ids, rest]), np.concatenate([scores, np.zeros(len(rest))])


def _queries(store: Store, queries: Vectors, neighbours: Neighbours) -> Vectors:
    if len(queries) != len(neighbours):
        raise ShapeError(f"There are {len(queries)} queries for {len(neighbours)} rows of neighbours.")
    return unit(as_vectors(queries, name="queries", dim=store.dim), name="queries")
