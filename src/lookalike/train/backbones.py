"""Networks that can be fine-tuned: those the encoders of timm, open_clip and transformers are made of."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn

from lookalike.embed.builtin.effnet_lite0 import NAME as BUILTIN
from lookalike.embed.registry import encoder
from lookalike.errors import InputError

# The built-in weights in timm's module: the same tensors in the same order.
_IN_TIMM = "timm:tf_efficientnet_lite0.builtin"


class Loaded(NamedTuple):
    """A network from (n, 3, side, side) floats to (n, d) features, and how its input is scaled from 0..255."""

    network: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Features(nn.Module):
    """A library's module and what takes the vector from it, pooled as its encoder pools."""

    def __init__(self, module: nn.Module, take: Callable[[Any], Any]) -> None:
        super().__init__()
        self.module = module
        self._take = take

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, 3, side, side) -> (n, d)."""
        return self._take(pixels)


def load_backbone(name: str) -> Loaded:
    """Return the network behind an encoder's name, with the encoder's own weights.

    Raises:
        InputError: an encoder without a network to train.
        UnknownNameError: no such encoder.
        MissingExtraError: the library it comes from is not installed.
        MissingWeightsError: its weights are not on this machine.
    """
    opened: Any = encoder(_IN_TIMM if name == BUILTIN else name)
    if not hasattr(opened, "network"):
        raise InputError(
            f"{name or 'Ready vectors'} has no network that can be fine-tuned.",
            hint=f"Use {BUILTIN}, timm:MODEL, open_clip:MODEL or hf:MODEL, or train a head alone.",
        )
    steps = opened.network.preparation.portable
    if steps is None:
        raise InputError(f"The preprocessing of {name} is code, so it cannot go into a trained run.")
    module = opened.network.module
    for parameter in module.parameters():
        parameter.requires_grad_(True)
    return Loaded(
        Features(module, opened.network.features),
        tuple(255 * value for value in steps.mean),
        tuple(255 * value for value in steps.std),
    )
