"""lookalike sync: a catalogue and its folder made to agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output, photos
from lookalike.cli.failures import list_failures
from lookalike.cli.main import SOME_FILES_FAILED
from lookalike.cli.settings import catalogue_argument

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue


@click.command("sync")
@click.argument("catalogue", type=click.Path(path_type=Path), is_eager=True, callback=catalogue_argument)
@click.option("--encoder", help="Which of the catalogue's encoders. [default: its first]")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE",
              help="A table of paths and columns to keep. [default: label = first folder]")  # fmt: skip
@click.option(
    "--source",
    type=photos.Photos(),
    metavar="PHOTOS",
    help="The manifest, or the URI of the folder in an object store, that says which pictures there are.",
)
@click.option("--root", type=click.Path(path_type=Path), help="Where the folder of pictures has moved to.")
@click.option("--allow-empty", is_flag=True,
              help="That the folder holds none of the stored pictures is meant, and no unmounted drive.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Change nothing where any file cannot be read.")
@click.option("--failures", type=click.Path(path_type=Path), metavar="FILE", help="Where unreadable files are listed.")
@photos.spread
@options.output_format("table", "json")
@options.running
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    """Bring CATALOGUE up to date with its folder: added, updated, moved, removed, unchanged, failed.

    Only new and changed bytes are embedded. A killed run repeats at most one chunk.
    """
    from lookalike.catalogue.named import open_named

    with open_named(settings["catalogue"], settings["encoder"], threads=settings["threads"]) as catalogue:
        check_tables(settings["root"] or catalogue.root, settings)
        if settings["root"]:
            catalogue.set_root(settings["root"], allow_empty=settings["allow_empty"])
        ctx.exit(bring_up_to_date(catalogue, settings))


def check_tables(root: Path | None, settings: dict[str, Any]) -> None:
    """Raise what is wrong with --labels and --identity before anything is embedded or written.

    Raises:
        NotFoundError: no such table.
        InputError: a table that cannot be meant, a name that is not UTF-8, or no such column; those that exist are
            listed.
    """
    from lookalike.datasets.table import read_table
    from lookalike.errors import InputError

    if not settings["labels"]:
        return
    table = Path(settings["labels"])
    try:
        str(table.resolve()).encode()
    except UnicodeEncodeError:
        raise InputError(f"The name {str(table)!r} is not UTF-8, and lookalike.toml, which keeps it, is.") from None
    rows = read_table(table, root=root)
    if settings.get("identity"):
        rows.column(settings["identity"])


def bring_up_to_date(catalogue: Catalogue, settings: dict[str, Any]) -> int:
    """Sync, set columns, write the counts and return the exit code."""
    from lookalike.evaluate.labels import apply_folders

    quiet = settings["quiet"]
    source = settings.get("source")
    with (
        photos.worked(catalogue, settings) as work,
        output.progress("syncing", shown=settings["progress"] and not quiet) as report,
    ):
        result = catalogue.sync(
            strict=settings["strict"], allow_empty=settings.get("allow_empty", False), progress=report,
            source=photos.lister(source), work=work,
        )  # fmt: skip
    if source is not None and photos.is_table(source):
        photos.apply_rows(catalogue, Path(source))
    if settings["labels"]:
        _apply_table(catalogue, Path(settings["labels"]), quiet=quiet)
    else:  # also where nothing is new: an earlier run may have been killed between embedding and this
        apply_folders(catalogue)
    if settings["output_format"] == "json":
        output.as_json(result.to_dict())
    else:
        output.data(str(result))
        if result.skipped and not quiet:
            listed = ", ".join(f"{name} {count}" for name, count in sorted(result.skipped.items()))
            output.note(f"passed over: {listed}")
    list_failures(result.failed, result.items + len(result.failed), settings["failures"])
    return SOME_FILES_FAILED if result.failed else 0


def _apply_table(catalogue: Catalogue, table: Path, *, quiet: bool) -> None:
    from lookalike.evaluate.labels import apply_table

    done = apply_table(catalogue, table)
    if not quiet:
        output.note(f"columns {', '.join(done.columns)} set for {done.items} items")
        if done.unknown:
            output.note(f"{done.unknown} rows of {table} name pictures that are not in the catalogue")
