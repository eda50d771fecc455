"""lookalike demo: the main job on generated pictures, offline, in under a minute."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lookalike.cli import options, output

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue


@click.command("demo")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True,
              help="Where pictures, catalogue and reports go.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other pictures.")
@options.running
def command(folder: Path, seed: int, quiet: bool, progress: bool, threads: int | None, offline: bool) -> None:
    """Make a catalogue of generated pictures and run the main job on it, offline.

    Renders about 600 pictures of known kind (WHAT: mug, chair, …) and of known object (WHICH mug), embeds them with
    the built-in encoder and measures how often the nearest picture shows the right kind, and the right object.
    """
    from lookalike.cli.demo_sheet import contact_sheet
    from lookalike.datasets.table import read_table

    started = time.perf_counter()

    def say(text: str) -> None:
        if not quiet:
            output.note(f"[{time.perf_counter() - started:5.1f} s] {text}")

    manifest = _render(folder / f"pictures-{seed}", seed, threads, say)
    pictures = read_table(manifest)
    shop = folder / f"demo-{seed}.la"
    with _catalogue(shop, manifest.parent, threads) as catalogue:
        say(f"embedding {len(pictures)} pictures with {catalogue.card.name} into {shop}")
        with output.progress("embedding", shown=progress and not quiet) as report:
            catalogue.sync(progress=report)
        catalogue.set_columns(dict(pictures.columns), paths=pictures.names)
        say("measuring (the first time also compiles, once for this machine)")
        _measure(catalogue, folder, seed, threads)
        sheet = contact_sheet(catalogue, folder / "results.jpg", seed=seed)
    say(f"done. A picture of real results: {sheet}")
    query = f"{manifest.parent}/{pictures.names[0]}"
    output.data(NEXT.format(shop=shop, query=query))


def _render(pictures: Path, seed: int, threads: int | None, say: Callable[[str], None]) -> Path:
    """Return the manifest of the generated pictures, drawn now or by an earlier demo."""
    from lookalike.datasets.generated import generate

    manifest = pictures / "manifest.csv"
    if manifest.exists():
        say(f"the pictures are in {pictures}/")
        return manifest
    say(f"drawing 600 pictures into {pictures}/")
    return generate(pictures, seed=seed, workers=threads)


def _catalogue(shop: Path, pictures: Path, threads: int | None) -> Catalogue:
    from lookalike.catalogue.catalogue import Catalogue

    if (shop / "catalogue.db").exists():
        return Catalogue.open(shop, threads=threads)
    return Catalogue.create(shop, root=pictures, threads=threads)


def _measure(catalogue: Catalogue, folder: Path, seed: int, threads: int | None) -> None:
    """Print what was measured of kind and of object, and keep the whole reports."""
    from lookalike.evaluate.run import measure
    from lookalike.evaluate.sides import Side

    ids = catalogue.ids()
    columns = {name: catalogue.column(name, ids) for name in ("label", "identity")}
    side = Side(vectors=catalogue.vectors(ids), ids=ids, columns=columns, names=tuple(catalogue.paths(ids)))
    for column, question in QUESTIONS.items():
        result = measure(
            side, side, relevance=column, split="leave-one-out", card=catalogue.card, seed=seed, threads=threads
        ).save(_free(folder / "runs" / column))
        output.data(f"# {question}")
        output.data(result.to_text(blocks=("evaluation", "recall", "diagnosis")))
        output.data(f"# intervals, definitions and every query: {result.run}\n")


def _free(run: Path) -> Path:
    """Return the first name of a run that is not taken: a run is never written over."""
    return next(path for n in itertools.count(1) if not (path := run.with_name(f"{run.name}-{n}")).exists())


QUESTIONS = {
    "label": "WHAT is it? The nearest other pictures, and whether one of the first K shows the same kind of thing",
    "identity": "WHICH one is it? The same, for the very same object: harder for an encoder that was never told",
}

NEXT = """# Next
lookalike search {shop} {query} -k 5
lookalike eval {shop} --relevance identity
lookalike eval YOUR_FOLDER --holdout 0.2        # your pictures, a folder a class
"""
