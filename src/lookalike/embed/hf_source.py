"""`hf:ORG/NAME` and `hf:FOLDER`: models through transformers' own loading code, processor and tokenizer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Rgb
from lookalike.embed import pooling as pools
from lookalike.embed.asked import RANDOM, Asked
from lookalike.embed.clip_tokeniser import PROBES, no_tokenizer_json
from lookalike.embed.encoder import Encoder
from lookalike.embed.extras import library, require
from lookalike.embed.hf_processor import steps_of
from lookalike.embed.hub import MissingWeightsError, Repo, how_to_supply, is_path, local_only
from lookalike.embed.network import Network, TextTower, Tokens, TorchEncoder
from lookalike.embed.options import Options
from lookalike.embed.steps import Preparation, Steps
from lookalike.embed.timm_source import _random
from lookalike.errors import InputError

FEATURE, EXTRA = "hf:MODEL", "hf"
CONFIG, PROCESSORS = "config.json", ("preprocessor_config.json", "processor_config.json")
WEIGHTS = (
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
)  # fmt: skip
TOKENISERS = ("tokenizer.json", "spiece.model", "tokenizer.model", "vocab.json", "vocab.txt")

CLASS_TOKEN = (
    "dinov2",
    "dinov2_with_registers",
    "dinov3_vit",
    "vit",
    "deit",
    "vit_msn",
    "data2vec-vision",
)
"""Model types whose published image feature is the class token after the last normalisation; a ViT's `pooler_output`
is another layer, made for classification and often absent from the weights."""
MAX_LENGTH = ("siglip", "siglip2")
"""Model types trained on text padded to its full length, without an attention mask: other padding gives noise."""


def open_hf(model: str, options: Options) -> Encoder:
    """Open a model of the hub that is in the cache, or a folder written by `save_pretrained`.

    Raises:
        MissingExtraError: transformers is not installed.
        MissingWeightsError: a file is not on this machine; the file and where it was looked for are named.
        InputError: weights that do not fill the network, or a model that gives no vector for a picture.
    """
    asked = Asked.parse("hf", model)
    require("torch", "torchvision", "transformers", feature=FEATURE, extra=EXTRA)
    folder = model_folder(asked)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    module, missing = _module(asked, folder, config)
    return TorchEncoder(_network(asked, folder, config, module, missing), options)


def model_folder(asked: Asked) -> Path:
    """Return the folder of the model's files, each that is needed being there.

    Raises:
        MissingWeightsError: one is not.
    """
    if is_path(asked.model):
        folder = Path(asked.model).expanduser()
        how = "The folder is written by save_pretrained of the model and of its processor."
    else:
        repo = Repo.parse(asked.model)
        how = how_to_supply(asked.name, folder="copy a folder of the model's files here and write hf:FOLDER")
        if (found := repo.snapshot()) is None:
            raise MissingWeightsError(asked.name, f"{CONFIG} of {repo.id}", [repo.folder], how)
        folder = found
    needed: list[tuple[str, ...]] = [(CONFIG,), PROCESSORS, WEIGHTS]
    for names in needed if asked.weights != RANDOM else needed[:2]:
        if not any((folder / name).is_file() for name in names):
            raise MissingWeightsError(asked.name, names[0], [folder], how)
    return folder


def _module(asked: Asked, folder: Path, config: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Load in float32 and say which tensors the weights did not fill."""
    transformers = library("transformers", feature=FEATURE, extra=EXTRA)
    if asked.weights not in ("published", RANDOM):
        raise InputError(f"{asked.name}: weights of a transformers model lie in its folder.", hint="Write hf:FOLDER.")
    kind = _model_class(transformers, config)
    extra = {"add_pooling_layer": False} if config.get("model_type") in ("vit", "deit") else {}
    with local_only(), _quiet(transformers):
        if asked.weights == RANDOM:
            made = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            from_config = getattr(kind, "from_config", None) or kind._from_config
            return _random(lambda: from_config(made)), []
        module, info = kind.from_pretrained(
            folder, local_files_only=True, output_loading_info=True, dtype="float32", **extra
        )
    return module, sorted(info["missing_keys"])


def _model_class(transformers: Any, config: Mapping[str, Any]) -> Any:
    named = str((config.get("architectures") or [""])[0])
    if named.endswith("WithProjection") and hasattr(transformers, named):
        return getattr(transformers, named)
    return transformers.AutoModel


