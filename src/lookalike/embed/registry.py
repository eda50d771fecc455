"""Encoder names to encoders: one table, `source:model`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lookalike.embed.builtin import BuiltinEncoder
from lookalike.embed.builtin.effnet_lite0 import DIM as BUILTIN_DIM
from lookalike.embed.builtin.effnet_lite0 import NAME as BUILTIN
from lookalike.embed.encoder import Encoder, is_encoder
from lookalike.embed.function import FunctionEncoder, ImageFunction
from lookalike.embed.options import Options
from lookalike.embed.ready import SUFFIX, VectorsEncoder, load_vectors
from lookalike.embed.run import load_run
from lookalike.errors import InputTypeError, UnknownNameError

EncoderLike: TypeAlias = "str | os.PathLike[str] | Encoder | ImageFunction | np.ndarray[Any, Any]"


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """One line of `lookalike models list`."""

    name: str
    dim: int
    image_size: int
    licence: str
    good_for: str
    on_disk: bool


def encoder(source: EncoderLike, *, normalise: bool = True, threads: int | None = None) -> Encoder:
    """Return the encoder that a name, a function, an object or ready vectors stand for.

    Names: `builtin:effnet-lite0`, `timm:MODEL`, `open_clip:ARCH/TAG`, `hf:ORG/NAME`, `onnx:FOLDER`, `run:FOLDER`,
    `python:package.module:callable`, the path of a `.npy` file. An object with `card` and `encode_images` comes back
    as it is, whatever the options. Options that change a vector stand in the name, see `asked.Asked`. No model is
    ever fetched here: one that is not on this machine is an error that says how it gets here.

    Raises:
        UnknownNameError: a source or model in no table; the right spellings are listed.
        InputTypeError: no name, function, encoder or array.
        NotFoundError: a `.npy` file, or the files of a model, that are not there.
        MissingExtraError: the library of that source is not installed.

    >>> encoder("builtin:effnet-lite0").card.dim
    1280
    >>> encoder("builtin:effnet-lit0")
    Traceback (most recent call last):
    ...
    lookalike.errors.UnknownNameError: There is no encoder named 'builtin:effnet-lit0'. Did you mean \
'builtin:effnet-lite0'? Known: builtin:effnet-lite0, python:PACKAGE.MODULE:CALLABLE, run:FOLDER, PATH.npy, \
timm:MODEL, open_clip:ARCH/TAG, hf:ORG/NAME, onnx:FOLDER.
    """
    options = Options(normalise=normalise, threads=threads)
    if isinstance(source, str | os.PathLike):
        return _named(os.fspath(source), options)
    if is_encoder(source):
        return source
    if isinstance(source, np.ndarray):
        return VectorsEncoder(source)
    if callable(source):
        return FunctionEncoder(source, unit_rows=normalise)
    raise InputTypeError(
        f"An encoder is a name, a function, an object with card and encode_images, or an (n, d) array, "
        f"not {type(source).__name__}.",
        hint=f"Names look like {BUILTIN!r}.",
    )


def known_models() -> list[ModelRow]:
    """Return the models with a name of their own, the one that is always there first; no model library is imported."""
    from lookalike.embed.known import KNOWN

    return [
        ModelRow(
            name=BUILTIN,
            dim=BUILTIN_DIM,
            image_size=224,
            licence="Apache-2.0",
            good_for="offline default and baseline row: product and scene categories, not single instances",
            on_disk=True,
        ),
        *(
            ModelRow(
                name=model.name,
                dim=model.dim,
                image_size=model.image_size,
                licence=model.licence,
                good_for=model.good_for,
                on_disk=model.on_disk,
            )
            for model in KNOWN
        ),
    ]


def _named(name: str, options: Options) -> Encoder:
    if name.endswith(SUFFIX):
        return VectorsEncoder(load_vectors(name), name=name)
    source, _, model = name.partition(":")
    if source not in SOURCES or not model:
        raise _unknown(name)
    return SOURCES[source](model, options)


def _builtin(model: str, options: Options) -> Encoder:
    if f"builtin:{model}" != BUILTIN:
        raise _unknown(f"builtin:{model}")
    return BuiltinEncoder(normalise=options.normalise, threads=options.threads)


def _python(model: str, options: Options) -> Encoder:
    name = f"python:{model}"
    module_name, _, attribute = model.partition(":")
    if not attribute or not module_name:
        raise _unknown(name)
    here = str(Path.cwd())
    if here not in sys.path:  # a console script does not see the folder it is called in, `python -m` does
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there and itself lacks something: its own message says more
        raise UnknownNameError("Python module", module_name, _siblings(module_name)) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UnknownNameError(f"callable in {module_name}", part, _public(found))
        found = getattr(found, part)
    if is_encoder(found):
        return found
    if not callable(found) or isinstance(found, type):
        raise InputTypeError(
            f"{name} is a {type(found).__name__}, neither a function `images -> (n, d)` nor an encoder object.",
            hint="Name a function, or an instance with card and encode_images.",
        )
    return FunctionEncoder(found, name=name, unit_rows=options.normalise)


def _unknown(name: str) -> UnknownNameError:
    return UnknownNameError("encoder", name, [BUILTIN, *PATTERNS])


def _timm(model: str, options: Options) -> Encoder:
    from lookalike.embed.timm_source import open_timm

    return open_timm(model, options)


def _open_clip(model: str, options: Options) -> Encoder:
    from lookalike.embed.open_clip_source import open_open_clip

    return open_open_clip(model, options)


def _hf(model: str, options: Options) -> Encoder:
    from lookalike.embed.hf_source import open_hf

    return open_hf(model, options)


def _onnx(model: str, options: Options) -> Encoder:
    from lookalike.embed.onnx_file import open_onnx

    return open_onnx(model, options)


def _siblings(module_name: str) -> list[str]:
    return sorted({path.stem for path in Path.cwd().glob("*.py")} | {module_name.partition(".")[0]} & set(sys.modules))


def _public(found: object) -> list[str]:
    return [part for part in dir(found) if not part.startswith("_") and callable(getattr(found, part))]


def _run(model: str, options: Options) -> Encoder:
    """A run's vectors have length 1 by construction, whatever the options."""
    return load_run(model, find=lambda name: encoder(name, threads=options.threads), threads=options.threads)


SOURCES: Mapping[str, Callable[[str, Options], Encoder]] = {
    "builtin": _builtin,
    "python": _python,
    "run": _run,
    "timm": _timm,
    "open_clip": _open_clip,
    "hf": _hf,
    "onnx": _onnx,
}
"""Every source of encoders that exists; a new one is a line here."""

PATTERNS = (
    "python:PACKAGE.MODULE:CALLABLE", "run:FOLDER", f"PATH{SUFFIX}",
    "timm:MODEL", "open_clip:ARCH/TAG", "hf:ORG/NAME", "onnx:FOLDER",
)  # fmt: skip
"""What a name may look like, for the sentence that refuses another one."""
