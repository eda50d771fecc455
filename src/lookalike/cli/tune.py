"""lookalike tune: the index chosen by measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lookalike.cli import opening, options, output, sizes


@click.command("tune")
@opening.catalogue
@click.option("--recall", type=click.FloatRange(0, 1), default=0.95, show_default=True,
              help="The least overlap with exact search.")  # fmt: skip
@click.option("--latency", type=sizes.Milliseconds(), help="The longest the median query may take: 50ms.")
@click.option("--ram", type=sizes.Bytes(), help="The most the index may take: 16GB.")
@click.option("--kinds", help="Only these kinds, separated by commas.")
@click.option("--apply", is_flag=True, help="Build what was chosen, and search with it from now on.")
@click.option("--chart", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw overlap against latency.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the vectors that ask.")
@options.output_format("table", "json", "csv")
@options.running
def command(**settings: Any) -> None:
    """Measure kinds of index on CATALOGUE's own vectors and choose the cheapest that meets the demand.

    A tenth of the vectors, 200 at most, ask and are not indexed. Says so where nothing meets the demand.
    """
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.index.chart import as_svg, as_text
    from lookalike.index.kinds import settings_dict
    from lookalike.index.tune import tune

    with Catalogue.open(
        settings["catalogue"], encoder=settings["encoder"], readonly=not settings["apply"], threads=settings["threads"]
    ) as catalogue:
        ids = catalogue.ids()
        report = tune(
            catalogue.vectors(ids), ids, recall=settings["recall"], latency_ms=settings["latency"],
            ram=settings["ram"], metric=catalogue.metric, seed=settings["seed"],
            kinds=settings["kinds"].split(",") if settings["kinds"] else None,
        )  # fmt: skip
        if settings["chart"]:
            settings["chart"].write_text(as_svg(report), encoding="utf-8")
        if settings["apply"] and report.chosen is not None:
            catalogue.build_index(report.chosen.settings, seed=settings["seed"])
    if settings["output_format"] == "json":
        output.as_json(report.as_dict())
        return
    rows = []
    for row in report.measured:
        low, high = row.overlap_interval
        knobs = {name: value for name, value in settings_dict(row.settings).items() if value is not None}
        rows.append({
            "": "*" if row is report.chosen else "",
            "kind": row.kind,
            "settings": " ".join(f"{name}={value}" for name, value in knobs.items()),
            "overlap": f"{row.overlap:.3f}",
            "95 %": f"{low:.3f} to {high:.3f}",
            "p50 ms": f"{row.p50_ms:.3f}",
            "p95 ms": f"{row.p95_ms:.3f}",
            "bytes": sizes.shown(row.bytes),
            "fits": "yes" if row.fits else "no",
        })  # fmt: skip
    output.as_rows(rows, settings["output_format"])
    if settings["output_format"] == "table":
        output.data("\n" + as_text(report))
        output.data("\n" + report.reason)
