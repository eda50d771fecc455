"""lookalike formats: which picture formats can be read here."""

from __future__ import annotations

import click

from lookalike.cli import options, output


@click.command("formats")
@options.output_format("table", "json", "csv")
def command(output_format: str) -> None:
    """List the picture formats this installation reads."""
    from lookalike.images.formats import readable_formats

    rows = [
        {
            "format": row.name,
            "extensions": " ".join(row.extensions) if output_format != "json" else list(row.extensions),
            "readable": row.available if output_format == "json" else ("yes" if row.available else "no"),
            "description": row.description,
        }
        for row in readable_formats()
    ]
    output.as_rows(rows, output_format)
