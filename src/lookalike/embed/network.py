"""A torch network as an encoder, whichever library loaded it."""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Rgb, Vectors
from lookalike.embed import placement as places
from lookalike.embed import views
from lookalike.embed.asked import Asked
from lookalike.embed.builtin import golden
from lookalike.embed.encoder import Card
from lookalike.embed.extras import library
from lookalike.embed.options import Options
from lookalike.embed.placement import Placement
from lookalike.embed.rows import normalise as unit_rows
from lookalike.embed.steps import Preparation
from lookalike.errors import InputError, InputTypeError, LookalikeError

_log = logging.getLogger("lookalike")

BATCH = 32
Tokens = Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class TextTower:
    """The half of a model that reads text."""

    tokenise: Callable[[Sequence[str]], Tokens]
    """Texts -> named (n, length) arrays, padded the way the model was trained."""
    features: Callable[..., Any]
    """Named tensors, in the order of the tokens -> (n, d) tensor."""
    padding: str
    """In words, for the documentation and the card."""
    save_tokeniser: Callable[[Path], None] | None = None
    """Write `tokenizer.json`, padding and truncation in it; None where that cannot be done."""


@dataclass(frozen=True, eq=False)
class Network:
    """What a model library's own loading code gave."""

    asked: Asked
    module: Any
    """The torch module that holds all weights."""
    features: Callable[[Any], Any]
    """(n, 3, side, side) float tensor as published -> (n, d) tensor."""
    pooling: str
    preparation: Preparation
    licence: str = "unknown"
    texts: TextTower | None = None
    notes: tuple[str, ...] = field(default=())


