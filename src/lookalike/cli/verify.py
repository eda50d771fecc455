"""lookalike verify: is the catalogue sound?"""

from __future__ import annotations

from typing import Any

import click

from lookalike.cli import opening, options, output
from lookalike.cli.main import CHECK_FAILED


@click.command("verify")
@opening.catalogue
@click.option(
    "--sample", type=click.IntRange(min=0), default=32, show_default=True, help="Files hashed and embedded again."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the sample.")
@options.output_format("table", "json")
@options.running
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    """Check CATALOGUE: its database, its counts, its stamps, and a sample of its vectors made again.

    Changes nothing; exits with 1 where something is wrong.
    """
    from lookalike.catalogue.catalogue import Catalogue

    with Catalogue.open(
        settings["catalogue"], encoder=settings["encoder"], readonly=True, threads=settings["threads"]
    ) as catalogue:
        result = catalogue.verify(sample=settings["sample"], seed=settings["seed"])
    if settings["output_format"] == "json":
        output.as_json(result.to_dict())
    else:
        for name, count in result.checked.items():
            wrong = [problem.detail for problem in result.problems if problem.check == name]
            output.data(f"{'wrong' if wrong else 'ok':5}  {name} ({count:,})")
            for detail in wrong:
                output.data(f"       {detail}")
        for note in result.notes:
            output.note(note)
    ctx.exit(0 if result.ok else CHECK_FAILED)
