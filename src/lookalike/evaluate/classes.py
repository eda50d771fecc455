"""Results class by class: where an average hides the classes that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Scores
from lookalike.evaluate.metrics import mean


@dataclass(frozen=True, kw_only=True)
class ClassResult:
    """The queries of one class: how many, how many of them evaluated, and the mean of each metric over those."""

    label: str
    num_queries: int
    num_evaluated: int
    metrics: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, None where nothing was evaluated."""
        metrics = {name: float(value) if np.isfinite(value) else None for name, value in self.metrics.items()}
        return {
            "label": self.label, "num_queries": self.num_queries, "num_evaluated": self.num_evaluated,
            "metrics": metrics,
        }  # fmt: skip


def by_class(per_query: Mapping[str, Scores], classes: Sequence[Sequence[str]]) -> tuple[ClassResult, ...]:
    """Average (q,) values of each metric over the queries of each class, classes in alphabetical order.

    `classes` holds the labels of each query: one, several (it counts under each) or none.

    >>> [(row.label, row.metrics["recall@1"]) for row in by_class(
    ...     {"recall@1": np.array([1.0, 0.0, np.nan])}, [["cat"], ["cat", "pet"], ["dog"]])]
    [('cat', 0.5), ('dog', nan), ('pet', 0.0)]
    """
    rows = np.repeat(np.arange(len(classes)), [len(labels) for labels in classes])
    named = np.array([label for labels in classes for label in labels], dtype=object)
    if not rows.size:
        return ()
    labels, codes = np.unique(named.astype(str), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    members = np.split(rows[order], np.cumsum(np.bincount(codes))[:-1])
    return tuple(
        ClassResult(
            label=str(label),
            num_queries=len(queries),
            num_evaluated=_evaluated(per_query, queries.tolist()),
            metrics={name: mean(values[queries]) for name, values in per_query.items()},
        )
        for label, queries in zip(labels, members, strict=True)
    )


def worst(classes: Sequence[ClassResult], metric: str) -> list[ClassResult]:
    """Order the classes that were evaluated by a metric, worst first; equal ones by size, then by name."""
    known = [row for row in classes if row.num_evaluated]
    return sorted(known, key=lambda row: (row.metrics[metric], -row.num_evaluated, row.label))


def _evaluated(per_query: Mapping[str, Scores], queries: list[int]) -> int:
    values = next(iter(per_query.values()), np.empty(0))
    return int((~np.isnan(values[queries])).sum()) if values.size else 0