class TorchEncoder:
    """A network of timm, open_clip or transformers, in evaluation mode, on a checked device and precision.

    Pictures are prepared exactly as the library prepares them. Out of memory, the batch is halved and stays so. The
    encoder travels to other processes as its name and is opened again there.
    """

    def __init__(self, network: Network, options: Options) -> None:
        self.network = network
        self._options = options
        self._batch = BATCH
        self._at = Placement()
        network.module.eval()
        for parameter in network.module.parameters():
            parameter.requires_grad_(False)
        self.placement = self._settle()

    @functools.cached_property
    def card(self) -> Card:
        """Which encoder this is; the digest of the weights is computed at first use."""
        asked, preparation = self.network.asked, self.network.preparation
        padding = f"; text: {self.network.texts.padding}" if self.network.texts else ""
        return Card(
            name=asked.name,
            weights=weights_digest(self.network.module),
            dim=self.dim,
            pooling=self.network.pooling + ("+flip" if asked.flip else ""),
            image_size=preparation.size,
            preprocessing=f"{preparation}{padding}",
            normalised=self._options.normalise,
            supports_text=self.network.texts is not None,
            licence=self.network.licence,
        )

    @functools.cached_property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._features([self._golden()[0]], self.placement).shape[1])

    @property
    def short_side(self) -> int | None:
        """Pictures are decoded in full: a reduced decode is not the preprocessing that was published."""
        return None

    def prepare(self, image: Rgb) -> npt.NDArray[Any]:
        """(h, w, 3) uint8 of any size -> the network's input before it is scaled."""
        return self.network.preparation(image)

    def encode_prepared(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        """(n prepared pictures) -> (n, d) float32."""
        if len(prepared) == 0:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._halving(prepared, self._encode)

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, d) float32."""
        return self.encode_prepared([self.prepare(image) for image in images])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """(n texts) -> (n, d) float32, in the space of the pictures.

        Raises:
            InputError: the model has no text tower; the encoders that have are named.
            InputTypeError: not a list of strings.
        """
        from lookalike.embed.text import checked, no_text_tower

        if self.network.texts is None:
            raise no_text_tower(self.network.asked.name)
        listed = checked(texts)
        if not listed:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._halving(listed, self._encode_texts)

    def golden_vectors(self, placement: Placement | None = None) -> Vectors:
        """Return the vectors of the golden pictures, (4, d) unit rows, by default as this encoder computes them."""
        return unit_rows(self._features(self._golden(), placement or self.placement))

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.network.asked.full_name, self._options)

    def _settle(self) -> Placement:
        asked = self.network.asked
        wish = places.wished(asked.device, asked.dtype)
        pictures = self._golden()
        return places.settle(wish, lambda at: self._features(pictures, at), asked.name)

    def _golden(self) -> list[npt.NDArray[Any]]:
        return [self.prepare(picture) for picture in golden.pictures()]

    def _halving(self, items: Sequence[Any], encode: Callable[[Sequence[Any]], Vectors]) -> Vectors:
        """Encode batch by batch; where memory does not suffice, go on with half."""
        done: list[Vectors] = []
        start = 0
        while start < len(items):
            part = items[start : start + self._batch]
            try:
                done.append(encode(part))
            except Exception as error:
                if not places.is_out_of_memory(error):
                    raise
                if len(part) == 1:
                    raise LookalikeError(
                        f"{self.network.asked.name} does not fit in the memory of {self.placement.device} "
                        f"even with one picture at a time.",
                        hint="Choose a smaller model, a smaller size, or another device with ?device=cpu.",
                    ) from error
                self._batch = len(part) // 2
            else:
                start += len(part)
                continue
            self._free()
            _log.warning("out of memory; going on with %d pictures at a time", self._batch)
        return np.concatenate(done)

    def _encode(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        batch, looks = views.stacked(prepared)
        rows = [self._run(batch, self.placement)]
        if self.network.asked.flip:
            rows.append(self._run(views.mirrored(batch), self.placement))
        return views.combined(rows, looks, unit=self._options.normalise)

    def _features(self, prepared: Sequence[npt.NDArray[Any]], at: Placement) -> Vectors:
        return self._run(views.stacked(prepared)[0], at)

    def _run(self, batch: npt.NDArray[Any], at: Placement) -> Vectors:
        torch = _torch()
        values = torch.from_numpy(np.ascontiguousarray(batch))
        with _threads(self._options.threads), at.running():
            values = as_input(values.to(at.device), self.network.preparation)
            rows = self._moved(at) and self.network.features(values)
            return _numpy(rows)

    def _encode_texts(self, texts: Sequence[str]) -> Vectors:
        torch, tower = _torch(), self.network.texts
        if tower is None:
            raise InputError("There is no text tower.")
        with _threads(self._options.threads), self.placement.running():
            self._moved(self.placement)
            tokens = {
                key: torch.from_numpy(value).to(self.placement.device) for key, value in tower.tokenise(texts).items()
            }
            rows = _numpy(tower.features(**tokens))
        return unit_rows(rows) if self._options.normalise else rows

    def _moved(self, at: Placement) -> bool:
        if self._at.device != at.device:
            self.network.module.to(at.device)
            self._at = at
        return True

    def _free(self) -> None:
        torch = _torch()
        if self.placement.device.startswith("cuda"):
            torch.cuda.empty_cache()


def as_input(values: Any, preparation: Preparation) -> Any:
    """Scale (n, s, s, 3) grey levels to (n, 3, s, s) as published; what a library has scaled, channels first, passes.

    The order, / 255 first, then mean and deviation, is torchvision's, so that the bits are too.
    """
    torch = _torch()
    if values.shape[-1] != 3:
        return values
    steps = preparation.portable
    if steps is None:
        raise InputTypeError("Grey levels need steps that say how they are scaled.")
    mean = torch.tensor(steps.mean, device=values.device).view(-1, 1, 1)
    std = torch.tensor(steps.std, device=values.device).view(-1, 1, 1)
    return (values.permute(0, 3, 1, 2).to(torch.float32) / 255 - mean) / std


def weights_digest(module: Any) -> str:
    """Return 32 hex digits over every tensor of a module: name, type, shape and bytes, in name order."""
    digest = hashlib.blake2b(digest_size=16)
    torch = _torch()
    for name, tensor in sorted(module.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(memoryview(plain.reshape(-1).view(torch.uint8).numpy()))
    return digest.hexdigest()


def _numpy(rows: Any) -> Vectors:
    found: Vectors = np.ascontiguousarray(rows.float().cpu().numpy())
    return found


class _threads:  # noqa: N801 - reads as the verb it is
    """Hold torch to a number of threads inside the block; None changes nothing."""

    def __init__(self, count: int | None) -> None:
        self._count = count

    def __enter__(self) -> None:
        torch = _torch()
        self._before = torch.get_num_threads()
        if self._count is not None and self._count != self._before:
            torch.set_num_threads(self._count)

    def __exit__(self, *_: object) -> None:
        torch = _torch()
        if torch.get_num_threads() != self._before:
            torch.set_num_threads(self._before)


def _reopen(name: str, options: Options) -> Any:
    from lookalike.embed.registry import encoder

    return encoder(name, normalise=options.normalise, threads=options.threads)


def _torch() -> Any:
    return library("torch", feature="This encoder", extra="timm")
