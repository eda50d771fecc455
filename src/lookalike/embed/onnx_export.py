"""A torch encoder written as a folder that needs no torch: networks, preprocessing, tokenizer, golden vectors."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Rgb, Vectors
from lookalike.embed.asked import Asked
from lookalike.embed.builtin import golden
from lookalike.embed.encoder import Encoder
from lookalike.embed.extras import library, require
from lookalike.embed.network import TorchEncoder, as_input
from lookalike.embed.onnx_file import (
    DESCRIPTION,
    FEATURES,
    FORMAT,
    GOLDEN,
    IMAGES,
    PIXELS,
    TEXTS,
    TOKENISER,
    OnnxEncoder,
)
from lookalike.embed.options import Options
from lookalike.embed.placement import SAFE
from lookalike.embed.pooling import tower
from lookalike.embed.rows import normalise
from lookalike.embed.steps import Steps
from lookalike.errors import InputError, InputTypeError, LookalikeError

TOLERANCE = 1e-3
"""Largest difference of an entry of a unit vector between the original and its export."""
OPSET = 18
_VERSIONED = ("lookalike", "torch", "timm", "open_clip_torch", "transformers", "onnx", "onnxruntime")
_PROBES = ("a photo of a red shoe", "two cups on a table", "")


@dataclass(frozen=True)
class Exported:
    """What was written, and how far its vectors are from the original's."""

    folder: Path
    worst_image: float
    worst_text: float | None
    nbytes: int


def export(
    encoder: Encoder, folder: Path, *, text: bool = True, pictures: Sequence[Rgb] = (), replace: bool = False
) -> Exported:
    """Write `folder` and check it against the original on the golden pictures, on `pictures` and on a few texts.

    The networks are traced in float32 on the processor. Resizing and cropping stay outside, in `encoder.json`, done
    by Pillow; scaling is inside the network, whose input is (n, side, side, 3) uint8.

    Raises:
        MissingExtraError: onnx or onnxscript is not installed.
        InputTypeError: not an encoder of timm, open_clip or transformers.
        InputError: the folder is not empty, or the preprocessing or the tokenizer cannot be written down.
        LookalikeError: the export computes something else; the folder is then left without `encoder.json`.
    """
    require("onnx", "onnxscript", feature="Exporting a model", extra="train")
    if not isinstance(encoder, TorchEncoder):
        raise InputTypeError(
            f"{encoder.card.name} is no network of timm, open_clip or transformers, so there is nothing to export.",
            hint="The built-in encoder and onnx: encoders run without torch as they are.",
        )
    _check_target(folder, replace)
    steps = encoder.network.preparation.portable
    if steps is None:
        raise InputError(f"The preprocessing of {encoder.card.name} has no form that works without its library.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DESCRIPTION).unlink(missing_ok=True)
    with _on_processor(encoder), _quiet():
        _write_images(encoder, steps, folder)
        described = _description(encoder, steps) | {"text": _write_texts(encoder, folder) if text else None}
    np.save(folder / GOLDEN, encoder.golden_vectors(SAFE))
    part = folder / f"{DESCRIPTION}.part"
    part.write_text(json.dumps(described, indent=2), encoding="utf-8")
    part.rename(folder / DESCRIPTION)
    try:
        return _checked(encoder, folder, pictures)
    except LookalikeError:
        (folder / DESCRIPTION).unlink()
        raise


def quantise(folder: Path, target: Path, *, convolutions: bool = False, replace: bool = False) -> Path:
    """Write a copy of an exported folder whose matrix products use 8-bit weights (ONNX Runtime, dynamic).

    It is another encoder: its vectors differ by more than rounding, by how much is measured where it is made (see
    `evaluate.fidelity`). `convolutions` shrinks those too; on a processor that costs speed instead of saving it:
    EfficientNet-Lite0 takes 16 ms a picture instead of 5, and its neighbours change.

    Raises:
        InputError: `target` is not empty, or the network has nothing that would be shrunk.
    """
    onnx = library("onnx", feature="Making an 8-bit model", extra="train")
    _check_target(target, replace)
    kinds = ["MatMul", "Gemm", *(["Conv"] if convolutions else [])]
    described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    if not any(node.op_type in kinds for node in onnx.load(folder / IMAGES).graph.node):
        raise InputError(
            f"The network in {str(folder)!r} has no matrix products to shrink; it is made of convolutions.",
            hint="Use it as it is: ONNX Runtime runs 8-bit convolutions slower than float32 ones.",
        )
    target.mkdir(parents=True, exist_ok=True)
    with _quiet():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        kind = QuantType.QUInt8 if convolutions else QuantType.QInt8  # ConvInteger has no signed weights
        for name in (IMAGES, TEXTS):
            if (folder / name).is_file():
                quantize_dynamic(folder / name, target / name, weight_type=kind, op_types_to_quantize=kinds)
    if (folder / TOKENISER).is_file():
        (target / TOKENISER).write_bytes((folder / TOKENISER).read_bytes())
    made = described | {"quantised": f"dynamic int8 ({', '.join(kinds)})"}
    (target / DESCRIPTION).write_text(json.dumps(made, indent=2), encoding="utf-8")
    np.save(target / GOLDEN, OnnxEncoder(target, Asked(source="onnx", model=str(target)), Options()).golden_vectors())
    return target


def _check_target(folder: Path, replace: bool) -> None:
    if folder.exists() and any(folder.iterdir()) and not replace:
        raise InputError(f"The folder {str(folder)!r} is not empty.", hint="Name a new one, or pass --replace.")


def _write_images(encoder: TorchEncoder, steps: Steps, folder: Path) -> None:
    torch = library("torch", feature="Exporting a model", extra="train")
    network = dataclasses.replace(encoder.network, preparation=steps)

    def forward(pixels: Any) -> Any:
        return network.features(as_input(pixels, steps))

    sample = torch.from_numpy(np.stack([steps.with_one_view(picture) for picture in golden.pictures()[:2]]))
    _trace(tower(network.module, forward), (sample,), [PIXELS], folder / IMAGES)


def _write_texts(encoder: TorchEncoder, folder: Path) -> dict[str, Any] | None:
    texts = encoder.network.texts
    if texts is None:
        return None
    if texts.save_tokeniser is None:
        raise InputError("The tokenizer cannot be written down.", hint="Export the picture half with --no-text.")
    texts.save_tokeniser(folder / TOKENISER)
    torch = library("torch", feature="Exporting a model", extra="train")
    tokens = texts.tokenise(_PROBES[:2])
    sample = tuple(torch.from_numpy(value) for value in tokens.values())
    _trace(tower(encoder.network.module, texts.features), sample, list(tokens), folder / TEXTS)
    return {"inputs": list(tokens), "padding": texts.padding}


def _trace(module: Any, sample: tuple[Any, ...], names: list[str], path: Path) -> None:
    """Write one network with any batch size; the weights go into the file itself."""
    torch = library("torch", feature="Exporting a model", extra="train")
    batch = torch.export.Dim("n", min=1, max=1024)
    with torch.no_grad():
        program = torch.onnx.export(
            module, sample, input_names=names, output_names=[FEATURES], opset_version=OPSET, dynamo=True,
            dynamic_shapes=(tuple({0: batch} for _ in sample),),  # one tuple: `Tower.forward` takes *inputs
            verbose=False, optimize=True,
        )  # fmt: skip
    program.save(str(path), external_data=False)


def _description(encoder: TorchEncoder, steps: Steps) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "card": encoder.card.to_dict(),
        "pooling": encoder.network.pooling,
        "steps": steps.to_dict(),
        "flip": encoder.network.asked.flip,
        "quantised": None,
        "versions": {name: version for name in _VERSIONED if (version := _version(name))},
    }


