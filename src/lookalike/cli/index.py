"""lookalike index: a folder of pictures into a new catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lookalike.cli import options, output
from lookalike.cli import photos as where
from lookalike.cli.sync import bring_up_to_date, check_tables

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue


@click.command("index")
@click.argument("catalogue", type=click.Path(path_type=Path))
@click.argument("photos", type=where.Photos())
@click.option("--encoder", default="builtin:effnet-lite0", show_default=True, help="See: lookalike models list.")
@click.option("--metric", type=click.Choice(["cosine", "ip", "l2"]), default="cosine", show_default=True,
              help="How vectors are compared, chosen once: an angle, an inner product or a distance.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True,
              help="How vectors are stored; float16 is half the bytes.")  # fmt: skip
@click.option("--raw", is_flag=True, help="Keep the encoder's own vector lengths (for ip and l2).")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE",
              help="A table of paths and columns to keep. [default: label = first folder]")  # fmt: skip
@click.option("--identity", metavar="COLUMN", help="The column that says WHICH object a picture shows.")
@click.option("--strict", is_flag=True, help="Store nothing where any file cannot be read.")
@click.option("--failures", type=click.Path(path_type=Path), metavar="FILE", help="Where unreadable files are listed.")
@where.spread
@options.output_format("table", "json")
@options.running
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    """Make CATALOGUE from the pictures in the folder PHOTOS: embed each, keep its vector, hash and size.

    PHOTOS may also be a manifest (a table with a column `path`, whose other columns are kept), or the URI of a folder
    in an object store: s3://bucket/photos.

    Run it again, or `lookalike sync`, to bring it up to date: only new and changed bytes are embedded, so that an
    interrupted run goes on where it stopped. With another --encoder its vectors are kept beside the first ones.
    """
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.errors import CatalogueError

    folder: Path = settings["catalogue"]
    photos: Path | str = settings["photos"]
    root = where.root_of(photos)
    if root != photos:
        settings["source"] = photos
    check_tables(root, settings)
    if (folder / "catalogue.db").exists():
        catalogue = _opened(ctx, folder, settings)
        if (catalogue.root and catalogue.root.resolve()) != (root and root.resolve()):
            raise CatalogueError(
                f"{str(folder)!r} is a catalogue of {str(catalogue.root)!r}, not of {str(photos)!r}.",
                hint="Choose another name for the new catalogue.",
            )
    else:
        _refuse_empty(photos)
        catalogue = Catalogue.create(
            folder, root=root, encoder=settings["encoder"], metric=settings["metric"], dtype=settings["dtype"],
            normalise=not settings["raw"], threads=settings["threads"],
        )  # fmt: skip
        _write_settings(folder, settings, loads_as=catalogue.card.name)
        if not settings["quiet"]:
            output.note(f"new catalogue {folder} of {photos}, encoder {catalogue.card.name}")
    with catalogue:
        ctx.exit(bring_up_to_date(catalogue, settings))


def _opened(ctx: click.Context, folder: Path, settings: dict[str, Any]) -> Catalogue:
    """Open a catalogue by the encoder that was named, making room for it where it is new, else by its first."""
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.catalogue.named import OWN_FILES, load_named

    def named(option: str) -> Any:
        return settings[option] if ctx.get_parameter_source(option) is not ParameterSource.DEFAULT else None

    encoder, metric = named("encoder"), named("metric")
    raw, threads = settings["raw"], settings["threads"]
    catalogue = Catalogue.open(folder, metric=metric, threads=threads)
    if encoder is None:
        return catalogue
    with catalogue:
        names = {card.name for card in catalogue.cards()}
        wanted: Any = encoder  # a published model is loaded, and compared, when there is something to embed
        if encoder not in names or encoder.startswith(OWN_FILES):
            wanted = load_named(catalogue, encoder, normalise=not raw, threads=threads) or encoder
        if encoder not in names and wanted.card.digest not in {card.digest for card in catalogue.cards()}:
            catalogue.add_encoder(wanted, dtype=settings["dtype"])
            if not settings["quiet"]:
                output.note(f"encoder {encoder} added to {folder}, beside {catalogue.card.name}")
    return Catalogue.open(folder, encoder=wanted, metric=metric, threads=threads)


def _refuse_empty(photos: Path | str) -> None:
    """Raise InputError where there is nothing to index, before anything is written."""
    from lookalike.errors import InputError
    from lookalike.images.scan import scan

    found = (where.lister(photos) or (lambda: scan(photos)))()
    if not found.files and not found.failed:
        passed = ", ".join(f"{count} {name}" for name, count in sorted(found.skipped.items()))
        hint = f"Passed over: {passed}." if passed else "It is empty."
        raise InputError(f"{str(photos)!r} holds no pictures.", hint=f"{hint} `lookalike formats` lists what is read.")


def _write_settings(folder: Path, settings: dict[str, Any], *, loads_as: str) -> None:
    """Keep what later verbs need as their default, in a file a person can edit.

    An object behind a `python:` name may have a card of another name, and nothing can be loaded by that one.
    """
    encoder = f"encoder = {_quoted(settings['encoder'])}"
    own_name = settings["encoder"].startswith("python:") and settings["encoder"] != loads_as
    lines = ["# Defaults of this catalogue, a table a verb: flags come before them.", "[sync]"]
    if "source" in settings:
        source = settings["source"]
        lines.append(f"source = {_quoted(source.resolve() if isinstance(source, Path) else source)}")
    if settings["labels"]:
        lines.append(f"labels = {_quoted(settings['labels'].resolve())}")
    if own_name:
        lines += [encoder, "[search]", encoder, "[serve]", encoder]
    if settings["identity"]:
        lines += ["[eval]", f"identity = {_quoted(settings['identity'])}"]
    (folder / "lookalike.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _quoted(value: object) -> str:
    r"""Write a text as TOML does.

    >>> print(_quoted('a "b"\\c😀'))
    "a \"b\"\\c😀"
    """
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", r"\u007f")
