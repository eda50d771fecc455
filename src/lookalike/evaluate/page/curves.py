"""The two curves of a run as SVG, drawn by leather."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lookalike.evaluate.report import Report

WIDTH, HEIGHT = 520, 340
_RANKS = (1, 2, 5, 10, 20, 50, 100)
# leather writes colours as attributes; these names become the page's own variables, light or dark.
_THEME: dict[str, Any] = {
    "background_color": "none",
    "margin": 0.02,
    "axis_title_color": "currentColor",
    "label_color": "currentColor",
    "legend_color": "currentColor",
    "tick_color": "var(--line)",
    "zero_color": "var(--axis)",
    "axis_title_font_family": "inherit",
    "tick_font_family": "inherit",
    "legend_font_family": "inherit",
    "axis_title_font_size": 13,
    "tick_font_size": 12,
    "legend_font_size": 13,
    "default_series_colors": ["var(--accent)", "var(--muted)"],
}


def recall_curve(report: Report) -> str:
    """Return recall@K against K from 1 to 100, K on a logarithmic scale; empty where nothing was evaluated."""
    lines = {_name(report): report.recall_curve()}
    if report.plain is not None:
        lines["without the stages"] = report.plain.recall_curve()
    if any(np.isnan(values).any() for values in lines.values()):
        return ""
    deepest = max(2, max(map(len, lines.values())))
    ticks = [math.log10(k) for k in _RANKS if k <= deepest]
    points = {
        name: [(math.log10(k), float(value)) for k, value in enumerate(values, start=1)]
        for name, values in lines.items()
    }
    return _drawn(points, (0.0, math.log10(deepest)), ticks, lambda x, *_: f"{10**x:.0f}", "K", "recall@K")


def precision_curve(report: Report) -> str:
    """Return interpolated precision against recall; empty where it was not computed."""
    runs = {_name(report): report.precision_curve}
    if report.plain is not None:
        runs["without the stages"] = report.plain.precision_curve
    points = {
        name: [(place / (len(values) - 1), value) for place, value in enumerate(values)]
        for name, values in runs.items()
        if len(values) > 1
    }
    if not points:
        return ""
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    return _drawn(
        points, (0.0, 1.0), ticks, lambda x, *_: f"{x:g}", "recall (share of the relevant found)", "precision"
    )


def _name(report: Report) -> str:
    return "this run" if report.plain is None else "with the stages"


def _drawn(
    lines: dict[str, list[tuple[float, float]]],
    across: tuple[float, float],
    ticks: list[float],
    label: Any,
    x_name: str,
    y_name: str,
) -> str:
    import leather  # type: ignore[import-untyped]

    for name, value in _THEME.items():
        setattr(leather.theme, name, value)
    chart = leather.Chart()
    for (name, points), dashes in zip(lines.items(), (None, "5 4"), strict=False):
        chart.add_line(points, name=name, stroke_dasharray=dashes)
    chart.add_x_scale(*across)
    chart.add_y_scale(0.0, 1.0)
    chart.add_x_axis(ticks=ticks, tick_formatter=label, name=x_name)
    chart.add_y_axis(ticks=[0.0, 0.25, 0.5, 0.75, 1.0], tick_formatter=lambda y, *_: f"{y:g}", name=y_name)
    svg = str(chart.to_svg(width=WIDTH, height=HEIGHT))
    fixed = f'width="{WIDTH}" height="{HEIGHT}"'
    return svg.replace(fixed, f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{y_name} against {x_name}"', 1)
