"""The result of one run: numbers with their definitions, counts and intervals."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.embed.encoder import Card
from lookalike.evaluate.classes import ClassResult
from lookalike.evaluate.evidence import Evidence
from lookalike.evaluate.paired import Compared
from lookalike.evaluate.protocol import RECALL_DEFINITION, Protocol
from lookalike.images.load import Failure

MOST_CLASSES = 1_000
"""Classes listed in the JSON; a saved run has all of them in per_class.csv."""
CURVE_DEPTH = 100
"""Ranks at which the curve of recall@K is given."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was measured, under which protocol, how sure it is and what to do next.

    `metrics` maps a name to the mean over evaluated queries, NaN where none was evaluated; `per_query` maps the same
    names to (q,) values, NaN for a query left out.
    """

    num_queries: int
    num_evaluated: int
    excluded: Mapping[str, int]
    num_gallery: int
    embedding_dim: int
    metrics: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    protocol: Protocol
    encoder: Card | None
    index: Mapping[str, Any]
    timings: Mapping[str, float]
    diagnosis: tuple[str, ...]
    warnings: tuple[str, ...]
    failed: tuple[Failure, ...] = ()
    leaks: Mapping[str, Any] | None = None
    query_names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """(q,) the group each query is resampled with, where one was declared."""
    per_query: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict, repr=False)
    first_ranks: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)
    """(q,) rank of the first right answer: infinite where none was retrieved, NaN where not evaluated."""
    precision_curve: tuple[float, ...] = field(default=(), repr=False)
    """Interpolated precision at recall 0, 0.01, … 1; empty where not all ranks were counted."""
    class_column: str | None = None
    classes: tuple[ClassResult, ...] = field(default=(), repr=False)
    folds: tuple[Report, ...] = field(default=(), repr=False)
    """The report of each fold, where the queries were dealt into folds."""
    evidence: tuple[Evidence, ...] = field(default=(), repr=False, compare=False)
    """What a saved run is made from besides numbers: one part, or one a fold, in the order of the queries."""
    trec: Mapping[str, Any] | None = None
    """What run.trec and qrels.trec hold, where they were written."""
    command: str | None = None
    """The command line that made this report."""
    versions: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None
    plain: Report | None = None
    """The same run without its stages (query expansion, re-ranking); None where it had none."""
    paired: Mapping[str, Compared] = field(default_factory=dict)
    """What the stages changed, query by query: metric to difference, interval and p."""

    @property
    def recall(self) -> dict[int, float]:
        """Recall@K by K."""
        return {k: self.metrics[f"recall@{k}"] for k in self.protocol.ks}

    @property
    def headlines(self) -> list[str]:
        """The names of recall at each K of the protocol."""
        return [f"recall@{k}" for k in self.protocol.ks]

    def recall_curve(self, depth: int = CURVE_DEPTH) -> npt.NDArray[np.float64]:
        """(min(depth, gallery),) recall@1, recall@2, …; NaN where nothing was evaluated."""
        first = self.first_ranks[~np.isnan(self.first_ranks)]
        deepest = max(1, min(depth, self.num_gallery))
        if not first.size:
            return np.full(deepest, np.nan)
        found = np.bincount(first[first <= deepest].astype(np.int64), minlength=deepest + 1)
        return np.asarray(np.cumsum(found[1:]) / first.size)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract: plain values, None where a number does not exist."""
        staged: dict[str, Any] = {}
        if self.plain is not None:
            paired = {name: dataclasses.asdict(row) for name, row in self.paired.items()}
            staged = {"plain": self.plain.to_dict(), "paired": paired}
        if self.folds:
            staged["folds"] = fold_table(self.folds)
        return {
            "num_queries": self.num_queries,
            "num_evaluated": self.num_evaluated,
            "excluded": dict(self.excluded),
            "num_gallery": self.num_gallery,
            "embedding_dim": self.embedding_dim,
            "metrics": {name: _number(value) for name, value in self.metrics.items()},
            "intervals": {name: [_number(low), _number(high)] for name, (low, high) in self.intervals.items()},
            "protocol": {**self.protocol.to_dict(), "definition": f"recall@K: {RECALL_DEFINITION}"},
            "encoder": self.encoder.to_dict() if self.encoder else None,
            "index": dict(self.index),
            "timings": dict(self.timings),
            "leaks": self.leaks,
            "diagnosis": list(self.diagnosis),
            "warnings": list(self.warnings),
            "per_class": self._class_table(),
            "curves": {
                "recall_at_k": [_number(value) for value in self.recall_curve()],
                "precision_at_recall": [_number(value) for value in self.precision_curve],
            },
            "failed": [failure._asdict() for failure in self.failed],
            "versions": dict(self.versions),
            "command": self.command,
            "trec": None if self.trec is None else dict(self.trec),
            "run": self.run,
            **staged,
        }

    def to_text(self, *, blocks: Sequence[str] | None = None) -> str:
        """Return the report as text; the first two blocks have a fixed form that other programs may read."""
        from lookalike.evaluate.text import BLOCKS, to_text

        return to_text(self, BLOCKS if blocks is None else blocks)

    def save(self, folder: str | os.PathLike[str], *, trec_depth: int | None = None) -> Report:
        """Write the run into a new folder, the files docs/metrics.md lists; return the report that knows the folder.

        `trec_depth` is how many answers a query run.trec holds: by default 100, fewer where there are more than
        10,000 queries, 0 for no such file.

        Raises:
            InputError: the folder already holds something.
        """
        from lookalike.evaluate.saved import save_run

        return save_run(dataclasses.replace(self, run=str(Path(folder))), Path(folder), trec_depth=trec_depth)

    def _class_table(self) -> dict[str, Any] | None:
        """Return the classes, or their number alone where they are too many to list here."""
        if self.class_column is None:
            return None
        few = len(self.classes) <= MOST_CLASSES
        rows = [row.to_dict() for row in self.classes] if few else None
        return {"column": self.class_column, "num_classes": len(self.classes), "classes": rows}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def to_json(report: Report) -> str:
    """Return the report as JSON text without NaN."""
    return json.dumps(report.to_dict(), indent=2, allow_nan=False)


def fold_table(folds: Sequence[Report]) -> dict[str, Any]:
    """Return, for every metric, its mean over the folds, their standard deviation and the value of each fold."""
    metrics = {}
    for name in folds[0].metrics:
        values = [fold.metrics[name] for fold in folds]
        known = np.array([value for value in values if np.isfinite(value)])
        metrics[name] = {
            "mean": float(known.mean()) if known.size else None,
            "sd": float(known.std(ddof=1)) if known.size > 1 else None,
            "values": [_number(value) for value in values],
        }
    sizes = [{"split": fold.protocol.split, "num_queries": fold.num_queries, "num_evaluated": fold.num_evaluated,
              "digest": fold.protocol.digest} for fold in folds]  # fmt: skip
    return {"folds": sizes, "metrics": metrics}
