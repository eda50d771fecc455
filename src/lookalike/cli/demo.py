"""lookalike demo: the main job on generated pictures, offline, in under a minute."""

from __future__ import annotations

import time
from pathlib import Path

import click

from lookalike.cli import options, output


@click.command("demo")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True,
              help="Where the generated pictures and the reports go.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other pictures.")
@options.running
def command(folder: Path, seed: int, quiet: bool, progress: bool, threads: int | None, offline: bool) -> None:
    """Make a catalogue of generated pictures and run the main job on it, offline.

    Renders about 600 pictures of known kind (WHAT: mug, chair, …) and of known object (WHICH mug), embeds them with
    the built-in encoder and measures how often the nearest picture shows the right kind, and the right object.
    """
    from lookalike.cli.demo_sheet import contact_sheet
    from lookalike.datasets.generated import generate
    from lookalike.datasets.table import read_table
    from lookalike.embed.pipeline import encode_all
    from lookalike.embed.registry import encoder as find_encoder
    from lookalike.evaluate.run import measure
    from lookalike.evaluate.sides import Side

    started = time.perf_counter()

    def say(text: str) -> None:
        if not quiet:
            output.note(f"[{time.perf_counter() - started:5.1f} s] {text}")

    say(f"rendering pictures into {folder}/ (seed {seed})")
    pictures = read_table(generate(folder, seed=seed))
    encoder = find_encoder("builtin:effnet-lite0", threads=threads)
    say(f"embedding {len(pictures)} pictures with builtin:effnet-lite0")
    with output.progress("embedding", shown=progress and not quiet) as report:
        vectors = encode_all(pictures.paths, encoder, threads=threads, progress=report)
    say("measuring")
    side = Side.of_pictures(pictures, vectors)
    for what, column in (("WHAT is it? (kind)", "label"), ("WHICH one is it? (object)", "identity")):
        result = measure(side, side, relevance=column, card=encoder.card, seed=seed, threads=threads)
        path = folder / "runs" / column
        result.save(path)
        output.data(f"# {what}: the nearest other picture has the same {column}\n")
        output.data(result.to_text())
    sheet = contact_sheet(pictures, vectors, folder / "results.jpg", seed=seed, threads=threads)
    say(f"looked-up examples: {sheet}; reports: {folder / 'runs'}")
    output.data(NEXT.format(folder=folder))


NEXT = """# Next
lookalike eval {folder}/manifest.csv --relevance identity                        # the second report again
lookalike eval YOUR_FOLDER --holdout 0.2                  # your pictures, a folder a class
lookalike models list                                     # stronger encoders
"""
