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
from lookalike.evaluate.paired import Compared
from lookalike.evaluate.protocol import RECALL_DEFINITION, Protocol
from lookalike.images.load import Failure

BLOCKS = ("evaluation", "recall", "protocol", "metrics", "intervals", "stages", "diagnosis", "leaks", "warnings")


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

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract: plain values, None where a number does not exist."""
        staged = {}
        if self.plain is not None:
            paired = {name: dataclasses.asdict(row) for name, row in self.paired.items()}
            staged = {"plain": self.plain.to_dict(), "paired": paired}
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
            "failed": [failure._asdict() for failure in self.failed],
            "versions": dict(self.versions),
            "run": self.run,
            **staged,
        }

    def to_text(self, *, blocks: Sequence[str] = BLOCKS) -> str:
        """Return the report as text; the first two blocks have a fixed form that other programs may read."""
        lines = {
            "evaluation": [
                f"num queries: {self.num_queries}",
                f"num gallery: {self.num_gallery}",
                f"embedding_dim: {self.embedding_dim}",
            ],
            "recall": [f"recall@{k}: {value:.4f}" for k, value in self.recall.items()],
            "protocol": self._protocol_lines(),
            "metrics": [
                f"{name}: {value:.4f}" for name, value in self.metrics.items() if not name.startswith("recall@")
            ],
            "intervals": self._interval_lines(),
            "stages": self._stage_lines(),
            "diagnosis": self.diagnosis or ("Nothing stands out.",),
            "leaks": self._leak_lines(),
            "warnings": self.warnings,
        }
        return "".join(f"[{name}]\n" + "".join(f"{line}\n" for line in lines[name]) for name in blocks if lines[name])

    def save(self, folder: str | os.PathLike[str]) -> Report:
        """Write report.json, report.txt and per_query.csv into a new folder; return the report that knows where it is.

        Raises:
            InputError: the folder already holds something.
        """
        from lookalike.evaluate.saved import save_run

        saved = dataclasses.replace(self, run=str(Path(folder)))
        save_run(saved, Path(folder))
        return saved

    def _protocol_lines(self) -> list[str]:
        protocol = self.protocol
        excluded = ", ".join(f"{reason} {count}" for reason, count in self.excluded.items()) or "none"
        encoder = f"{self.encoder.name} (digest {self.encoder.digest})" if self.encoder else "ready vectors"
        return [
            f"recall@K: {RECALL_DEFINITION}",
            f"relevance: {protocol.relevance}",
            f"metric: {protocol.metric}",
            f"self: {protocol.self_rule}",
            f"split: {protocol.split}",
            f"evaluated: {self.num_evaluated} of {self.num_queries} queries; left out: {excluded}",
            f"encoder: {encoder}",
            f"index: {', '.join(f'{key} {value}' for key, value in self.index.items())}",
            f"seed: {protocol.seed}",
            f"digest: {protocol.digest}",
            f"versions: {', '.join(f'{name} {version}' for name, version in self.versions.items())}",
        ]

    def _leak_lines(self) -> Sequence[str]:
        if not self.leaks:
            return []
        near, checked, at_least = (self.leaks[key] for key in ("near_duplicates", "queries_checked", "at_least"))
        sampled = " (a sample)" if self.leaks["sampled"] else ""
        near_copy = f"a near-duplicate in their gallery (cosine of {at_least:g} or more)"
        return [f"{near} of {checked} queries{sampled} have {near_copy}"]

    def _stage_lines(self) -> Sequence[str]:
        """Say what the stages changed, losses like gains."""
        lines = (
            [f"{self.index['stages']}; without it, with it, difference, 95 % interval, won, lost"]
            if self.paired
            else []
        )
        for name, row in self.paired.items():
            low, high = row.interval
            verdict = "" if row.decided else ", undecided"
            change = f"{row.a:.4f}, {row.b:.4f}, {row.difference:+.4f}, {low:+.4f} to {high:+.4f}"
            lines.append(f"{name}: {change}, {row.won}, {row.lost}{verdict}")
        if self.paired:
            spent = {name: value for name, value in self.timings.items() if name.endswith("_ms")}
            lines.append(
                "milliseconds a query: " + ", ".join(f"{name[:-3]} {value:.2f}" for name, value in spent.items())
            )
        return lines

    def _interval_lines(self) -> Sequence[str]:
        lines = [f"{name}: {low:.4f} to {high:.4f}" for name, (low, high) in self.intervals.items()]
        return [f"95 %, bootstrap over {self.num_evaluated} evaluated queries", *lines] if lines else []


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def to_json(report: Report) -> str:
    """Return the report as JSON text without NaN."""
    return json.dumps(report.to_dict(), indent=2, allow_nan=False)
