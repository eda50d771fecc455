"""Backbone and head together, from pictures: augmentation, rates by layer, frozen batch norm, one ONNX at the end."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,no-untyped-call"

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lookalike import threads
from lookalike.arrays import Ids, Rgb
from lookalike.embed.crop import CentreCrop
from lookalike.errors import InputError
from lookalike.images.load import load
from lookalike.train.augment import augmented
from lookalike.train.backbones import Loaded, load_backbone
from lookalike.train.head import Head
from lookalike.train.material import Material, Plan
from lookalike.train.processes import Processes
from lookalike.train.settings import Settings
from lookalike.train.trained import Trained

_CROP_SHARE = 0.875
"""Side of the crop over the short side of the picture it is cut from: 224 of 256, as the built-in encoder has it."""


class Network(nn.Module):
    """(n, side, side, 3) uint8 -> (n, dim) unit rows."""

    mean: Tensor
    std: Tensor

    def __init__(self, loaded: Loaded, head: Head, *, freeze_batch_norm: bool) -> None:
        super().__init__()
        self.backbone, self.head = loaded.network, head
        self.register_buffer("mean", torch.tensor(loaded.mean).reshape(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(loaded.std).reshape(1, 3, 1, 1))
        self._freeze = freeze_batch_norm

    def forward(self, pixels: Tensor) -> Tensor:
        """Embed and project; the head works in float32, whatever the precision around it."""
        return self.head(torch.nn.functional.normalize(self.features(pixels).float(), dim=1))

    def features(self, pixels: Tensor) -> Tensor:
        """(n, side, side, 3) uint8 -> (n, d) features of the backbone."""
        return self.backbone((pixels.permute(0, 3, 1, 2).float() - self.mean) / self.std)

    def train(self, mode: bool = True) -> Network:
        """Switch modes; frozen batch norms stay in evaluation, where they use their running statistics."""
        super().train(mode)
        if self._freeze:
            for module in self.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self


class Pictures:
    """Reads pictures as the network's input: augmented by epoch and picture, or cropped as the encoder will be."""

    def __init__(
        self,
        files: Sequence[Path],
        train: Ids,
        *,
        size: int,
        augment: bool,
        seed: int,
        twice: bool,
        workers: int,
        device: Any,
    ) -> None:
        self._files, self._train, self._size, self._augment, self._seed = files, train, size, augment, seed
        self._crop = crop(size)
        self._workers, self._device = workers, device
        self._kept: dict[tuple[int, bytes], Tensor] | None = {} if twice else None

    def inputs(self, rows: Ids, *, epoch: int) -> Tensor:
        """Return training rows; a part of a batch that is asked for twice is read once."""
        key = (epoch, rows.tobytes())
        if self._kept is not None and key in self._kept:
            return self._kept.pop(key)
        found = self._read([self._look(int(row), epoch) for row in self._train[rows]])
        if self._kept is not None:
            self._kept[key] = found
        return found

    def every(self, rows: Ids) -> Tensor:
        """Return the centre crops of these rows."""
        return self._read([self._plain(int(row)) for row in rows])

    def _look(self, row: int, epoch: int) -> Callable[[], Rgb]:
        if not self._augment:
            return self._plain(row)
        return lambda: augmented(self._pixels(row), self._size, seed=(self._seed, epoch, row))

    def _plain(self, row: int) -> Callable[[], Rgb]:
        return lambda: self._crop(self._pixels(row))

    def _pixels(self, row: int) -> Rgb:
        return load(self._files[row], short_side=2 * self._size).pixels

    def _read(self, jobs: Sequence[Callable[[], Rgb]]) -> Tensor:
        with ThreadPoolExecutor(self._workers, thread_name_prefix="lookalike-read") as pool:
            pictures = list(pool.map(lambda job: job(), jobs))
        return torch.from_numpy(np.stack(pictures)).to(self._device)


def crop(size: int) -> CentreCrop:
    """Return the crop of the finished encoder.

    >>> crop(224)
    CentreCrop(resize=256, size=224)
    """
    return CentreCrop(resize=round(size / _CROP_SHARE), size=size)


def parts(
    material: Material, settings: Settings, planned: Plan, head: Head, processes: Processes
) -> tuple[nn.Module, Pictures, list[dict[str, Any]]]:
    """Return the network, its pictures, and its parameters with their rates.

    Raises:
        InputError: no pictures, or vectors of another network.
    """
    backbone = settings.backbone
    if backbone is None or material.pictures is None:
        raise InputError(
            "Fine-tuning a network needs the pictures, not only their vectors.", hint="Hand in `pictures`."
        )
    loaded = load_backbone(material.encoder)
    network = Network(loaded, head, freeze_batch_norm=backbone.freeze_batch_norm).to(processes.device)
    source = Pictures(
        list(material.pictures),
        planned.train,
        size=backbone.image_size,
        augment=backbone.augment,
        seed=settings.seed,
        twice=settings.micro_batch is not None or processes.count > 1,
        workers=threads.resolve(settings.threads),
        device=processes.device,
    )
    _check_dim(network, source, material)
    groups = [{"params": list(head.parameters()), "lr": settings.learning_rate}]
    return network, source, groups + by_layer(loaded.network, backbone.rate, backbone.layer_decay)


def by_layer(network: nn.Module, rate: float, decay: float) -> list[dict[str, Any]]:
    """Group parameters by layer, the last at `rate`, each earlier one at `decay` times the rate of the next.

    A layer is everything under one first number of a parameter's name: `blocks.3`, `encoder.layer.7`; what has no
    number is a layer under its own first word.
    """
    layers: dict[str, list[nn.Parameter]] = {}
    for full, parameter in network.named_parameters():
        name = full.removeprefix("module.")  # of `Features`
        found = re.match(r"(.*?\.\d+)\.", name)
        layers.setdefault(found.group(1) if found else name.partition(".")[0], []).append(parameter)
    last = len(layers) - 1
    return [
        {"params": parameters, "lr": rate * decay ** (last - place)} for place, parameters in enumerate(layers.values())
    ]


def write_network(trained: Trained, path: Path) -> dict[str, int]:
    """Write the trained network as ONNX, `pixels` (n, side, side, 3) uint8 -> `vectors`; return its crop."""
    backbone = trained.settings.backbone
    if backbone is None:
        raise InputError("This run trained a head alone, which has no network of its own.")
    size = backbone.image_size
    example = torch.zeros(2, size, size, 3, dtype=torch.uint8)
    program = torch.onnx.export(
        trained.model.eval(),
        (example,),
        dynamo=True,
        input_names=["pixels"],
        output_names=["vectors"],
        dynamic_shapes=({0: torch.export.Dim("n")},),
        verbose=False,
    )
    if program is None:
        raise InputError("This version of torch gave no ONNX program.", hint="Use torch 2.6 or later.")
    program.save(path, external_data=False)
    found = crop(size)
    return {"resize": found.resize, "size": found.size}


def _check_dim(network: Network, source: Pictures, material: Material) -> None:
    with torch.no_grad():
        dim = network.eval().features(source.every(np.array([0]))).shape[1]
    if dim != material.vectors.shape[1]:
        raise InputError(
            f"{material.encoder} gives {dim} values and the vectors have {material.vectors.shape[1]}.",
            hint="Hand in the vectors of the network that is to be fine-tuned.",
        )
