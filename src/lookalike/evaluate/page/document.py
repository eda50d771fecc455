"""A report as one HTML document: numbers, definitions, curves, failures as pictures."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from lookalike.evaluate.classes import worst
from lookalike.evaluate.metrics import find
from lookalike.evaluate.page.curves import precision_curve, recall_curve
from lookalike.evaluate.page.rows import ROWS, SHOWN, Row, Tile, worst_rows
from lookalike.evaluate.protocol import RECALL_DEFINITION
from lookalike.evaluate.text import leak_lines, protocol_lines

if TYPE_CHECKING:
    from lookalike.evaluate.report import Report

CLASSES_OPEN = 15
"""Classes shown before the rest is folded away."""
# No script at all, and nothing from anywhere: a browser refuses it even if a name slipped through the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


_SCORES = {"cosine": "their cosine", "ip": "their inner product", "l2": "their squared distance (lower is nearer)"}


def page(report: Report) -> str:
    """Return the whole document; it asks for nothing else, from disk or network."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    body = "\n".join(part for section in _SECTIONS for part in section(report))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(_title(report))}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _title(report: Report) -> str:
    name = PurePath(report.run).name if report.run else "evaluation"
    return f"{name}: {report.encoder.name if report.encoder else 'ready vectors'}"


def _head(report: Report) -> Iterator[str]:
    stages = report.index.get("stages")
    yield f"<h1>{_text(_title(report))}</h1>"
    yield (
        f'<p class="under">{report.num_queries:,} queries against {report.num_gallery:,} items · '
        f"{_text(report.protocol.split)} · right: {_text(report.protocol.relevance)}"
        f"{' · ' + _text(stages) if stages else ''}</p>"
    )
    yield '<div class="tiles">'
    for name in report.headlines:
        yield _headline(name, report.metrics[name], report.intervals.get(name))
    yield "</div>"
    yield (
        f'<p class="under">recall@K: {RECALL_DEFINITION}. Evaluated: {report.num_evaluated:,} of '
        f"{report.num_queries:,} queries{_left_out(report)}. The mark on each bar is the 95 % interval.</p>"
    )


def _headline(name: str, value: float, interval: tuple[float, float] | None) -> str:
    if not math.isfinite(value):
        return f'<div class="tile"><span>{name}</span><b>–</b><span>nothing was evaluated</span></div>'
    low, high = interval or (value, value)
    left, width = 100 * low, max(100 * (high - low), 0.3)
    bar = f'<i style="width:{100 * value:.1f}%"></i><u style="left:{left:.1f}%;width:{width:.1f}%"></u>'
    return (
        f'<div class="tile"><span>{name}</span><b>{value:.3f}</b><span>{low:.3f} to {high:.3f}</span>'
        f'<div class="bar">{bar}</div></div>'
    )


def _left_out(report: Report) -> str:
    listed = ", ".join(f"{_text(reason)} {count}" for reason, count in report.excluded.items())
    return f"; left out: {listed}" if listed else ""


def _findings(report: Report) -> Iterator[str]:
    yield '<h2>What it says</h2>\n<ul class="says">'
    for line in report.diagnosis or ("Nothing stands out.",):
        yield f"<li>{_text(line)}</li>"
    for line in report.warnings:
        yield f'<li class="warning">{_text(line)}</li>'
    yield "</ul>"
    yield from (f'<p class="under">{_text(line)}.</p>' for line in leak_lines(report))


def _charts(report: Report) -> Iterator[str]:
    drawn = (("How far down the first right answer is", recall_curve(report)),
             ("Precision against recall, interpolated", precision_curve(report)))  # fmt: skip
    if any(svg for _, svg in drawn):
        yield '<h2>Curves</h2>\n<div class="charts">'
        for title, svg in drawn:
            if svg:
                yield f"<figure><figcaption>{title}</figcaption>{svg}</figure>"
        yield "</div>"


def _numbers(report: Report) -> Iterator[str]:
    yield "<h2>Every number</h2>"
    rows = []
    for name, value in report.metrics.items():
        low, high = report.intervals.get(name, (math.nan, math.nan))
        rows.append([name, _number(value), f"{_number(low)} to {_number(high)}", find(name)[0].words])
    yield _table(["metric", "value", "95 % interval", "definition"], rows, numbers=(1, 2))


def _stages(report: Report) -> Iterator[str]:
    if not report.paired:
        return
    yield f"<h2>What the stages changed</h2>\n<p>{_text(str(report.index['stages']))}; query by query.</p>"
    rows = []
    for name, row in report.paired.items():
        low, high = row.interval
        change = f"{row.difference:+.4f}"
        if row.decided:
            change = f'<span class="{"gain" if row.difference > 0 else "loss"}">{change}</span>'
        verdict = "undecided" if not row.decided else "better" if row.difference > 0 else "worse"
        rows.append([name, _number(row.a), _number(row.b), _Html(change), f"{low:+.4f} to {high:+.4f}",
                     f"{row.won} / {row.lost} / {row.tied}", verdict])  # fmt: skip
    header = ["metric", "without", "with", "difference", "95 % interval", "won / lost / tied", ""]
    yield _table(header, rows, numbers=(1, 2, 3, 4, 5))


