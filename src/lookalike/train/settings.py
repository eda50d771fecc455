"""Every choice of a training run, checked when it is made."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from lookalike.errors import InputError, UnknownNameError
from lookalike.train.loss import Loss
from lookalike.train.losses import name_of
from lookalike.train.pair_losses import Triplet

Schedule: TypeAlias = Literal["constant", "cosine"]
Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]
Start: TypeAlias = Literal["pca", "whitening", "random"]
STARTS: tuple[Start, ...] = get_args(Start)


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """The shape of a head and the weights it starts from."""

    dim: int = 128
    """Length of the vector that comes out."""
    layers: int = 1
    hidden: int = 512
    """Width between two layers."""
    start: Start = "pca"
    """`pca`: the directions of largest variance, so that training starts from (nearly) the frozen encoder's ranking;
    `whitening`: the same, each direction scaled to equal variance; `random`: orthogonal rows."""
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise UnknownNameError("start of a head", self.start, STARTS)
        if self.layers not in (1, 2):
            raise InputError(f"layers={self.layers}: a head has 1 or 2 layers.")
        for name, value in (("dim", self.dim), ("hidden", self.hidden)):
            if value < 2:
                raise InputError(f"{name}={value} must be at least 2.", hint="128 to 512 are usual.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout={self.dropout} is outside 0..1.")


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """How a whole network is fine-tuned along with its head."""

    rate: float = 1e-4
    """Learning rate of the last layer of the backbone; the head keeps its own."""
    layer_decay: float = 0.75
    """Factor from each layer to the one before it: early layers hold what is true of all pictures."""
    freeze_batch_norm: bool = True
    """Keep the running statistics: those of 64 pictures of 16 classes are not those of a catalogue."""
    augment: bool = True
    """Random crop, mirror and light, seeded by epoch and picture."""
    image_size: int = 224

    def __post_init__(self) -> None:
        _above_zero(rate=self.rate)
        if not 0 < self.layer_decay <= 1:
            raise InputError(f"layer_decay={self.layer_decay} is outside 0..1.", hint="1 gives every layer one rate.")
        if self.image_size < 32:
            raise InputError(f"image_size={self.image_size} is below 32 pixels.")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One training run; two runs with equal settings, data and machine give the same weights, bit for bit."""

    loss: Loss = field(default_factory=Triplet)
    mining: str | None = None
    """A name of `mining.MINERS`; None takes the loss's usual one."""
    head: HeadSettings = field(default_factory=HeadSettings)
    backbone: Backbone | None = None
    """None trains the head alone, on vectors that are computed once."""
    classes: int = 16
    """P, classes in a batch."""
    per_class: int = 4
    """K, pictures of each."""
    epochs: int = 30
    learning_rate: float = 1e-3
    proxy_rate: float = 1e-2
    """Learning rate of class proxies, which start at random and have further to go (Kim et al., 2020, use 100×)."""
    weight_decay: float = 1e-4
    schedule: Schedule = "constant"
    warm_up: int = 0
    """Optimiser steps over which the rates rise from 0."""
    memory: int = 0
    """Earlier vectors a batch is compared with as well (Wang et al., CVPR 2020); 0 keeps none."""
    micro_batch: int | None = None
    """Pictures embedded at a time; the loss still sees the whole batch."""
    holdout: float = 0.3
    """Share of the identities kept for the final comparison, never seen and never chosen by."""
    validation: float = 0.2
    """Share of the other identities whose recall@1 picks the epoch; 0 keeps the last epoch."""
    patience: int | None = 5
    """Epochs without a better validation recall@1 before training stops."""
    precision: Precision = "auto"
    """Of the network; distances and losses are float32 always. `auto` is bfloat16 on a GPU that has it."""
    seed: int = 0
    threads: int | None = None
    """None: one for a head, all usable processors for a network."""

    def __post_init__(self) -> None:
        _above_zero(learning_rate=self.learning_rate, proxy_rate=self.proxy_rate)
        for name, low in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise InputError(f"{name}={value} must be at least {low}.")
        for name in ("holdout", "validation"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} is outside 0..1.", hint="0.2 holds out one fifth.")
        for name, kinds in (("schedule", get_args(Schedule)), ("precision", get_args(Precision))):
            if getattr(self, name) not in kinds:
                raise UnknownNameError(name, getattr(self, name), kinds)
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise InputError(f"weight_decay={self.weight_decay} must be 0 or above.")
        self._check_memory()

    def _check_memory(self) -> None:
        if not self.memory:
            return
        if not self.loss.memory:
            raise InputError(
                f"The {name_of(self.loss)} loss cannot be compared with a queue of earlier vectors.",
                hint="Set memory to 0, or use triplet, contrastive, ntxent, supcon or multi-similarity.",
            )
        if self.memory < self.classes * self.per_class:
            raise InputError(
                f"memory={self.memory} is smaller than one batch of {self.classes} × {self.per_class} pictures.",
                hint=f"Keep at least {self.classes * self.per_class}, or 0 for none.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, the loss under its name."""
        values = dataclasses.asdict(self)
        values["loss"] = {"name": name_of(self.loss), **values["loss"]}
        return values

    @property
    def digest(self) -> str:
        """16 hex digits over what a resumed run must share: all but the number of epochs, patience and threads.

        A cosine schedule is stretched over the epochs, so there they count too.
        """
        values = self.to_dict()
        for name in ("patience", "threads", *(["epochs"] if self.schedule == "constant" else [])):
            del values[name]
        return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=8).hexdigest()


_AT_LEAST = {"epochs": 1, "warm_up": 0, "memory": 0, "micro_batch": 1, "patience": 1, "classes": 2, "per_class": 2}


def _above_zero(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name}={value} must be above 0.", hint="1e-3 is usual for a head, 1e-5 for a backbone.")
