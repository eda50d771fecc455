"""Join the rankings of several encoders, or of several queries for one thing, into one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from lookalike.arrays import Ids, Scores
from lookalike.errors import InputError, ShapeError, UnknownNameError
from lookalike.index.neighbours import Neighbours, higher_is_better

Scale: TypeAlias = Literal["min-max", "z-score"]


@dataclass(frozen=True, kw_only=True)
class RankFusion:
    """Settings of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009; its constant is 60).

    Raises:
        InputError: a constant that is not above 0, or a weight that is not a finite number of at least 0.
    """

    constant: float = 60.0
    """The larger, the less the very first ranks stand out."""
    weights: tuple[float, ...] | None = None
    """One a ranking; None: all 1."""

    def __post_init__(self) -> None:
        if not 0 < self.constant < np.inf:
            raise InputError(f"constant={self.constant!r}: give a number above 0.")
        _check_weights(self.weights)


@dataclass(frozen=True, kw_only=True)
class ScoreFusion:
    """Settings of score fusion: each ranking's scores brought to one scale a query, then summed with weights.

    `min-max` maps a query's own scores to 0..1; `z-score` to mean 0 and deviation 1. An item a ranking lacks counts as
    that ranking's worst.

    Raises:
        UnknownNameError: a scale in no table.
        InputError: a weight that is not a finite number of at least 0.
    """

    scale: Scale = "min-max"
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise UnknownNameError("score scale", self.scale, SCALES)
        _check_weights(self.weights)


def fuse_ranks(rankings: Sequence[Neighbours], settings: RankFusion | None = None) -> Neighbours:
    """Order each query's items by Σ wᵣ / (constant + rank in ranking r), ranks from 1; an item a ranking lacks adds 0.

    Ids must name the same items in all rankings. Higher is better (its metric reads `ip`), equal sums in id order.

    Raises:
        InputError: no rankings, or not one weight a ranking.
        ShapeError: rankings of different numbers of queries.

    >>> one = Neighbours.from_rows([(np.array([7, 8]), np.array([0.9, 0.8]))], "cosine")
    >>> two = Neighbours.from_rows([(np.array([8, 9]), np.array([0.1, 0.5]))], "l2")
    >>> [(ids.tolist(), scores.round(5).tolist()) for ids, scores in fuse_ranks([one, two])]
    [([8, 7, 9], [0.03252, 0.01639, 0.01613])]
    """
    chosen = settings or RankFusion()

    def points(ranking: Neighbours, row: int) -> tuple[Scores, float]:
        return 1.0 / (chosen.constant + np.arange(1.0, len(ranking[row][0]) + 1)), 0.0

    return _fused(rankings, chosen.weights, points)


def fuse_scores(rankings: Sequence[Neighbours], settings: ScoreFusion | None = None) -> Neighbours:
    """Order each query's items by the weighted sum of their scores, each ranking brought to one scale first.

    Ids must name the same items in all rankings. Directions are followed: a small squared distance counts as a large
    score. Higher is better in the result (its metric reads `ip`), equal sums in id order.

    Raises:
        InputError: no rankings, or not one weight a ranking.
        ShapeError: rankings of different numbers of queries.

    >>> one = Neighbours.from_rows([(np.array([7, 8, 9]), np.array([0.9, 0.8, 0.1]))], "cosine")
    >>> two = Neighbours.from_rows([(np.array([8, 7, 9]), np.array([0.0, 3.0, 4.0]))], "l2")
    >>> [(ids.tolist(), scores.tolist()) for ids, scores in fuse_scores([one, two])]
    [([8, 7, 9], [1.875, 1.25, 0.0])]
    """
    chosen = settings or ScoreFusion()

    def points(ranking: Neighbours, row: int) -> tuple[Scores, float]:
        scores = ranking[row][1]
        if not len(scores):
            return scores, 0.0
        scaled = SCALES[chosen.scale](scores if higher_is_better(ranking.metric) else -scores)
        return scaled, float(scaled.min())

    return _fused(rankings, chosen.weights, points)


def _min_max(scores: Scores) -> Scores:
    span = float(scores.max() - scores.min())
    return np.asarray((scores - scores.min()) / span) if span > 0 else np.zeros(len(scores))


def _z_score(scores: Scores) -> Scores:
    spread = float(scores.std())
    return np.asarray((scores - scores.mean()) / spread) if spread > 0 else np.zeros(len(scores))


SCALES: dict[Scale, Callable[[Scores], Scores]] = {"min-max": _min_max, "z-score": _z_score}


def _fused(
    rankings: Sequence[Neighbours],
    weights: tuple[float, ...] | None,
    points: Callable[[Neighbours, int], tuple[Scores, float]],
) -> Neighbours:
    """Sum what `points` gives each item (and what it gives a missing one) over the rankings, query by query."""
    if not rankings:
        raise InputError("There is no ranking to fuse.")
    if weights is not None and len(weights) != len(rankings):
        raise InputError(f"There are {len(weights)} weights for {len(rankings)} rankings; one each is needed.")
    lengths = {len(ranking) for ranking in rankings}
    if len(lengths) > 1:
        raise ShapeError(f"Rankings to fuse must answer the same queries; they have {sorted(lengths)}.")
    rows: list[tuple[Ids, Scores]] = []
    for row in range(len(rankings[0])):
        ids = np.unique(np.concatenate([ranking[row][0] for ranking in rankings]))
        total = np.zeros(len(ids))
        for position, ranking in enumerate(rankings):
            given, missing = points(ranking, row)
            part = np.full(len(ids), missing)
            part[np.searchsorted(ids, ranking[row][0])] = given
            total += part * (1.0 if weights is None else weights[position])
        order = np.lexsort((ids, -total))
        rows.append((ids[order], total[order]))
    return Neighbours.from_rows(rows, "ip")


def _check_weights(weights: tuple[float, ...] | None) -> None:
    if weights is None:
        return
    if not all(isinstance(weight, int | float) and 0 <= weight < np.inf for weight in weights) or not any(weights):
        raise InputError(f"weights={weights!r}: give finite numbers of at least 0, not all of them 0.")


@dataclass(frozen=True)
class FuseStage:
    """A way to fuse rankings of equal weight."""

    name: str
    run: Callable[[Sequence[Neighbours]], Neighbours]

    def __call__(self, rankings: Sequence[Neighbours]) -> Neighbours:
        """Return one ranking of all items, higher is better."""
        return self.run(rankings)

    def __str__(self) -> str:
        return self.name


FUSIONS: Mapping[str, FuseStage] = {
    stage.name: stage
    for stage in (
        FuseStage("rrf", fuse_ranks),
        FuseStage("min-max", partial(fuse_scores, settings=ScoreFusion(scale="min-max"))),
        FuseStage("z-score", partial(fuse_scores, settings=ScoreFusion(scale="z-score"))),
    )
}
"""By the name the command line knows it under."""
