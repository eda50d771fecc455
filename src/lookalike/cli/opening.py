"""Opening the catalogue a verb names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lookalike.cli.settings import catalogue_argument

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.external.store import ExternalStore

Function = TypeVar("Function", bound=Callable[..., Any])


def catalogue(function: Function) -> Function:
    """Add the CATALOGUE argument, whose `lookalike.toml` gives defaults, and --encoder."""
    named = click.argument("catalogue", type=click.Path(path_type=Path), is_eager=True, callback=catalogue_argument)
    chosen = click.option("--encoder", help="Which of the catalogue's encoders. [default: its first]")
    return named(chosen(function))


class Place(click.ParamType["Path | str"]):
    """A catalogue's folder, or the address of a store on an engine."""

    name = "STORE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """Keep an address as it is: a path would lose one of its slashes."""
        del param, ctx
        return value if isinstance(value, Path) or is_address(str(value)) else Path(value)


def store_argument(ctx: click.Context, param: click.Parameter, value: Path | str | None) -> Path | str | None:
    """Callback of an argument of type `Place`: a catalogue's `lookalike.toml` gives defaults; an engine has none."""
    return catalogue_argument(ctx, param, value) if isinstance(value, Path) else value


def is_address(text: str) -> bool:
    """Tell whether a text names a store on an engine (postgresql://…, milvus:…, env:…) rather than a folder."""
    return text.startswith(("postgresql://", "postgres://", "milvus:", "env:"))


def open_store(
    place: Path | str, *, encoder: str | None = None, readonly: bool = True, threads: int | None = None
) -> Catalogue | ExternalStore:
    """Open a catalogue, or the store on an engine whose address this is; both are context managers and a `Store`.

    Raises:
        EncoderMismatchError: no vectors of the encoder asked for.
        NotFoundError, CatalogueError, MissingExtraError: as each of them is opened.
    """
    if isinstance(place, Path) or not is_address(place):
        from lookalike.catalogue.named import open_named

        return open_named(place, encoder, readonly=readonly, threads=threads)
    from lookalike.catalogue.external.opening import open_external
    from lookalike.errors import EncoderMismatchError

    opened = open_external(place, threads=threads)
    if encoder is not None and encoder not in (opened.card.name, opened.card.digest):
        shown = opened.address
        opened.close()
        raise EncoderMismatchError(
            f"The store {shown} holds vectors of {opened.card.name}, not of {encoder!r}.",
            hint="Leave --encoder out, or push the other encoder into a table of its own.",
        )
    return opened
