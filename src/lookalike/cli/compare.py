"""lookalike compare: two saved runs, query by query."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from lookalike.cli import options, output

RUN = click.Path(path_type=Path)


@click.command("compare")
@click.argument("a", type=RUN)
@click.argument("b", type=RUN)
@click.option("--seed", type=int, default=0, show_default=True, help="For the intervals.")
@options.output_format("table", "json", "csv")
def command(a: Path, b: Path, seed: int, output_format: str) -> None:
    """Compare the saved runs A and B: the difference of every metric, paired by query, and whether it is one.

    Queries of one run that the other did not evaluate, or other rules, are refused and named.
    """
    from lookalike.evaluate.compare import compare
    from lookalike.evaluate.saved import load_run

    result = compare(load_run(a), load_run(b), seed=seed)
    if output_format == "json":
        output.as_json({name: dataclasses.asdict(row) for name, row in result.items()})
        return
    rows = [
        {
            "metric": name,
            "a": f"{row.a:.4f}",
            "b": f"{row.b:.4f}",
            "difference": f"{row.difference:+.4f}",
            "95 % interval": f"{row.interval[0]:+.4f} to {row.interval[1]:+.4f}",
            "p": f"{row.p:.4f}",
            "won": row.won,
            "lost": row.lost,
            "tied": row.tied,
            "verdict": ("b" if row.difference > 0 else "a") if row.decided else "undecided",
        }
        for name, row in result.items()
    ]
    output.as_rows(rows, output_format)
