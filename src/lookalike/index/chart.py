"""The trade between overlap, latency and bytes as a picture: text for a terminal, SVG for a page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from lookalike.index.kinds import KINDS
from lookalike.index.trial import Row
from lookalike.index.tune import TuneReport, pareto

MARKS = dict(zip(KINDS, "FIQPSRHG", strict=True))  # one letter a kind, for the text plot
# Okabe and Ito's colours, which stay apart under every common colour blindness; black becomes grey for dark pages.
COLOURS = dict(
    zip(KINDS, ("#8a8a8a", "#e69f00", "#56b4e9", "#009e73", "#b8a800", "#0072b2", "#d55e00", "#cc79a7"), strict=True)
)
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 720, 420, 64, 48, 24, 168


@dataclass(frozen=True)
class _Axes:
    """Latency to the right on a logarithmic scale, overlap upwards; both as shares of the plot."""

    fastest: float
    slowest: float
    lowest: float

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Axes:
        times = [row.p50_ms for row in rows]
        return cls(min(times) / 1.3, max(times) * 1.3, min(0.9, math.floor(20 * min(r.overlap for r in rows)) / 20))

    def x(self, latency_ms: float) -> float:
        return math.log(latency_ms / self.fastest) / math.log(self.slowest / self.fastest)

    def y(self, overlap: float) -> float:
        return (overlap - self.lowest) / (1 - self.lowest)


def as_text(report: TuneReport, *, width: int = 72, height: int = 18) -> str:
    """Return a plot of overlap against median latency, one letter a kind, `*` for the choice, capitals on the front.

    Rows that another row beats in overlap, latency and bytes at once are drawn in small letters.
    """
    rows = report.measured
    if not rows:
        return "nothing was measured"
    axes, front = _Axes.of(rows), set(map(id, pareto(rows)))
    grid = [[" "] * width for _ in range(height)]
    for row in sorted(rows, key=lambda row: (id(row) in front, row is report.chosen)):
        letter = MARKS[row.kind] if id(row) in front else MARKS[row.kind].lower()
        place = round((height - 1) * (1 - axes.y(row.overlap))), round((width - 1) * axes.x(row.p50_ms))
        grid[place[0]][place[1]] = "*" if row is report.chosen else letter
    demand = round((height - 1) * (1 - axes.y(report.demand.recall))) if report.demand.recall >= axes.lowest else -1
    lines = []
    for i, cells in enumerate(grid):
        value = 1 - (1 - axes.lowest) * i / (height - 1)
        line = "".join(cells)
        lines.append(f"{value:5.3f} |" + (line.replace(" ", "·") if i == demand else line.rstrip()))
    scale = f"{axes.fastest:.3g} ms".ljust(width - 10) + f"{axes.slowest:.3g} ms".rjust(10)
    used = [kind for kind in KINDS if any(row.kind == kind for row in rows)]
    legend = "  ".join(f"{MARKS[kind]} {kind}" for kind in used)
    return "\n".join(
        [
            f"overlap@10 with exact search against median latency, {report.measured_n:,} × {report.d}",
            *lines,
            "      +" + "-" * width,
            "       " + scale,
            f"{legend}  * chosen  · demand ({report.demand.recall:g})",
        ]
    )


def as_svg(report: TuneReport) -> str:
    """Return one self-contained SVG: overlap against median latency, area of a point by bytes, the front as a line."""
    rows = report.measured
    title = f"Overlap with exact search against latency, {report.measured_n:,} × {report.d}"
    body = [] if not rows else _drawn(report, _Axes.of(rows))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'font-family="sans-serif" font-size="12" fill="currentColor"><title>{html.escape(title)}</title>',
            *body,
            "</svg>",
        ]
    )


def _drawn(report: TuneReport, axes: _Axes) -> list[str]:
    inner_w, inner_h = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def at(row: Row) -> tuple[float, float]:
        return round(_LEFT + inner_w * axes.x(row.p50_ms), 1), round(_TOP + inner_h * (1 - axes.y(row.overlap)), 1)

    out = [_grid(axes, inner_w, inner_h)]
    front = sorted(pareto(report.measured), key=lambda row: row.p50_ms)
    steps = [row for i, row in enumerate(front) if all(row.overlap > other.overlap for other in front[:i])]
    line = " ".join("{},{}".format(*at(row)) for row in steps)
    out.append(f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>')
    if report.demand.recall >= axes.lowest:
        y = round(_TOP + inner_h * (1 - axes.y(report.demand.recall)), 1)
        out.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + inner_w}" y1="{y}" y2="{y}" stroke="currentColor" '
            'stroke-dasharray="4 3"/>'
        )
    most = max(row.bytes for row in report.measured)
    for row in report.measured:
        x, y = at(row)
        radius = round(3 + 7 * math.sqrt(row.bytes / most), 1)
        label = html.escape(f"{row.kind}: overlap {row.overlap:.3f}, {row.p50_ms:.3f} ms, {row.bytes:,} bytes")
        edge = 'stroke="currentColor" stroke-width="2"' if row is report.chosen else ""
        out.append(
            f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{COLOURS[row.kind]}" fill-opacity="0.75" {edge}>'
            f"<title>{label}</title></circle>"
        )
    return out + _legend(report)


def _grid(axes: _Axes, inner_w: int, inner_h: int) -> str:
    parts = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{inner_w}" height="{inner_h}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.3"/>'
    ]
    for i in range(6):
        value, y = axes.lowest + (1 - axes.lowest) * i / 5, _TOP + inner_h * (1 - i / 5)
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{value:.3f}</text>')
    for power in range(math.ceil(math.log10(axes.fastest)), math.floor(math.log10(axes.slowest)) + 1):
        x = _LEFT + inner_w * axes.x(10.0**power)
        parts.append(f'<text x="{x:.0f}" y="{_TOP + inner_h + 18}" text-anchor="middle">{10.0**power:g} ms</text>')
    middle = _LEFT + inner_w // 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">median latency, one thread</text>')
    return "".join(parts)


def _legend(report: TuneReport) -> list[str]:
    used = [kind for kind in KINDS if any(row.kind == kind for row in report.measured)]
    x, out = _WIDTH - _RIGHT + 24, []
    for i, kind in enumerate(used):
        y = _TOP + 12 + 20 * i
        out.append(
            f'<circle cx="{x}" cy="{y - 4}" r="6" fill="{COLOURS[kind]}"/><text x="{x + 12}" y="{y}">{kind}</text>'
        )
    note = _TOP + 32 + 20 * len(used)
    out.append(f'<text x="{x - 6}" y="{note}">outlined: chosen</text>')
    out.append(f'<text x="{x - 6}" y="{note + 18}">area: bytes</text>')
    return out