class _quiet:  # noqa: N801 - reads as the adjective it is
    """Keep transformers' progress bars and load reports off standard error: what matters is checked here."""

    def __init__(self, transformers: Any) -> None:
        self._logging = transformers.utils.logging

    def __enter__(self) -> None:
        self._level = self._logging.get_verbosity()
        self._bar = self._logging.is_progress_bar_enabled()
        self._logging.set_verbosity(logging.CRITICAL)
        self._logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        self._logging.set_verbosity(self._level)
        if self._bar:
            self._logging.enable_progress_bar()


def _network(asked: Asked, folder: Path, config: Mapping[str, Any], module: Any, missing: list[str]) -> Network:
    forward, pooling, unused = _features(asked, config, module)
    lost = [name for name in missing if not name.startswith(unused)]
    if lost:
        raise InputError(
            f"The weights in {str(folder)!r} leave {len(lost)} tensors unset, first {lost[0]!r}.",
            hint="They belong to another architecture; random weights are used only for ?weights=random.",
        )
    return Network(
        asked=asked,
        module=module,
        features=forward,
        pooling=pooling,
        preparation=_preparation(asked, folder),
        licence="none: random weights" if asked.weights == RANDOM else _licence(asked, folder),
        texts=_texts(asked, folder, config, module),
    )


def _features(asked: Asked, config: Mapping[str, Any], module: Any) -> tuple[Callable[..., Any], str, tuple[str, ...]]:
    """Return the forward function, the pooling's name, and prefixes of the tensors that it does not use."""
    kind, sized = str(config.get("model_type")), {"interpolate_pos_encoding": True} if asked.size else {}
    if hasattr(module, "get_image_features"):
        if asked.pooling != "published":
            raise InputError(f"{asked.name} has its own projection.", hint="Leave pooling out.")
        return lambda x: _pooled(module.get_image_features(pixel_values=x, **sized)), "head", ()
    if hasattr(module, "visual_projection") or type(module).__name__.endswith("WithProjection"):
        return lambda x: module(pixel_values=x).image_embeds, "head", ()
    wanted = asked.pooling if asked.pooling != "published" else ("cls" if kind in CLASS_TOKEN else "avg")
    if wanted == "avg":
        return lambda x: _pooled(module(pixel_values=x)).flatten(1), _own_pooling(config), ()
    prefix = 1 + int(config.get("num_register_tokens") or 0)
    sized = sized if kind in ("vit", "deit") else {}

    def forward(x: Any) -> Any:
        hidden = module(pixel_values=x, **sized).last_hidden_state
        if hidden.ndim == 4:
            if wanted == "cls":
                raise InputError(f"{asked.name} has no class token.", hint="Ask for pooling=mean or pooling=gem.")
            return pools.from_map(hidden, wanted)
        return pools.from_tokens(hidden, prefix, wanted)

    return forward, wanted, ("pooler.", "head.", "embeddings.mask_token")


def _own_pooling(config: Mapping[str, Any]) -> str:
    return "attention" if "siglip" in str(config.get("model_type")) else "avg"


def _pooled(output: Any) -> Any:
    """Return the pooled tensor of an output; older versions return the tensor itself."""
    found = getattr(output, "pooler_output", output)
    if found is None:
        raise InputError("This model gives no pooled vector.", hint="Ask for pooling=cls, pooling=mean or pooling=gem.")
    return found


class ProcessorPreparation:
    """transformers' own image processor: the pixels are its, bit by bit."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self.portable = steps_of(processor)
        """The same with Pillow's resampling, see `steps_of`; None where it cannot be written down."""
        from PIL import Image

        self._image = Image.fromarray
        probe = self(np.zeros((8, 8, 3), dtype=np.uint8))
        if probe.ndim != 3 or probe.shape[0] != 3 or probe.shape[1] != probe.shape[2]:
            raise InputError(f"The processor {type(processor).__name__} gives {probe.shape}; only (3, n, n) does.")
        self.size = int(probe.shape[1])

    def __call__(self, image: Rgb) -> npt.NDArray[np.float32]:
        """(h, w, 3) uint8 -> (3, size, size) float32, scaled."""
        picture = self._image(np.ascontiguousarray(image))
        values = self._processor(images=picture, return_tensors="np")["pixel_values"][0]
        return np.ascontiguousarray(values, dtype=np.float32)

    def __str__(self) -> str:
        kept = {key: value for key, value in sorted(self._processor.to_dict().items()) if value is not None}
        for noise in ("image_processor_type", "processor_class", "_processor_class", "return_tensors"):
            kept.pop(noise, None)
        words = self.portable or json.dumps(kept, default=str)
        return f"{words}, by transformers' {type(self._processor).__name__}"


