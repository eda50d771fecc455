"""The answer of every index, and the metrics it can be asked in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.errors import UnknownNameError

Metric: TypeAlias = Literal["cosine", "ip", "l2"]
"""`cosine` and `ip` (inner product): higher is better. `l2`: squared Euclidean distance, lower is better."""
METRICS: tuple[Metric, ...] = get_args(Metric)


def check_metric(name: str) -> Metric:
    """Return the metric of that name, or raise UnknownNameError with the right spellings."""
    for metric in METRICS:
        if metric == name:
            return metric
    raise UnknownNameError("metric", name, METRICS)


def higher_is_better(metric: Metric) -> bool:
    """Return the direction of a metric's scores."""
    return metric != "l2"


@dataclass(frozen=True)
class Neighbours:
    """Ranked neighbours of q queries, ragged: a query with fewer than k answers has a shorter row, never padding.

    Row i is `ids[offsets[i]:offsets[i + 1]]` with its scores, best first, equal scores in id order.
    """

    ids: Ids
    """(total,) int64."""
    scores: Scores
    """(total,) float64 in the metric's own direction."""
    offsets: Ids
    """(q + 1,) int64, from 0 to total."""
    metric: Metric

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> tuple[Ids, Scores]:
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        start, stop = self.offsets[row], self.offsets[row + 1]
        return self.ids[start:stop], self.scores[start:stop]

    def __iter__(self) -> Iterator[tuple[Ids, Scores]]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> Ids:
        """(q,) number of answers of each query."""
        return np.diff(self.offsets)

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[Ids, Scores]], metric: Metric) -> Neighbours:
        """Join one (ids, scores) pair a query."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(ids) for ids, _ in rows], out=offsets[1:])
        ids = np.concatenate([ids for ids, _ in rows]) if rows else np.empty(0, np.int64)
        scores = np.concatenate([scores for _, scores in rows]) if rows else np.empty(0, np.float64)
        return cls(ids.astype(np.int64), scores.astype(np.float64), offsets, metric)


def pair_scores(query: Vectors, items: Vectors, metric: Metric) -> Scores:
    """Score (d,) against (n, d) in float64, each pair alone: the same pair gives the same bits in any company.

    Cosine is dot / (|a| |b|), so rows need not be of unit length.
    """
    a, b = query.astype(np.float64), items.astype(np.float64)
    if metric == "l2":
        return np.asarray(np.einsum("nd,nd->n", b - a, b - a))
    dots = np.einsum("d,nd->n", a, b)
    if metric == "ip":
        return np.asarray(dots)
    norms = np.sqrt(np.einsum("d,d->", a, a)) * np.sqrt(np.einsum("nd,nd->n", b, b))
    return np.asarray(dots / norms)
