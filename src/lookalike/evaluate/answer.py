"""From the ranks of a run to its report."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lookalike.embed.encoder import Card
from lookalike.evaluate import metrics
from lookalike.evaluate.confidence import intervals
from lookalike.evaluate.diagnose import diagnose
from lookalike.evaluate.question import Question
from lookalike.evaluate.ranks import Ranks
from lookalike.evaluate.report import Report
from lookalike.images.load import Failure

VERSIONED = ("lookalike", "numpy", "onnxruntime", "pillow")
ALWAYS = ("map@r", "r-precision", "map", "mrr", "minp")
EXACT: Mapping[str, Any] = {"kind": "exact", "overlap": 1.0}


def answer(
    question: Question,
    blocks: Iterable[Ranks],
    *,
    card: Card | None = None,
    failures: Sequence[Failure] = (),
    timings: Mapping[str, float] | None = None,
    leaks: Mapping[str, Any] | None = None,
    stages: str = "",
) -> Report:
    """Score consecutive blocks of ranks and report them; the ranks themselves are not kept.

    `stages` says in words what happened between the first ranking and this one.
    """
    queries, truth, protocol = question.queries, question.truth, question.protocol
    ties: list[int] = []
    per_query = metrics.measure(_counting_ties(blocks, ties), metric_names(protocol.ks))
    means = {name: metrics.mean(values) for name, values in per_query.items()}
    num_evaluated = int(truth.evaluated.sum())
    findings = diagnose(
        means, num_queries=len(queries), num_evaluated=num_evaluated, excluded=truth.excluded,
        measured=question.measured,
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
        warnings=tuple(_warnings(question, num_evaluated, sum(ties), failures)),
        failed=tuple(failures),
        query_names=queries.names,
        groups=() if question.groups is None else tuple("" if g is None else str(g) for g in question.groups),
        per_query=per_query,
        versions=_versions(),
    )


def metric_names(cuts: Sequence[int]) -> list[str]:
    """Name what every report holds: recall at each K, the full-list metrics, and the rest at the largest K.

    >>> metric_names([1, 10])[:3]
    ['recall@1', 'recall@10', 'map@r']
    """
    deep = max(cuts)
    by_depth = (f"precision@{deep}", f"coverage@{deep}", f"ndcg@{deep}", f"map@{deep}/all", f"map@{deep}/min")
    return [*(f"recall@{k}" for k in cuts), *ALWAYS, *by_depth]


def _counting_ties(blocks: Iterable[Ranks], ties: list[int]) -> Iterator[Ranks]:
    """Hand blocks on and note how many of their queries depend on a tie."""
    for ranks in blocks:
        ties.append(int(ranks.tied.sum()))
        yield ranks


def _warnings(question: Question, num_evaluated: int, num_tied: int, failures: Sequence[Failure]) -> Iterator[str]:
    if not question.measured:
        yield "Self-matches were kept: this is not a measurement."
    if not num_evaluated:
        yield "No query could be evaluated, so there is no number."
    if failures:
        yield f"{len(failures)} pictures could not be read and are in neither queries nor gallery."
    if num_tied:
        yield f"{num_tied} queries depend on a tie of scores, settled by id; equal vectors are often copies."
    for rule, count in question.truth.removed_by.items():
        if rule != "self" and count:
            yield f"The {rule} rule removed {count} pairs of query and gallery item."


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONED}
