"""lookalike models: which encoders there are, and the files behind them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lookalike.cli import options, output
from lookalike.errors import InputError

_MOST_PICTURES = 400
"""Pictures of --pictures that are looked at: enough for an interval of a few percent, and minutes at most."""

_pictures = click.option(
    "--pictures", "folder", type=click.Path(exists=True, path_type=Path),
    help=f"A folder of pictures to compare on, at most {_MOST_PICTURES} of it.",
)  # fmt: skip


@click.group("models")
def command() -> None:
    """List the encoders and what each is good for; fetch, find, export and check their files."""


@command.command("list")
@options.output_format("table", "json", "csv")
def list_models(output_format: str) -> None:
    """List encoders by name, what each is good for, and whether it is on disk.

    Same product, instance or near-duplicate: DINOv2 or DINOv3. Words as queries: CLIP, SigLIP, SigLIP 2, MobileCLIP.
    The built-in encoder, ResNet, EfficientNet and ConvNeXt are the baselines. Every other model of timm, open_clip and
    the Hugging Face hub works too, by its name.
    """
    from lookalike.embed.registry import known_models

    rows = [dataclasses.asdict(row) for row in known_models()]
    if output_format == "table":
        for row in rows:
            row["on_disk"] = "yes" if row["on_disk"] else "no"
    output.as_rows(rows, output_format)


@command.command("pull")
@click.argument("name")
@click.option("--offline", is_flag=True, help="Open no socket: only say whether the model is here.")
def pull_model(name: str, offline: bool) -> None:
    """Fetch the model NAME into the hub's cache and print where it lies: the only command that downloads a model."""
    from lookalike.embed.download import pull

    output.data(str(pull(name, offline=offline)))


@command.command("path")
@click.argument("name")
def model_path(name: str) -> None:
    """Print where the files of the model NAME lie on this machine, or what is missing and how to supply it."""
    from lookalike.embed.download import where

    found = where(name)
    if found is None:
        raise InputError(f"{name} has random weights, and so no file.")
    output.data(str(found))


@command.command("export")
@click.argument("name")
@click.argument("target", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path))
@click.option("--int8", is_flag=True, help="Also write FOLDER-int8 with 8-bit weights, and measure what that costs.")
@click.option("--text/--no-text", default=True, show_default=True, help="Export the text half too, where there is one.")
@click.option("--replace", is_flag=True, help="Overwrite a folder that is not empty.")
@_pictures
@options.output_format("table", "json")
def export_model(
    name: str, target: Path, int8: bool, text: bool, replace: bool, folder: Path | None, output_format: str
) -> None:
    """Write the model NAME to FOLDER as ONNX, with its preprocessing and tokenizer: the encoder onnx:FOLDER.

    It needs no torch. Its vectors are checked against the original's to 1e-3 before it counts as written.
    """
    from lookalike.embed.onnx_export import export, quantise
    from lookalike.embed.registry import encoder
    from lookalike.evaluate.fidelity import fidelity

    if int8 and folder is None:
        raise click.UsageError("--int8 needs --pictures FOLDER: its loss is measured on pictures of yours.")
    original = encoder(name)
    images = _read(folder)
    done = export(original, target, text=text, pictures=images, replace=replace)
    rows = [
        {"encoder": f"onnx:{target}", "bytes": done.nbytes, "against the original": _differences(done)},
    ]
    if int8:
        small = quantise(target, target.with_name(f"{target.name}-int8"), replace=replace)
        loss = fidelity(original.encode_images(images), encoder(f"onnx:{small}").encode_images(images))
        nbytes = sum(path.stat().st_size for path in small.iterdir())
        rows.append({"encoder": f"onnx:{small}", "bytes": nbytes, "against the original": str(loss)})
    output.as_rows(rows, output_format)


@command.command("check")
@click.argument("name")
@_pictures
@options.output_format("table", "json")
@click.pass_context
def check_model(ctx: click.Context, name: str, folder: Path | None, output_format: str) -> None:
    """Check the encoder NAME: its vectors against the golden ones, and that no vector depends on its batch.

    The golden vectors are those of the first check on this machine (or of the export): a later version of a library
    that computes something else is noticed. Leaves with 1 where a check fails.
    """
    from lookalike.embed.registry import encoder
    from lookalike.embed.verify import check

    found = encoder(name)
    findings = check(found, pictures=_read(folder), record=_golden_of(name))
    rows: list[dict[str, Any]] = [
        {"what": each.what, "state": "ok" if each.ok else "failed", "detail": each.detail} for each in findings
    ]
    if folder is not None:
        rows.append({"what": "shapes", "state": "note", "detail": str(_aspects(folder))})
    card = found.card.to_dict()
    if output_format == "json":
        output.as_json({"ok": all(each.ok for each in findings), "card": card, "checks": rows})
    else:
        output.as_table([*({"what": key, "state": "", "detail": value} for key, value in card.items()), *rows])
    if not all(each.ok for each in findings):
        ctx.exit(1)


def _differences(done: Any) -> str:
    words = "" if done.worst_text is None else f", {done.worst_text:.1e} on texts"
    return f"largest difference {done.worst_image:.1e} on pictures{words}"


def _golden_of(name: str) -> Path | None:
    """Return the golden vectors that lie beside an exported network."""
    if not name.startswith("onnx:"):
        return None
    from lookalike.embed.onnx_file import GOLDEN

    path = Path(name.removeprefix("onnx:").partition("?")[0])
    return (path.parent if path.suffix == ".onnx" else path) / GOLDEN


def _paths(folder: Path) -> list[str]:
    """Return at most `_MOST_PICTURES` paths, evenly from all of the folder."""
    from lookalike.images.scan import scan

    files = scan(folder).files
    step = max(1, -(-len(files) // _MOST_PICTURES))
    return [file.absolute for file in files[::step]]


def _read(folder: Path | None) -> Sequence[Any]:
    from lookalike.errors import ImageError
    from lookalike.images.load import load

    images = []
    for path in _paths(folder) if folder is not None else ():
        try:
            images.append(load(path).pixels)
        except ImageError as error:
            output.note(f"left out: {error}")
    if folder is not None and not images:
        raise InputError(f"There is no readable picture in {str(folder)!r}.")
    return images


def _aspects(folder: Path) -> Any:
    from lookalike.embed.aspect import beyond_aspect
    from lookalike.errors import ImageError
    from lookalike.images.load import load

    sizes = {}
    for path in _paths(folder):
        try:
            sizes[path] = load(path, short_side=1).size
        except ImageError:
            continue
    return beyond_aspect(sizes)
