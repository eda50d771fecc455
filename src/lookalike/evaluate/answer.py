"""From the ranks of a run to its report."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lookalike.arrays import Scores
from lookalike.embed.encoder import Card
from lookalike.evaluate import metrics
from lookalike.evaluate.chosen import metric_names
from lookalike.evaluate.classes import by_class
from lookalike.evaluate.confidence import intervals
from lookalike.evaluate.diagnose import diagnose
from lookalike.evaluate.evidence import Evidence
from lookalike.evaluate.leaks import Copies
from lookalike.evaluate.question import Question
from lookalike.evaluate.ranks import Ranks
from lookalike.evaluate.report import Report
from lookalike.images.load import Failure

VERSIONED = ("lookalike", "numpy", "onnxruntime", "pillow")
EXACT: Mapping[str, Any] = {"kind": "exact", "overlap": 1.0}


def answer(
    question: Question,
    blocks: Iterable[Ranks],
    *,
    names: Sequence[str] | None = None,
    card: Card | None = None,
    failures: Sequence[Failure] = (),
    timings: Mapping[str, float] | None = None,
    copies: Copies | None = None,
    evidence: Evidence | None = None,
    stages: str = "",
) -> Report:
    """Score consecutive blocks of ranks and report them; the ranks themselves are not kept.

    `names` are the metrics, by default all of them. `stages` says in words what happened between the first ranking and
    this one.
    """
    queries, truth, protocol = question.queries, question.truth, question.protocol
    aside = _Aside()
    per_query = metrics.measure(aside.through(blocks), names or metric_names(protocol.ks))
    means = {name: metrics.mean(values) for name, values in per_query.items()}
    num_evaluated = int(truth.evaluated.sum())
    leaks = copies.to_dict(per_query[f"recall@{protocol.ks[0]}"]) if copies is not None else None
    findings = diagnose(
        means, num_queries=len(queries), num_evaluated=num_evaluated, excluded=truth.excluded,
        measured=question.measured, leaks=leaks,
    )  # fmt: skip
    return Report(
        num_queries=len(queries),
        num_evaluated=num_evaluated,
        excluded=truth.excluded,
        num_gallery=len(question.gallery),
        embedding_dim=queries.vectors.shape[1],
        metrics=means,
        intervals=intervals(per_query, groups=question.groups, seed=protocol.seed) if num_evaluated else {},
        protocol=protocol,
        encoder=card,
        index={**EXACT, "stages": stages} if stages else EXACT,
        timings=timings or {},
        leaks=leaks,
        diagnosis=tuple(findings),
        warnings=tuple(_warnings(question, num_evaluated, aside.num_tied, failures)),
        failed=tuple(failures),
        query_names=queries.names,
        groups=() if question.groups is None else tuple("" if g is None else str(g) for g in question.groups),
        per_query=per_query,
        first_ranks=aside.first,
        precision_curve=aside.curve,
        class_column=question.classes.column if question.classes else None,
        classes=by_class(per_query, question.classes.labels) if question.classes else (),
        versions=_versions(),
        evidence=(evidence,) if evidence is not None else (),
    )


class _Aside:
    """What is noted of each block on its way to the metrics: ties, first ranks, the precision-recall curve."""

    def __init__(self) -> None:
        self.num_tied = 0
        self._first: list[Scores] = []
        self._curve: metrics.InterpolatedPrecision | None = metrics.InterpolatedPrecision()

    def through(self, blocks: Iterable[Ranks]) -> Iterator[Ranks]:
        for ranks in blocks:
            self.num_tied += int(ranks.tied.sum())
            self._first.append(ranks.first)
            if ranks.first_only or ranks.depth is not None:
                self._curve = None
            elif self._curve is not None:
                self._curve.add(ranks)
            yield ranks

    @property
    def first(self) -> Scores:
        return np.concatenate([np.empty(0), *self._first])

    @property
    def curve(self) -> tuple[float, ...]:
        return () if self._curve is None or not self._curve.count else tuple(self._curve.mean.tolist())


def _warnings(question: Question, num_evaluated: int, num_tied: int, failures: Sequence[Failure]) -> Iterator[str]:
    truth = question.truth
    if not question.measured:
        yield "Self-matches were kept: this is not a measurement."
    if not num_evaluated:
        yield "No query could be evaluated, so there is no number."
    if failures:
        yield f"{len(failures)} pictures could not be read and are in neither queries nor gallery."
    if _collapsed(question):
        yield "All gallery vectors are equal: the encoder has collapsed, and the order is that of the ids."
    if num_tied:
        yield f"{num_tied} queries depend on a tie of scores, settled by id; equal vectors are often copies."
    for rule, reason in (("camera", "camera_rule"), ("junk", "junk_only")):
        if truth.removed_by.get(rule):
            left_out = truth.excluded.get(reason, 0)
            yield (
                f"The {rule} rule removed {truth.removed_by[rule]} pairs of query and gallery item, at "
                f"{truth.touched_by[rule]} of {truth.num_queries} queries; {left_out} queries have nothing right left."
            )


def _collapsed(question: Question) -> bool:
    vectors = question.gallery.vectors
    return len(vectors) > 1 and bool((vectors == vectors[0]).all())


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONED}
