"""lookalike export: a catalogue for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lookalike.cli import opening, output

FORMATS = ("parquet", "npy", "tsv", "trec", "atlas", "fiftyone")


@click.command("export")
@opening.catalogue
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("--format", "export_format", type=click.Choice(FORMATS), required=True,
              help="npy + CSV, Parquet, projector TSV, TREC run, embedding-atlas, FiftyOne.")  # fmt: skip
@click.option("--where", metavar="FILTER", help="Only items that pass.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="Neighbours, where it has them.")
@click.option("--label", metavar="COLUMN", help="Which items belong together (TREC, FiftyOne).")
def command(**settings: Any) -> None:
    """Write the vectors and columns of CATALOGUE to DESTINATION, which must not exist."""
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.export import ExportOptions, export

    chosen = ExportOptions(where=settings["where"], k=settings["k"], label=settings["label"])
    with Catalogue.open(settings["catalogue"], encoder=settings["encoder"], readonly=True) as catalogue:
        for path in export(catalogue, settings["destination"], settings["export_format"], options=chosen):
            output.data(str(path))