def _folds(report: Report) -> Iterator[str]:
    from lookalike.evaluate.report import fold_table

    if not report.folds:
        return
    yield f"<h2>Fold by fold</h2>\n<p>{len(report.folds)} folds of whole classes; each asks itself, leave-one-out.</p>"
    rows = [
        [name, _number(row["mean"]), _number(row["sd"]), *map(_number, row["values"])]
        for name, row in fold_table(report.folds)["metrics"].items()
    ]
    header = ["metric", "mean", "sd", *(f"fold {place}" for place in range(1, len(report.folds) + 1))]
    yield _table(header, rows, numbers=tuple(range(1, len(header))))


def _failures(report: Report) -> Iterator[str]:
    if not report.evidence or not report.num_evaluated:
        return
    failed = int((report.first_ranks > 1).sum())
    yield "<h2>The queries that went worst</h2>"
    if not failed:
        yield "<p>Every evaluated query found a right answer first.</p>"
        return
    scored = "" if any(part.staged for part in report.evidence) else f" with {_SCORES[report.protocol.metric]}"
    yield (
        f"<p>{failed:,} of {report.num_evaluated:,} evaluated queries had a wrong answer first. These "
        f"{min(failed, ROWS)} had to go deepest for a right one. Each row: the query, its first {SHOWN} answers "
        f"(✗ wrong, ✓ right){scored}, and behind the dots the first right answer where it stood deeper.</p>"
    )
    for row in worst_rows(report):
        yield _pictures(row)


def _pictures(row: Row) -> str:
    rank = f"{row.first_rank:,.0f}" if math.isfinite(row.first_rank) else "none"
    parts = [_figure(row.query, "asked")]
    for tile in row.answers:
        first = tile.kind == "right" and tile.rank == row.first_rank
        mark = "✓ first" if first else "✓" if tile.kind == "right" else "✗"
        parts.append(_figure(tile, f"{tile.rank} {mark}"))
    if row.first_right is not None:
        parts += ['<span class="gap">…</span>', _figure(row.first_right, f"✓ at rank {rank}")]
    return f'<div class="row" aria-label="first right answer at rank {rank}">{"".join(parts)}</div>'


def _figure(tile: Tile, heading: str) -> str:
    alt = _text(f"{tile.kind}: {tile.name}")
    name = _text(tile.name)
    picture = f'<img alt="{alt}" src="{tile.picture}">' if tile.picture else f'<div class="none">{name}</div>'
    label = _text(tile.label or tile.name).replace("_", "_<wbr>")
    score = "" if tile.score is None else f'<span class="score">{tile.score:.3f}</span>'
    return (
        f'<figure class="{tile.kind}" title="{name}">{picture}<figcaption><b>{_text(heading)}</b>'
        f'<span class="clip">{label}</span>{score}</figcaption></figure>'
    )


def _classes(report: Report) -> Iterator[str]:
    first, deep = report.headlines[0], report.headlines[-1]
    ordered = worst(report.classes, first)
    if not ordered:
        return
    shown = [name for name in dict.fromkeys((first, deep, "map@r", "map", "mrr")) if name in report.metrics]
    rows = [[row.label, f"{row.num_evaluated:,}", *(_number(row.metrics[name]) for name in shown)] for row in ordered]
    header, numbers = [report.class_column or "class", "queries", *shown], tuple(range(1, len(shown) + 2))
    yield f"<h2>Class by class, worst first</h2>\n<p>{len(ordered):,} classes by {first}.</p>"
    yield _table(header, rows[:CLASSES_OPEN], numbers=numbers)
    if len(rows) > CLASSES_OPEN:
        rest = _table(header, rows[CLASSES_OPEN:1_000], numbers=numbers)
        more = f" (the first 1,000; per_class.csv holds all {len(rows):,})" if len(rows) > 1_000 else ""
        yield f"<details><summary>The other {len(rows) - CLASSES_OPEN:,} classes{more}</summary>{rest}</details>"


def _protocol(report: Report) -> Iterator[str]:
    yield "<h2>How it was measured</h2>\n<dl>"
    for line in protocol_lines(report):
        key, _, value = line.partition(": ")
        yield f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>"
    if report.trec:
        yield f"<dt>run.trec</dt><dd>the first {report.trec['depth']} answers of each query</dd>"
    yield "</dl>"
    if report.command:
        yield f"<p>The command that makes it again:</p>\n<pre><code>{_text(report.command)}</code></pre>"
    if report.failed:
        rows = [[failure.path, failure.reason, failure.detail] for failure in report.failed[:100]]
        yield f"<h2>Pictures that could not be read: {len(report.failed)}</h2>"
        yield _table(["path", "reason", "detail"], rows)


_SECTIONS = (_head, _findings, _charts, _failures, _numbers, _stages, _folds, _classes, _protocol)


class _Html(str):
    """Text that is markup already."""

    __slots__ = ()


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    def cell(tag: str, place: int, value: str) -> str:
        kind = ' class="number"' if place in numbers else ""
        return f"<{tag}{kind}>{value if isinstance(value, _Html) else _text(value)}</{tag}>"

    lines = ["".join(cell("th", place, name) for place, name in enumerate(header))]
    lines += ["".join(cell("td", place, value) for place, value in enumerate(row)) for row in rows]
    return "<table>" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _number(value: float | None) -> str:
    return f"{value:.4f}" if value is not None and math.isfinite(value) else "–"


def _text(value: str) -> str:
    """Escape, and replace the bytes of a path that are not UTF-8."""
    return html.escape(value.encode("utf-8", "replace").decode())
