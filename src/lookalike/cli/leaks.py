"""lookalike leaks: pictures that stand on both sides of a split."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from lookalike.cli import options, output, sources
from lookalike.cli.main import CHECK_FAILED, SOME_FILES_FAILED

SHOWN = 20  # pairs printed before "… and N more"; --format jsonl prints all


@click.command("leaks")
@sources.measured
@click.option("--at-least", type=float, default=0.97, show_default=True, help="Cosine of a near-duplicate.")
@click.option("--unique-identities", is_flag=True, help="An --identity on both sides is a leak too (training splits).")
@click.option("--fail", is_flag=True, help="Exit with 1 where anything leaks.")
@options.output_format("table", "json", "jsonl", "csv")
@options.running
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    r"""Find pictures that stand on both sides of a split, or twice in one set: they turn copying into recall.

    Five kinds: the same item, the same bytes, the same pixels, near-duplicates (cosine of at least --at-least), and,
    with --unique-identities, an identity that is on both sides.

    \b
    lookalike leaks photos/ --fail
    lookalike leaks manifest.csv --split-column split --query-split test --gallery-split train
    """
    from lookalike.cli.eval_inputs import read_inputs
    from lookalike.evaluate.leaks import MEANING, counts, find_leaks

    if settings["unique_identities"] and not settings["identity"]:
        raise click.UsageError("--unique-identities needs --identity COLUMN.")
    inputs = read_inputs(settings)
    identity = settings["identity"] if settings["unique_identities"] else None
    found = find_leaks(
        inputs.queries, inputs.gallery, identity=identity, at_least=settings["at_least"], threads=settings["threads"]
    )
    rows = [dataclasses.asdict(leak) for leak in found]
    if settings["output_format"] == "json":
        output.as_json({"counts": counts(found), "at_least": settings["at_least"], "leaks": rows})
    elif settings["output_format"] in ("jsonl", "csv"):
        output.as_rows(rows, settings["output_format"])
    else:
        tally = counts(found)
        for level, meaning in MEANING.items():
            output.data(f"{tally[level]:6} {level}: {meaning}")
        output.as_table([row | {"cosine": f"{row['cosine']:.4f}"} for row in rows[:SHOWN]])
        if len(rows) > SHOWN:
            output.note(f"… and {len(rows) - SHOWN} more: --format jsonl lists all")
    if found and settings["fail"]:
        ctx.exit(CHECK_FAILED)
    ctx.exit(SOME_FILES_FAILED if inputs.failures else 0)
