"""lookalike leaderboard: saved runs, best first."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from lookalike.cli import options, output


@click.command("leaderboard")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--metric", default="recall@1", show_default=True, help="What orders them: recall@5, map, …")
@options.output_format("table", "json", "csv")
def command(folder: Path, metric: str, output_format: str) -> None:
    """Order the runs at or below FOLDER (a catalogue, or a folder of runs) by a metric, protocol by protocol."""
    from lookalike.errors import NotFoundError
    from lookalike.evaluate.compare import leaderboard
    from lookalike.evaluate.saved import find_runs

    places = leaderboard(find_runs(folder), metric)
    if not places:
        raise NotFoundError(
            f"There are no saved runs below {str(folder)!r}.", hint="lookalike eval … --save FOLDER/NAME"
        )
    if output_format == "json":
        output.as_json([dataclasses.asdict(place) for place in places])
        return
    rows = [
        {
            "run": place.run,
            metric: f"{place.value:.4f}",
            "95 % interval": f"{place.interval[0]:.4f} to {place.interval[1]:.4f}",
            "queries": place.num_evaluated,
            "encoder": place.encoder,
            "protocol": place.protocol,
        }
        for place in places
    ]
    output.as_rows(rows, output_format)
