"""lookalike backup: a copy of a catalogue as of one moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lookalike.cli import opening, output


@click.command("backup")
@opening.catalogue
@click.argument("destination", type=click.Path(path_type=Path))
def command(catalogue: Path, destination: Path, **_settings: Any) -> None:
    """Copy CATALOGUE to the new folder DESTINATION while others read and write; the copy is a catalogue itself."""
    from lookalike.catalogue.catalogue import Catalogue

    with Catalogue.open(catalogue, readonly=True) as opened:
        path = opened.backup(destination)
        output.data(str(path))
        output.note(f"{len(opened):,} items; derived files are left out and made again at the next sync")
