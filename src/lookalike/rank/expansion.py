"""Alpha query expansion and database-side augmentation: a vector pulled towards its nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Scores, Vectors, as_vectors, unit
from lookalike.catalogue.store import Store
from lookalike.errors import InputError, ShapeError
from lookalike.index.exact import topk
from lookalike.index.neighbours import Neighbours
from lookalike.rank.pools import pools

_BLOCK = 1024


@dataclass(frozen=True, kw_only=True)
class AlphaExpansion:
    """Settings of alpha query expansion (Radenović et al., TPAMI 2018, section 4.3); alpha 0 is the plain average.

    Raises:
        InputError: n is no whole number of at least 1, or alpha is negative.
    """

    n: int = 10
    """Neighbours added to a query."""
    alpha: float = 3.0
    """Power of a neighbour's cosine in its weight: the higher, the less a distant neighbour counts."""

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer) or self.n < 1:
            raise InputError(f"n={self.n!r}: at least one neighbour must be added.")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 <= self.alpha < np.inf:
            raise InputError(f"alpha={self.alpha!r}: give a number of at least 0.")


def expanded(query: npt.ArrayLike, neighbours: npt.ArrayLike, alpha: float = 3.0) -> Scores:
    """Return unit(q + Σ wᵢ gᵢ), (d,) float64, of one (d,) query and its (n, d) nearest neighbours.

    All vectors are first scaled to length 1; wᵢ = max(sᵢ, 0)^α with sᵢ the cosine, so a neighbour at a right angle or
    beyond has no weight, also where α is 0. No neighbours leave the unit query.

    Raises:
        ShapeError: neighbours of another dimension.

    >>> expanded([1, 0], [[3, 4]], alpha=0).round(4).tolist()
    [0.8944, 0.4472]
    """
    q = np.asarray(query, dtype=np.float64)
    rows = (
        np.asarray(neighbours, dtype=np.float64).reshape(-1, q.size) if np.size(neighbours) else np.empty((0, q.size))
    )
    q = q / np.sqrt(q @ q)
    rows = rows / np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
    cosines = rows @ q
    weights = np.where(cosines > 0, np.maximum(cosines, 0.0) ** alpha, 0.0)
    total = q + weights @ rows
    return np.asarray(total / np.sqrt(total @ total))


def expand_queries(
    store: Store, queries: Vectors, neighbours: Neighbours, settings: AlphaExpansion | None = None
) -> Vectors:
    """Return (q, d) float32 unit queries expanded by the first n of their retrieved neighbours; search again with them.

    A query with fewer neighbours is expanded by those it has. The neighbours must not hold the query itself, or it
    counts twice: retrieve with the query excluded.

    Raises:
        ShapeError: not one query a row of neighbours.
        NonFiniteError: a query of length zero.
    """
    chosen = settings or AlphaExpansion()
    rows = unit(as_vectors(queries, name="queries", dim=store.dim), name="queries")
    if len(rows) != len(neighbours):
        raise ShapeError(f"There are {len(rows)} queries for {len(neighbours)} rows of neighbours.")
    heads = Neighbours.from_rows(
        [(ids[: chosen.n], scores[: chosen.n]) for ids, scores in neighbours], neighbours.metric
    )
    out = np.empty_like(rows)
    for row, (_, _, vectors) in enumerate(pools(store, heads)):
        out[row] = expanded(queries[row], vectors, chosen.alpha)
    return out


def augment(vectors: npt.ArrayLike, settings: AlphaExpansion | None = None, *, threads: int | None = None) -> Vectors:
    """Database-side augmentation: every row of (n, d) expanded by its nearest other rows, (n, d) float32 unit rows.

    Neighbours are exact and by cosine. A row does not count among its own neighbours; exact duplicates of it do.

    Raises:
        NonFiniteError: NaN, infinity or a row of length zero.
    """
    chosen = settings or AlphaExpansion()
    rows = unit(as_vectors(vectors))
    out = np.empty_like(rows)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        itself = [np.array([start + row]) for row in range(len(block))]
        found = topk(block, rows, chosen.n, metric="cosine", exclude=itself, threads=threads)
        for row, (ids, _) in enumerate(found):
            out[start + row] = expanded(block[row], rows[ids], chosen.alpha)
    return out
