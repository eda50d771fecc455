"""Opening the catalogue a verb names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lookalike.cli.settings import catalogue_argument

Function = TypeVar("Function", bound=Callable[..., Any])


def catalogue(function: Function) -> Function:
    """Add the CATALOGUE argument, whose `lookalike.toml` gives defaults, and --encoder."""
    named = click.argument("catalogue", type=click.Path(path_type=Path), is_eager=True, callback=catalogue_argument)
    chosen = click.option("--encoder", help="Which of the catalogue's encoders. [default: its first]")
    return named(chosen(function))
