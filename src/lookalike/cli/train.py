"""lookalike train: labels to better vectors, judged by identities that were never seen."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lookalike.cli import options, output, sources
from lookalike.cli.main import SOME_FILES_FAILED

if TYPE_CHECKING:
    from lookalike.train import EpochRecord, Material, Settings, Trained


@click.command("train")
@sources.measured
@click.option("--loss", default="triplet", show_default=True, help="triplet, contrastive, ntxent, proxy-anchor, …")
@click.option("--margin", type=float, help="Of the loss, where it has one. [default: the loss's own]")
@click.option("--loss-set", multiple=True, metavar="KEY=VALUE", help="Any other option of the loss.")
@click.option("--mining", help="all, batch-hard, semi-hard, semi-hard-pairs. [default: the loss's own]")
@click.option("-P", "classes", type=click.IntRange(min=2), default=16, show_default=True, help="Classes in a batch.")
@click.option("-K", "per_class", type=click.IntRange(min=2), default=4, show_default=True, help="Pictures of each.")
@click.option("--epochs", type=click.IntRange(min=1), default=30, show_default=True, help="Passes at most.")
@click.option("--dim", type=click.IntRange(min=2), default=128, show_default=True, help="Length of the new vector.")
@click.option("--layers", type=click.IntRange(1, 2), default=1, show_default=True, help="Layers of the head.")
@click.option("--start", type=click.Choice(["pca", "whitening", "random"]), default="pca", show_default=True,
              help="Of the head: main directions of the vectors, the same at equal variance, or chance.")  # fmt: skip
@click.option("--learning-rate", type=float, default=1e-3, show_default=True, help="Step size of the optimiser.")
@click.option(
    "--memory", type=click.IntRange(min=0), default=0, show_default=True, help="Earlier vectors compared with."
)
@click.option("--backbone", is_flag=True, help="Fine-tune the whole network too; needs the pictures.")
@click.option("--test", "test_share", type=float, default=0.3, show_default=True, help="Share of identities held out.")
@click.option("--patience", type=click.IntRange(min=1), default=5, show_default=True, help="Epochs without a gain.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the run is kept. [default: runs/train-N]")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in --out.")
@options.output_format("table", "jsonl", "json")
@options.running
@click.pass_context
def command(ctx: click.Context, /, **settings: Any) -> None:
    r"""Fine-tune: a head on the vectors of SOURCE (a catalogue, a folder, a manifest), or the whole network.

    Whole identities are held out; each epoch says what they say, and the end compares the new vectors with the frozen
    ones on identities that neither trained nor chose. It is called better only where the interval leaves out zero.
    The run is an encoder: --encoder run:FOLDER.

    \b
    lookalike train shop.la --loss proxy-anchor --epochs 30
    lookalike train photos/ --loss triplet --margin 0.2 --mining semi-hard -P 16 -K 4
    """
    from lookalike.cli.eval_inputs import read_inputs
    from lookalike.errors import InputError
    from lookalike.train import train

    chosen = _settings(settings)
    inputs = read_inputs({**settings, "holdout": None})
    side = inputs.queries
    if settings["holdout"] is not None:
        raise click.UsageError("The share held out is --test here.")
    material = _material(side, inputs, settings)
    folder = settings["out"] or _free(Path("runs"))
    if folder.exists() and not settings["resume"] and any(folder.iterdir()):
        raise InputError(f"{str(folder)!r} already holds something.", hint="Name a new --out, or --resume it.")
    done = train(material, chosen, folder=folder, resume=settings["resume"], on_epoch=_shown(settings))
    _close(done, settings)
    ctx.exit(SOME_FILES_FAILED if inputs.failures else 0)


def _settings(settings: Mapping[str, Any]) -> Settings:
    from lookalike.train import Backbone, HeadSettings, Settings, make_loss

    given = dict(part.split("=", 1) if "=" in part else (part, "") for part in settings["loss_set"])
    if settings["margin"] is not None:
        given["margin"] = str(settings["margin"])
    return Settings(
        loss=make_loss(settings["loss"], given),
        mining=settings["mining"],
        head=HeadSettings(dim=settings["dim"], layers=settings["layers"], start=settings["start"]),
        backbone=Backbone() if settings["backbone"] else None,
        classes=settings["classes"],
        per_class=settings["per_class"],
        epochs=settings["epochs"],
        learning_rate=settings["learning_rate"],
        memory=settings["memory"],
        holdout=settings["test_share"],
        patience=settings["patience"],
        seed=settings["seed"],
        threads=settings["threads"],
    )


def _material(side: Any, inputs: Any, settings: Mapping[str, Any]) -> Material:
    from lookalike.train import Material

    return Material(
        vectors=side.vectors,
        labels=list(side.column(inputs.relevance)),
        names=side.names,
        encoder=inputs.card.name if inputs.card else "",
        card=inputs.card,
        pictures=[Path(path) for path in side.paths] if settings["backbone"] else None,
    )


def _free(folder: Path) -> Path:
    return next(path for n in itertools.count(1) if not (path := folder / f"train-{n}").exists())


def _shown(settings: Mapping[str, Any]) -> Any:
    def show(record: EpochRecord) -> None:
        if settings["output_format"] == "jsonl":
            output.as_jsonl([record.to_dict()])
        elif not settings["quiet"]:
            output.note(str(record))

    return show


def _close(done: Trained, settings: Mapping[str, Any]) -> None:
    """Write the last object: what the held-out identities say of before and after."""
    if settings["output_format"] == "jsonl":
        output.as_jsonl([done.to_dict()])
    elif settings["output_format"] == "json":
        output.as_json(done.to_dict() | {"history": [record.to_dict() for record in done.records]})
    else:
        for note in done.plan.notes:
            output.note(note)
        output.data(
            f"{len(done.records)} epochs, the best was {done.best_epoch}"
            + (f"; {done.stopped}" if done.stopped else "")
        )
        output.data(done.verdict.sentence if done.verdict else "Nothing was held out, so nothing is claimed.")
        if done.folder is not None:
            output.data(f"encoder: run:{done.folder}")
