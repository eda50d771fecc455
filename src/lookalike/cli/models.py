"""lookalike models: which encoders there are."""

from __future__ import annotations

import dataclasses

import click

from lookalike.cli import options, output


@click.group("models")
def command() -> None:
    """List the encoders and what each is good for."""


@command.command("list")
@options.output_format("table", "json", "csv")
def list_models(output_format: str) -> None:
    """List every encoder that `--encoder` takes here, and whether it is on disk."""
    from lookalike.embed.registry import known_models

    rows = [dataclasses.asdict(row) for row in known_models()]
    if output_format == "table":
        for row in rows:
            row["on_disk"] = "yes" if row["on_disk"] else "no"
    output.as_rows(rows, output_format)
