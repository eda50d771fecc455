"""How a vector is taken from a network's tokens or feature map, and what that is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lookalike.embed.extras import library
from lookalike.errors import InputError

Forward = Callable[[Any], Any]

GEM_POWER = 3.0
"""Radenović, Tolias & Chum, TPAMI 2019: the value their learned exponents start from and stay near."""
_GEM_FLOOR = 1e-6

_TIMM_NAMES: Mapping[str, str] = {"token": "cls", "map": "attention", "": "none"}


def gem(values: Any, axis: int | tuple[int, ...]) -> Any:
    """Return the generalised mean of a tensor of features: the cube root of the mean cube, negatives as zero."""
    powered = values.clamp(min=_GEM_FLOOR).pow(GEM_POWER)
    return powered.mean(dim=axis).pow(1 / GEM_POWER)


def from_tokens(tokens: Any, prefix: int, pooling: str) -> Any:
    """(n, prefix + patches, d) -> (n, d): the first token, or all but the prefix (class and register tokens)."""
    if pooling == "cls":
        return tokens[:, 0]
    if pooling == "mean":
        return tokens[:, prefix:].mean(dim=1)
    return gem(tokens[:, prefix:], 1)


def from_map(features: Any, pooling: str) -> Any:
    """(n, d, h, w) -> (n, d)."""
    if pooling == "mean":
        return features.mean(dim=(2, 3))
    return gem(features, (2, 3))


def timm_features(module: Any, pooling: str) -> tuple[Forward, str]:
    """Return the forward function of a timm module without classifier, and the name of its pooling.

    Raises:
        InputError: a pooling that the network does not offer.
    """
    prefix = int(getattr(module, "num_prefix_tokens", 0))
    if pooling == "published":
        own = _own_pool(module)
        if own == "avg":
            return module, "mean" if _has_tokens(module) else "avg"
        return module, _TIMM_NAMES.get(own, own)
    if pooling == "cls" and not prefix:
        raise InputError("This network has no class token.", hint="Ask for pooling=mean or pooling=gem.")

    def forward(x: Any) -> Any:
        features = module.forward_features(x)
        if features.ndim == 3:
            return from_tokens(features, prefix, pooling)
        channels_last = features.shape[-1] == module.num_features and features.shape[1] != module.num_features
        return from_map(features.permute(0, 3, 1, 2) if channels_last else features, pooling)

    return forward, pooling


def tower(module: Any, forward: Callable[..., Any]) -> Any:
    """Return a torch module that holds another one and computes `forward`, for exporters that want modules."""
    torch = library("torch", feature="Exporting a network", extra="timm")

    class Tower(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        """A forward function with the weights it uses."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *inputs: Any) -> Any:
            """Compute."""
            return forward(*inputs)

    return Tower().eval()


def _own_pool(module: Any) -> str:
    """Return timm's word for the pooling: ViTs keep a string, others a layer, in the network or in its head."""
    own = getattr(module, "global_pool", None) or getattr(getattr(module, "head", None), "global_pool", None)
    return own if isinstance(own, str) else str(getattr(own, "pool_type", None) or "avg")


def _has_tokens(module: Any) -> bool:
    return hasattr(module, "num_prefix_tokens") and hasattr(module, "patch_embed")
