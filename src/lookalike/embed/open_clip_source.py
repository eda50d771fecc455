"""`open_clip:ARCH/TAG`: pictures and texts in one space, through open_clip's own loading code."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.embed import clip_tokeniser
from lookalike.embed.asked import RANDOM, Asked
from lookalike.embed.encoder import Encoder
from lookalike.embed.extras import library, require
from lookalike.embed.hub import MissingWeightsError, Repo, how_to_supply, is_path, local_only, torch_cache
from lookalike.embed.network import Network, TextTower, Tokens, TorchEncoder
from lookalike.embed.options import Options
from lookalike.embed.steps import Steps, as_triple
from lookalike.embed.timm_source import HUB, LOCAL, _first_line, _random
from lookalike.errors import InputError, UnknownNameError

FEATURE, EXTRA = "open_clip:ARCH/TAG", "open-clip"
CONFIG = "open_clip_config.json"
_CLIP_CACHE = Path("~/.cache/clip")
FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors", "pytorch_model.bin")


def open_open_clip(model: str, options: Options) -> Encoder:
    """Open `ARCH/TAG`, `ARCH/FILE`, `local-dir:FOLDER` or `hf-hub:ORG/NAME`, with options behind a question mark.

    The surprise: weights trained with QuickGELU (OpenAI's) get QuickGELU, also under an architecture name that does
    not say so; open_clip itself warns and computes something else (open_clip, `create_model`).

    Raises:
        MissingExtraError: open_clip is not installed.
        MissingWeightsError: the weights are not on this machine; the file and where it was looked for are named.
        UnknownNameError: no such architecture or tag.
    """
    asked = Asked.parse("open_clip", model)
    require("torch", "torchvision", "open_clip", feature=FEATURE, extra=EXTRA)
    if asked.pooling != "published":
        raise InputError(f"{asked.name}: an open_clip model has its own projection.", hint="Leave pooling out.")
    folder, _ = weights_path(asked)
    module = _module(asked, folder)
    return TorchEncoder(_network(asked, module, folder), options)


def weights_path(asked: Asked) -> tuple[Path | None, Path | None]:
    """Return the folder that describes the whole model, or None, and the file of weights, or None where random.

    Raises:
        MissingWeightsError: they are not on this machine.
    """
    model = asked.model
    if model.startswith(LOCAL):
        return _folder(asked, Path(model.removeprefix(LOCAL)).expanduser())
    if model.startswith(HUB):
        repo = Repo.parse(model.removeprefix(HUB))
        if (found := repo.snapshot()) is None:
            how = how_to_supply(asked.name, folder=f"write open_clip:{LOCAL}FOLDER for a copied folder")
            raise MissingWeightsError(asked.name, f"{CONFIG} of {repo.id}", [repo.folder], how)
        return _folder(asked, found)
    _, tag = _split(asked)
    if asked.weights == RANDOM:
        return None, None
    if is_path(tag):
        path = Path(tag).expanduser()
        if not path.is_file():
            raise MissingWeightsError(asked.name, path.name, [path.parent], "Give the path of a file that is there.")
        return None, path
    return None, _tagged(asked)


def _folder(asked: Asked, folder: Path) -> tuple[Path, Path | None]:
    names = (CONFIG,) if asked.weights == RANDOM else (CONFIG, FILES)
    file = None
    for name in names:
        options = (name,) if isinstance(name, str) else name
        file = next((folder / option for option in options if (folder / option).is_file()), None)
        if file is None:
            how = "A folder holds open_clip_config.json, the weights and, for some models, the tokenizer."
            raise MissingWeightsError(asked.name, options[0], [folder], how)
    return folder, file


def _tagged(asked: Asked) -> Path:
    arch, tag = _split(asked)
    _known_to_be_missing(asked, arch, tag)
    table = library("open_clip.pretrained", feature=FEATURE, extra=EXTRA)
    config = table.get_pretrained_cfg(arch, tag)
    if not config:
        known = table.list_pretrained_tags_by_model(arch)
        if known:
            raise UnknownNameError(f"open_clip tag of {arch}", tag, known)
        raise UnknownNameError("open_clip architecture", arch, _architectures(arch))
    looked: list[Path] = []
    if config.get("hf_hub"):
        id_, _, name = config["hf_hub"].rpartition("/")
        repo = Repo.parse(id_)
        looked.append(repo.folder)
        if (found := repo.file(*filter(None, (name, *FILES)))) is not None:
            return found
    if config.get("url"):
        name = config["url"].rpartition("/")[2]
        for folder in (_CLIP_CACHE.expanduser(), torch_cache()):
            looked.append(folder)
            file: Path = folder / name
            if file.is_file():
                return file
    missing = f"{FILES[0]} of {config['hf_hub'].rpartition('/')[0]}" if config.get("hf_hub") else config["url"]
    how = how_to_supply(asked.name, folder=f"write open_clip:{arch}/FILE for a file of weights")
    raise MissingWeightsError(asked.name, missing, looked, how)


def _known_to_be_missing(asked: Asked, arch: str, tag: str) -> None:
    """Answer for the models of our own table before open_clip is imported, which takes seconds."""
    from lookalike.embed.known import KNOWN

    for model in KNOWN:
        repo = Repo.parse(model.repo)
        if model.name == f"open_clip:{arch}/{tag}" and not repo.folder.exists():
            elsewhere = [folder for folder in (_CLIP_CACHE.expanduser(), torch_cache()) if folder.is_dir()]
            if not elsewhere:
                how = how_to_supply(asked.name, folder=f"write open_clip:{arch}/FILE for a file of weights")
                raise MissingWeightsError(asked.name, f"{FILES[0]} of {repo.id}", [repo.folder, torch_cache()], how)


def _split(asked: Asked) -> tuple[str, str]:
    arch, _, tag = asked.model.partition("/")
    if asked.weights not in ("published", RANDOM):
        tag = asked.weights
    if not arch or not (tag or asked.weights == RANDOM):
        raise InputError(
            f"{asked.name!r} does not say which weights.",
            hint="Write open_clip:ARCH/TAG, for example open_clip:ViT-B-32/openai, or open_clip:ARCH/FILE.",
        )
    return arch, tag


def _module(asked: Asked, folder: Path | None) -> Any:
    open_clip = library("open_clip", feature=FEATURE, extra=EXTRA)
    size: dict[str, Any] = {"force_image_size": asked.size} if asked.size else {}
    common = {"precision": "fp32", "device": "cpu", "pretrained_text": False, **size}
    with local_only(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its warnings are about mismatches that are settled here
        if folder is not None:
            return _fitting(asked, lambda: open_clip.create_model(
                f"{LOCAL}{folder}", load_weights=asked.weights != RANDOM, **common))  # fmt: skip
        arch, tag = _split(asked)
        if open_clip.get_model_config(arch) is None:
            raise UnknownNameError("open_clip architecture", arch, _architectures(arch))
        if asked.weights == RANDOM:
            return _random(lambda: open_clip.create_model(arch, pretrained=None, **common))
        config = {} if is_path(tag) else open_clip.get_pretrained_cfg(arch, tag)
        quick = bool(config.get("quick_gelu"))
        pretrained = str(Path(tag).expanduser()) if is_path(tag) else tag
        make = open_clip.create_model
        return _fitting(asked, lambda: make(arch, pretrained=pretrained, force_quick_gelu=quick, **common))


def _fitting(asked: Asked, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (RuntimeError, KeyError) as error:
        raise InputError(
            f"The weights of {asked.name} do not fit its architecture: {_first_line(error)}",
            hint="Name the architecture they belong to.",
        ) from error


def _network(asked: Asked, module: Any, folder: Path | None) -> Network:
    def features(pixels: Any) -> Any:
        return module.encode_image(pixels)

    return Network(
        asked=asked,
        module=module,
        features=features,
        pooling="head",
        preparation=_steps(asked, module.visual.preprocess_cfg),
        licence="none: random weights" if asked.weights == RANDOM else _licence(asked),
        texts=_texts(asked, module, folder),
    )


def _steps(asked: Asked, config: Mapping[str, Any]) -> Steps:
    """Write open_clip's evaluation transform down (open_clip, `image_transform`)."""
    size = config["size"]
    side = int(size[0] if isinstance(size, list | tuple) else size)
    if isinstance(size, list | tuple) and len(set(size)) != 1:
        raise InputError(f"{asked.name} takes pictures of {size}; only a square does.")
    mode, grey = config["resize_mode"], int(config["fill_color"])
    steps = Steps(
        fit={"longest": "long", "squash": "exact"}.get(mode, "short"),  # type: ignore[arg-type]
        side=side,
        size=side,
        resample="bilinear" if config["interpolation"] == "bilinear" else "bicubic",
        mean=as_triple(config["mean"]),
        std=as_triple(config["std"]),
        fill=(grey, grey, grey),
        other="round" if mode == "longest" else "truncate",
    )
    return steps.with_crop(asked.crop)


def _texts(asked: Asked, module: Any, folder: Path | None) -> TextTower:
    open_clip = library("open_clip", feature=FEATURE, extra=EXTRA)
    name = f"{LOCAL}{folder}" if folder is not None else _split(asked)[0]
    try:
        with local_only():
            tokeniser = open_clip.get_tokenizer(name)
    except OSError as error:
        wanted = _tokeniser_repo(open_clip, name)
        how = how_to_supply(asked.name, folder=f"copy the tokenizer's files beside {CONFIG} and write {LOCAL}FOLDER")
        raise MissingWeightsError(
            asked.name, f"the tokenizer of {wanted.id}", [folder or wanted.folder], how
        ) from error

    def tokenise(texts: Sequence[str]) -> Tokens:
        found: Any = tokeniser(list(texts))
        return {"input_ids": np.ascontiguousarray(found.numpy(), dtype=np.int64)}

    def features(input_ids: Any) -> Any:
        return module.encode_text(input_ids)

    length = int(tokeniser.context_length)
    return TextTower(
        tokenise=tokenise,
        features=features,
        padding=f"padded to {length} tokens by open_clip's {type(tokeniser).__name__}",
        save_tokeniser=lambda path: clip_tokeniser.save(tokeniser, length, path),
    )


def _tokeniser_repo(open_clip: Any, name: str) -> Repo:
    config = open_clip.get_model_config(name) if not name.startswith(LOCAL) else None
    return Repo.parse(str((config or {}).get("text_cfg", {}).get("hf_tokenizer_name") or name))


def _licence(asked: Asked) -> str:
    from lookalike.embed.known import licence_of

    return licence_of(asked.name)


def _architectures(wrong: str) -> list[str]:
    listed: list[str] = library("open_clip", feature=FEATURE, extra=EXTRA).list_models()
    return difflib.get_close_matches(wrong, listed, n=8, cutoff=0.3) or listed
