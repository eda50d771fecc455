"""Several folds as one report: every query measured in its own fold, and the folds beside it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from lookalike.arrays import label_key
from lookalike.errors import InputError
from lookalike.evaluate import metrics
from lookalike.evaluate.confidence import intervals
from lookalike.evaluate.diagnose import diagnose
from lookalike.evaluate.leaks import pooled
from lookalike.evaluate.protocol import Protocol, items_digest
from lookalike.evaluate.report import Report
from lookalike.evaluate.sides import Side
from lookalike.evaluate.splits import class_folds


def pool(folds: Sequence[Report], split: str) -> Report:
    """Join the reports of folds, which asked disjoint queries, into one; `folds` of the result keeps each.

    The numbers are means over all queries, each ranked in the gallery of its own fold; the mean over folds and its
    spread stand in `fold_table`. `split` says in words how the folds were made.

    Raises:
        InputError: no fold, or folds that were re-ranked or expanded.
    """
    if not folds:
        raise InputError("There is no fold to pool.")
    if any(fold.plain is not None for fold in folds):
        raise InputError("Folds are measured without stages.", hint="Leave out --rerank and --expand, or --folds.")
    first = folds[0]
    per_query = {name: np.concatenate([fold.per_query[name] for fold in folds]) for name in first.per_query}
    groups = tuple(group for fold in folds for group in fold.groups)
    num_evaluated = sum(fold.num_evaluated for fold in folds)
    means = {name: metrics.mean(values) for name, values in per_query.items()}
    excluded: Counter[str] = sum((Counter(fold.excluded) for fold in folds), Counter())
    protocol = _protocol(folds, split)
    num_queries = sum(fold.num_queries for fold in folds)
    leaks = pooled([fold.leaks for fold in folds if fold.leaks])
    findings = diagnose(
        means, num_queries=num_queries, num_evaluated=num_evaluated, excluded=excluded, measured=True, leaks=leaks
    )
    curves = [(fold.precision_curve, fold.num_evaluated) for fold in folds if fold.precision_curve]
    return dataclasses.replace(
        first,
        num_queries=num_queries,
        num_evaluated=num_evaluated,
        excluded=dict(excluded),
        num_gallery=sum(fold.num_gallery for fold in folds),
        metrics=means,
        intervals=intervals(per_query, groups=groups or None, seed=protocol.seed) if num_evaluated else {},
        protocol=protocol,
        timings=dict(sum((Counter(fold.timings) for fold in folds), Counter())),
        diagnosis=tuple(findings),
        warnings=tuple(dict.fromkeys(line for fold in folds for line in fold.warnings)),
        leaks=leaks,
        query_names=tuple(name for fold in folds for name in fold.query_names),
        groups=groups,
        per_query=per_query,
        first_ranks=np.concatenate([fold.first_ranks for fold in folds]),
        precision_curve=_mean_curve(curves),
        classes=tuple(sorted((row for fold in folds for row in fold.classes), key=lambda row: row.label)),
        folds=tuple(folds),
        evidence=tuple(part for fold in folds for part in fold.evidence),
    )


def _protocol(folds: Sequence[Report], split: str) -> Protocol:
    items = items_digest([fold.protocol.items for fold in folds])
    return dataclasses.replace(folds[0].protocol, split=split, items=items)


def _mean_curve(curves: Sequence[tuple[tuple[float, ...], int]]) -> tuple[float, ...]:
    if not curves:
        return ()
    values, counts = np.array([curve for curve, _ in curves]), [count for _, count in curves]
    return tuple(np.average(values, axis=0, weights=counts).tolist())


def measure_folds(
    side: Side, column: str, count: int, measure_fold: Callable[[Side, str], Report], *, seed: int = 0
) -> Report:
    """Deal the classes of a column into folds, measure each alone, every picture asking the others of its fold.

    `measure_fold` measures one side against itself, given the words for its split. Pictures without a class are left
    out.

    Raises:
        InputError: fewer than 2 folds, or fewer than two classes a fold.
    """
    labels = [label_key(value) for value in side.column(column)]
    splits = class_folds(side.names, labels, count, seed=seed)
    reports = [measure_fold(side.having(side.ids[list(split.query)]), split.description) for split in splits]
    return pool(reports, f"{count} folds by class (column {column!r}, seed {seed}), each asking itself")