def _preparation(asked: Asked, folder: Path) -> Preparation:
    transformers = library("transformers", feature=FEATURE, extra=EXTRA)
    changed = asked.crop != "published" or asked.size
    with local_only(), _quiet(transformers):
        processor = transformers.AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    made = ProcessorPreparation(processor)
    if not changed:
        return made
    steps: Steps | None = made.portable
    if steps is None:
        raise InputError(
            f"The processor {type(processor).__name__} of {asked.name} cannot be changed.",
            hint="Leave crop and size out.",
        )
    return (steps.with_size(asked.size) if asked.size else steps).with_crop(asked.crop)


def _texts(asked: Asked, folder: Path, config: Mapping[str, Any], module: Any) -> TextTower | None:
    if not hasattr(module, "get_text_features") or not any((folder / name).is_file() for name in TOKENISERS):
        return None
    transformers = library("transformers", feature=FEATURE, extra=EXTRA)
    with local_only(), _quiet(transformers):
        tokeniser = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    length = _text_length(config, module, tokeniser)
    masked = str(config.get("model_type")) not in MAX_LENGTH and "attention_mask" in tokeniser.model_input_names

    def tokenise(texts: Sequence[str]) -> Tokens:
        found = tokeniser(
            list(texts), padding="max_length", truncation=True, max_length=length, return_attention_mask=masked
        )
        kept = ("input_ids", "attention_mask") if masked else ("input_ids",)
        return {key: np.array(found[key], dtype=np.int64) for key in kept}

    def features(input_ids: Any, attention_mask: Any = None) -> Any:
        mask = {} if attention_mask is None else {"attention_mask": attention_mask}
        return _pooled(module.get_text_features(input_ids=input_ids, **mask))

    return TextTower(
        tokenise=tokenise,
        features=features,
        padding=f"padded to {length} tokens{'' if masked else ', no mask'}, by {type(tokeniser).__name__}",
        save_tokeniser=lambda path: _save_tokeniser(tokeniser, tokenise, folder, path),
    )


def _text_length(config: Mapping[str, Any], module: Any, tokeniser: Any) -> int:
    """Return the number of text positions the network has; a tokenizer may know no limit at all."""
    positions = getattr(getattr(module.config, "text_config", None), "max_position_embeddings", None)
    limit = min(int(positions or 77), int(tokeniser.model_max_length))
    return limit if limit > 0 else int(config.get("max_length", 64))


def _save_tokeniser(tokeniser: Any, tokenise: Callable[[Sequence[str]], Tokens], folder: Path, path: Path) -> None:
    """Write `tokenizer.json` once it gives the same tokens; a slow tokenizer's folder often has a fast twin."""
    tokenizers = library("tokenizers", feature=FEATURE, extra=EXTRA)
    backend: Any = getattr(tokeniser, "backend_tokenizer", None)
    twin = folder / TOKENISERS[0]
    wanted = tokenise(PROBES)
    if hasattr(backend, "to_str"):
        made = tokenizers.Tokenizer.from_str(backend.to_str())
    elif twin.is_file():
        made = tokenizers.Tokenizer.from_file(str(twin))
    else:
        raise no_tokenizer_json(tokeniser, "it has no fast form")
    length = wanted["input_ids"].shape[1]
    made.enable_truncation(length)
    made.enable_padding(length=length, pad_id=tokeniser.pad_token_id, pad_token=tokeniser.pad_token)
    for probe, row, found in zip(PROBES, wanted["input_ids"].tolist(), made.encode_batch(list(PROBES)), strict=True):
        if row != found.ids:
            raise no_tokenizer_json(tokeniser, f"{probe!r} differs")
    made.save(str(path))


def _licence(asked: Asked, folder: Path) -> str:
    """Read the licence from the model card's header; the table of known models otherwise."""
    from lookalike.embed.known import licence_of

    card = folder / "README.md"
    if card.is_file():
        head = card.read_text(encoding="utf-8", errors="replace").split("---")
        for line in head[1].splitlines() if len(head) > 2 else ():
            if line.startswith("license:"):
                return line.partition(":")[2].strip()
    return licence_of(asked.name)
