"""k-reciprocal re-ranking of one pool of candidates (Zhong et al., CVPR 2017, section 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Ids, Scores, Vectors
from lookalike.catalogue.store import Candidate, Store
from lookalike.errors import InputError, InputTypeError, NonFiniteError, ShapeError
from lookalike.index.neighbours import Metric, Neighbours
from lookalike.rank.pools import reorder

DIGITS = 42
"""Distances are kept to so many binary digits of four times the largest square: a matrix product rounds one pair
differently by its place in the block, and exact duplicates must tie."""


@dataclass(frozen=True, kw_only=True)
class KReciprocal:
    """Settings of k-reciprocal re-ranking; the defaults are the paper's.

    Raises:
        InputError: k1 or k2 is no whole number of at least 1, k2 exceeds k1, or lambda_value is outside 0..1.

    >>> KReciprocal(k1=40, lambda_value=0.1)
    KReciprocal(k1=40, k2=6, lambda_value=0.1, strict_overlap=False)
    """

    k1: int = 20
    """Length of the lists the reciprocal sets are built from, the element itself not counted."""
    k2: int = 6
    """Entries averaged by the local query expansion, the element itself included; 1 switches it off."""
    lambda_value: float = 0.3
    """Share of the original distance in the final one: 0 is the Jaccard distance alone, 1 the original order."""
    strict_overlap: bool = False
    """True: an expansion needs more than two thirds of overlap, as in the widely copied script; the paper prints ≥."""

    def __post_init__(self) -> None:
        for name in ("k1", "k2"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name}={value!r} is no list length: give a whole number of at least 1.")
            object.__setattr__(self, name, int(value))
        if self.k2 > self.k1:
            raise InputError(f"k2={self.k2} exceeds k1={self.k1}: the expansion averages over a part of the k1 list.")
        value = self.lambda_value
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
            raise InputError(f"lambda_value={value!r} is outside 0..1: it is the original distance's share of the sum.")
        object.__setattr__(self, "lambda_value", float(value))


def pool_distances(distances: npt.ArrayLike, settings: KReciprocal | None = None) -> Scores:
    """Final distances of one probe to its candidates, from all distances among them.

    `distances` is (n + 1, n + 1), the probe first, in any unit: each row is divided by its largest entry. Values below
    zero are rounding and count as zero, and so does the diagonal. The result is (n,) float64 in [0, 1], in candidate
    order, lower is better.

    Raises:
        ShapeError: not square, or no candidate.
        NonFiniteError: NaN or infinity.

    An element is rank 0 of its own list whatever its duplicates; otherwise a row of features can sum to zero and its
    distances become NaN.

    >>> pool_distances([[0, 1, 4], [1, 0, 1], [4, 1, 0]], KReciprocal(k1=1, k2=1)).round(4).tolist()
    [0.3924, 1.0]
    """
    return np.asarray(joint_distances(distances, 1, settings)[0])


def joint_distances(distances: npt.ArrayLike, queries: int, settings: KReciprocal | None = None) -> Scores:
    """Final distances (q, n - q) of several queries to a gallery, all in one set, from the (n, n) distances among them.

    The queries stand first. Otherwise as `pool_distances`; from vectors, without the matrix: `rerank_gallery`.

    Raises:
        ShapeError: not square, or no query, or no gallery.
        NonFiniteError: NaN or infinity.
    """
    matrix = np.array(distances, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not 1 <= queries < len(matrix):
        raise ShapeError(
            f"distances must be (n, n), the {queries} probe(s) first and a candidate after, not {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        raise NonFiniteError("distances holds NaN or infinity.")
    np.maximum(matrix, 0.0, out=matrix)
    np.fill_diagonal(matrix, 0.0)
    return _final_distances(matrix, queries, settings or KReciprocal())


def _final_distances(matrix: Scores, queries: int, settings: KReciprocal) -> Scores:
    """Equations 3, 4, 7, 10, 11 and 12 on a checked matrix, with features kept as sparse rows."""
    from lookalike.rank import kernels

    n = len(matrix)
    k1 = min(settings.k1, n - 1)
    scale = matrix.max(axis=1)
    scale[scale == 0] = 1.0
    edges = np.partition(matrix.astype(np.float32), k1, axis=1)[:, k1]  # half the width, twice the speed
    lists = kernels.nearest_lists(matrix, np.nextafter(edges, np.float32(np.inf)), k1 + 1)
    offsets, columns = kernels.expanded_sets(lists, round(k1 / 2) + 1, settings.strict_overlap)
    weights = kernels.gaussian_weights(offsets, columns, matrix, scale)
    averaged = lists[:, : min(settings.k2, k1)].copy()
    shared = kernels.shared_with(averaged, offsets, columns, weights, queries)
    original = matrix[:queries, queries:] / scale[:queries, None]
    return mix(jaccard(shared), original, settings.lambda_value)


def jaccard(shared: Scores) -> Scores:
    """Eq. 10 from the sums of minima of rows that each sum to 1: the sum of maxima is 2 less that of the minima."""
    return np.asarray(1.0 - shared / (2.0 - shared))


def mix(jaccard_distances: Scores, original: Scores, lambda_value: float) -> Scores:
    """Eq. 12, held to [0, 1] against rounding."""
    final = (1.0 - lambda_value) * jaccard_distances + lambda_value * original
    return np.asarray(np.clip(final, 0.0, 1.0))


def candidate_distances(scores: Scores, vectors: Vectors, metric: Metric) -> Scores:
    """Lay out the distances of a probe and its candidates, (n + 1, n + 1), the probe first.

    `scores` are the probe's own, in the metric's direction. `l2`: squared distances. `cosine`: 2 - 2s, the squared
    distance of the unit vectors. `ip`: c - s with c the largest product in the pool, each vector's product with itself
    included, so that lists rank by inner product and unit vectors give half the cosine distance; where the probe is
    much shorter than the candidates, no list holds it and the original order stays.
    """
    from lookalike.rank import kernels

    if metric == "l2":  # the mean changes no distance and takes the cancellation out of far-away clouds
        matrix = np.subtract(vectors, vectors.mean(axis=0, dtype=np.float64))
    else:
        matrix = vectors.astype(np.float64)
    if metric == "cosine":
        matrix /= np.sqrt(np.einsum("nd,nd->n", matrix, matrix))[:, None]
    products = matrix @ matrix.T
    squares = products.diagonal().copy()
    probe = 2.0 - 2.0 * scores if metric == "cosine" else scores
    if metric == "ip":
        largest = max(float(squares.max()), float(scores.max()))
        squares, probe = np.full(len(matrix), largest), 2.0 * (largest - scores)
    size = max(4.0 * float(squares.max()), float(probe.max()), np.finfo(np.float64).tiny)
    step = math.ldexp(1.0, math.frexp(size)[1] - DIGITS)
    return kernels.pool_matrix(products, squares, probe, step)


def pool_of_scores(scores: Scores, vectors: Vectors, metric: Metric, settings: KReciprocal) -> Scores:
    """Final distances (n,) of one pool from the probe's (n,) scores and the candidates' (n, d) vectors."""
    return np.asarray(_final_distances(candidate_distances(scores, vectors, metric), 1, settings)[0])


_NUMBERS = (int, float, np.number)
_candidate = partial(tuple.__new__, Candidate)  # half the time of the constructor, for hundreds a query


class KReciprocalReranker:
    """Re-order the candidates a store retrieved by how far their neighbourhoods agree with the probe's.

    Raises:
        InputTypeError: `store` keeps not the contract of a store.
        InputError: k1, k2 or lambda_value is refused (see `KReciprocal`).

    Neighbourhoods are built among the candidates, so a pool no larger than the answer leaves nothing to learn: retrieve
    at least k1 candidates and a few dozen more than `top_k`.
    """

    def __init__(
        self, store: Store, *, k1: int = 20, k2: int = 6, lambda_value: float = 0.3, strict_overlap: bool = False
    ) -> None:
        if not isinstance(store, Store):
            raise InputTypeError(
                f"store must be a Store, not {type(store).__name__}.",
                hint="Give a MemoryStore or a Catalogue: vectors are read back from it by id.",
            )
        self._store = store
        self._settings = KReciprocal(k1=k1, k2=k2, lambda_value=lambda_value, strict_overlap=strict_overlap)

    @property
    def store(self) -> Store:
        """The store the candidates' vectors are read back from."""
        return self._store

    @property
    def k1(self) -> int:
        """Length of the lists the reciprocal sets are built from."""
        return self._settings.k1

    @property
    def k2(self) -> int:
        """Entries averaged by the local query expansion."""
        return self._settings.k2

    @property
    def lambda_value(self) -> float:
        """Share of the original distance in the final one."""
        return self._settings.lambda_value

    @property
    def strict_overlap(self) -> bool:
        """Whether an expansion needs more than two thirds of overlap."""
        return self._settings.strict_overlap

    def __repr__(self) -> str:
        return f"KReciprocalReranker(k1={self.k1}, k2={self.k2}, lambda_value={self.lambda_value})"

    def rerank(self, candidates: Sequence[Candidate], top_k: int) -> list[Candidate]:
        """Return the best `top_k` of one query's candidates, scored by final distances in [0, 1], lower is better.

        The candidates' scores are taken as the probe's row, in the store's own metric. Equal final distances stay in
        candidate order; a `top_k` beyond the pool returns the whole pool.

        Raises:
            InputTypeError: an element is no `Candidate`.
            InputError: no candidates, a path twice or one the store does not hold, a score that is not finite, or a
                `top_k` that is no whole number of at least 1.
        """
        _check_top_k(top_k)
        scores = _checked_scores(candidates)
        vectors = self._store.vectors(self._store.ids_of([candidate.path for candidate in candidates]))
        with processors.blas(1):  # as in `pools.reorder`
            final = pool_of_scores(scores, vectors, self._store.metric, self._settings)
        order = np.argsort(final, kind="stable")[:top_k]
        paths = [candidates[i].path for i in order.tolist()]
        return list(map(_candidate, zip(paths, final[order].tolist(), strict=True)))


