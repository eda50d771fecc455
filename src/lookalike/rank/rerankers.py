"""The table of re-rankers that need vectors only: name, settings and function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue.store import Store
from lookalike.errors import UnknownNameError
from lookalike.index.neighbours import Neighbours
from lookalike.rank.kreciprocal import KReciprocal, rerank_k_reciprocal
from lookalike.rank.kreciprocal_gallery import rerank_jointly
from lookalike.rank.message_passing import MessagePassing, rerank_messages, rerank_messages_on_gallery
from lookalike.rank.online import rerank_on_graph

Scope: TypeAlias = Literal["pool", "gallery", "joint"]


@dataclass(frozen=True)
class Reranker:
    """One way to re-rank: `run(store, queries, neighbours, settings)` re-orders each query's retrieved neighbours.

    It finds nothing new and loses nothing. The order is that of the result's rows; equal scores stay in retrieved
    order, so do not sort them again. `metric` of the result tells the direction (`l2`: lower is better).
    """

    settings: type[Any]
    """A frozen dataclass that checks itself; its defaults are the method's."""
    run: Callable[..., Neighbours]
    """Those of scope `gallery` and `joint` also take `own`: (q,) the item of the store that a query is, or -1."""
    scope: Scope
    """What a query's neighbourhoods are built from: `pool`, `gallery` (as it is) or `joint` (gallery and queries)."""
    summary: str

    def rerank(
        self, store: Store, queries: Vectors, neighbours: Neighbours, settings: Any, own: Ids | None = None
    ) -> Neighbours:
        """Re-order; `own` matters where a query is an item of the store, which a set of both must hold once."""
        if self.scope == "pool":
            return self.run(store, queries, neighbours, settings)
        return self.run(store, queries, neighbours, settings, own=own)


RERANKERS: Mapping[str, Reranker] = {
    "k-reciprocal": Reranker(
        KReciprocal, rerank_k_reciprocal, "pool", "k-reciprocal encoding among a query's own candidates"
    ),
    "k-reciprocal-graph": Reranker(
        KReciprocal, rerank_on_graph, "gallery", "k-reciprocal encoding against the neighbourhoods of the whole gallery"
    ),
    "k-reciprocal-gallery": Reranker(
        KReciprocal,
        rerank_jointly,
        "joint",
        "k-reciprocal encoding of all queries and the gallery together, as in the paper",
    ),
    "message-passing": Reranker(
        MessagePassing, rerank_messages, "pool", "graph neural re-ranking among a query's own candidates"
    ),
    "message-passing-gallery": Reranker(
        MessagePassing,
        rerank_messages_on_gallery,
        "joint",
        "graph neural re-ranking of all queries and the gallery together",
    ),
}
"""Every re-ranker of vectors; a new one is a line here. Geometric verification needs pictures: `rank.verification`."""


def reranker(name: str) -> Reranker:
    """Return the re-ranker of that name.

    Raises:
        UnknownNameError: no such re-ranker; the right spellings are listed.

    >>> reranker("k-reciprocal").settings()
    KReciprocal(k1=20, k2=6, lambda_value=0.3, strict_overlap=False)
    """
    if name not in RERANKERS:
        raise UnknownNameError("re-ranker", name, RERANKERS)
    return RERANKERS[name]