def _checked(encoder: TorchEncoder, folder: Path, pictures: Sequence[Rgb]) -> Exported:
    made = OnnxEncoder(folder, Asked(source="onnx", model=str(folder)), Options())
    images = [*golden.pictures(), *pictures]
    worst = _difference(encoder.encode_images(images), made.encode_images(images))
    worst_text = None
    if made.description["text"] is not None:
        worst_text = _difference(encoder.encode_texts(_PROBES), made.encode_texts(_PROBES))
    for what, value in (("pictures", worst), ("texts", worst_text or 0.0)):
        if not value <= TOLERANCE:
            raise LookalikeError(
                f"The export of {encoder.card.name} is off by {value:.2g} on {what}, more than {TOLERANCE:g}.",
                hint="Its vectors would not be the model's; use the model itself.",
            )
    return Exported(folder, worst, worst_text, sum(path.stat().st_size for path in folder.iterdir()))


def _difference(left: Vectors, right: Vectors) -> float:
    return float(np.abs(normalise(left) - normalise(right)).max())


@contextlib.contextmanager
def _on_processor(encoder: TorchEncoder) -> Iterator[None]:
    """Trace on the processor, whatever device the encoder runs on."""
    encoder.network.module.to("cpu")
    try:
        yield
    finally:
        encoder.network.module.to(encoder.placement.device)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' own notes about their inner workings off standard error."""
    loggers = [logging.getLogger(name) for name in ("torch", "onnxscript", "onnx_ir", "root", "")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
