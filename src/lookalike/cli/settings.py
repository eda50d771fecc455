"""Settings a catalogue carries: `lookalike.toml` beside its database, between the flags and the defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lookalike.errors import InputError

FILE = "lookalike.toml"


def catalogue_argument(ctx: click.Context, _param: click.Parameter, value: Path) -> Path:
    """Callback of the catalogue argument: its settings become the defaults of the options not yet given.

    Raises:
        InputError: a setting this verb does not know, or a file that is no TOML.
    """
    if value is not None:
        ctx.default_map = {**(ctx.default_map or {}), **_section(value, ctx)}
    return value


def read(catalogue: Path) -> dict[str, Any]:
    """Return what `lookalike.toml` says, or nothing where there is none.

    Raises:
        InputError: it is no TOML; the place is named.
    """
    path = catalogue / FILE
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint="It holds lines such as: k = 20") from error


def _section(catalogue: Path, ctx: click.Context) -> Mapping[str, Any]:
    """Return the settings of one verb: the table of its name."""
    verb = ctx.info_name or ""
    section = read(catalogue).get(verb, {})
    if not isinstance(section, dict):
        raise InputError(f"{catalogue / FILE}: [{verb}] must be a table.")
    known = {name for parameter in ctx.command.params if (name := parameter.name)}
    given = {name.replace("-", "_"): value for name, value in section.items()}
    unknown = sorted(set(given) - known)
    if unknown:
        listed = ", ".join(sorted(known))
        raise InputError(f"{catalogue / FILE}: [{verb}] has no setting {unknown[0]!r}.", hint=f"It has: {listed}.")
    return given