def rerank_k_reciprocal(
    store: Store, queries: Vectors, neighbours: Neighbours, settings: KReciprocal | None = None
) -> Neighbours:
    """Re-rank the retrieved neighbours of many queries, each in its own pool.

    Scores of the result are final distances in [0, 1], lower is better, so its metric reads `l2` whatever the store's;
    equal ones stay in retrieved order. `queries`, (q, d), is not read: the probe's row is its neighbours' scores.

    Raises:
        InputError: a store that does not hold one of the ids.
    """
    chosen = settings or KReciprocal()

    def score(_: Ids, scores: Scores, vectors: Vectors) -> Scores:
        return pool_of_scores(scores, vectors, neighbours.metric, chosen)

    return reorder(store, neighbours, score, "l2")


def _check_top_k(top_k: int) -> None:
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1:
        raise InputError(f"top_k={top_k!r} is no number of candidates: give a whole number of at least 1.")


def _checked_scores(candidates: Sequence[Candidate]) -> Scores:
    if len(candidates) == 0:
        raise InputError("There are no candidates to re-rank.", hint="Retrieve at least one first.")
    for candidate in candidates:
        if not isinstance(candidate, Candidate):
            raise InputTypeError(f"Each candidate must be a Candidate(path, score), not {type(candidate).__name__}.")
        if not isinstance(candidate.score, _NUMBERS) or not math.isfinite(candidate.score):
            raise InputError(f"The score of {candidate.path!r} is {candidate.score!r}; a finite number is needed.")
    paths, scores = zip(*candidates, strict=True)
    if len(set(paths)) < len(paths):
        twice = next(path for place, path in enumerate(paths) if path in paths[:place])
        raise InputError(f"The candidates hold {twice!r} twice; a pool holds each item once.")
    return np.array(scores, dtype=np.float64)
