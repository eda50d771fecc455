"""A report as text: named blocks of lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lookalike.evaluate.classes import worst
from lookalike.evaluate.protocol import RECALL_DEFINITION

if TYPE_CHECKING:
    from lookalike.evaluate.report import Report

WORST_CLASSES = 5


def to_text(report: Report, blocks: Sequence[str]) -> str:
    """Return the named blocks in this order; one without lines is left out.

    Raises:
        KeyError: no such block.
    """
    parts = []
    for name in blocks:
        lines = _LINES[name](report)
        if lines:
            parts.append(f"[{name}]\n" + "".join(f"{line}\n" for line in lines))
    return "".join(parts)


def _evaluation(report: Report) -> Sequence[str]:
    return [
        f"num queries: {report.num_queries}",
        f"num gallery: {report.num_gallery}",
        f"embedding_dim: {report.embedding_dim}",
    ]


def _recall(report: Report) -> Sequence[str]:
    return [f"recall@{k}: {value:.4f}" for k, value in report.recall.items()]


def _metrics(report: Report) -> Sequence[str]:
    return [f"{name}: {value:.4f}" for name, value in report.metrics.items() if name not in report.headlines]


def protocol_lines(report: Report) -> Sequence[str]:
    """Say under which rules, of what, by what the numbers came about."""
    protocol = report.protocol
    excluded = ", ".join(f"{reason} {count}" for reason, count in report.excluded.items()) or "none"
    encoder = f"{report.encoder.name} (digest {report.encoder.digest})" if report.encoder else "ready vectors"
    return [
        f"recall@K: {RECALL_DEFINITION}",
        f"relevance: {protocol.relevance}",
        f"metric: {protocol.metric}",
        f"self: {protocol.self_rule}",
        f"split: {protocol.split}",
        f"evaluated: {report.num_evaluated} of {report.num_queries} queries; left out: {excluded}",
        f"encoder: {encoder}",
        f"index: {', '.join(f'{key} {value}' for key, value in report.index.items())}",
        f"seed: {protocol.seed}",
        f"digest: {protocol.digest}",
        f"versions: {', '.join(f'{name} {version}' for name, version in report.versions.items())}",
    ]


def leak_lines(report: Report) -> Sequence[str]:
    """Say how many queries have a near-copy of themselves in their gallery."""
    leaks = report.leaks
    if not leaks:
        return []
    checked = f"{leaks['queries_checked']} queries{' (a sample)' if leaks['sampled'] else ''}"
    same = f", {leaks['same_bytes']} of them the same file under another name" if leaks["same_bytes"] else ""
    lines = [
        f"{leaks['near_duplicates']} of {checked} have a near-duplicate in their gallery "
        f"(cosine of {leaks['at_least']:g} or more){same}"
    ]
    if leaks["alike"]:
        lines.append(f"{leaks['alike']} of {checked} have an answer of cosine {leaks['alike_at_least']:g} or more")
    return lines


def _stages(report: Report) -> Sequence[str]:
    """Say what the stages changed, losses like gains."""
    if not report.paired:
        return []
    lines = [f"{report.index['stages']}; without it, with it, difference, 95 % interval, won, lost"]
    for name, row in report.paired.items():
        low, high = row.interval
        verdict = "" if row.decided else ", undecided"
        change = f"{row.a:.4f}, {row.b:.4f}, {row.difference:+.4f}, {low:+.4f} to {high:+.4f}"
        lines.append(f"{name}: {change}, {row.won}, {row.lost}{verdict}")
    spent = {name: value for name, value in report.timings.items() if name.endswith("_ms")}
    if "augment_s" in report.timings:
        lines.append(f"seconds, once: augment {report.timings['augment_s']:.2f}")
    if spent:
        lines.append("milliseconds a query: " + ", ".join(f"{name[:-3]} {value:.2f}" for name, value in spent.items()))
    return lines


def _intervals(report: Report) -> Sequence[str]:
    lines = [f"{name}: {low:.4f} to {high:.4f}" for name, (low, high) in report.intervals.items()]
    return [f"95 %, bootstrap over {report.num_evaluated} evaluated queries", *lines] if lines else []


def _classes(report: Report) -> Sequence[str]:
    """Name the classes that do worst; nothing where there are few."""
    name = report.headlines[0]
    rows = worst(report.classes, name)[:WORST_CLASSES]
    if len(report.classes) <= WORST_CLASSES or not rows:
        return []
    listed = [f"{row.label}: {row.metrics[name]:.4f} of {row.num_evaluated} queries" for row in rows]
    return [f"lowest {name} of {len(report.classes)} classes (column {report.class_column!r})", *listed]


def _folds(report: Report) -> Sequence[str]:
    from lookalike.evaluate.report import fold_table

    if not report.folds:
        return []
    lines = [
        f"mean, standard deviation and the value of each of {len(report.folds)} folds; above: all queries together"
    ]
    for name, row in fold_table(report.folds)["metrics"].items():
        mean, sd, *values = (
            "nan" if value is None else f"{value:.4f}" for value in (row["mean"], row["sd"], *row["values"])
        )
        lines.append(f"{name}: {mean} ± {sd}; {', '.join(values)}")
    return lines


_LINES: Mapping[str, Callable[[Report], Sequence[str]]] = {
    "evaluation": _evaluation,
    "recall": _recall,
    "protocol": protocol_lines,
    "metrics": _metrics,
    "intervals": _intervals,
    "stages": _stages,
    "folds": _folds,
    "diagnosis": lambda report: report.diagnosis or ("Nothing stands out.",),
    "leaks": leak_lines,
    "classes": _classes,
    "warnings": lambda report: report.warnings,
}
BLOCKS = tuple(_LINES)
