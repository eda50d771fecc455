"""What an encoder is, and the card that says which one it is."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy.typing as npt

from lookalike.arrays import Rgb, Vectors


@dataclass(frozen=True, kw_only=True)
class Card:
    """The identity of an encoder: two encoders whose `digest` is equal give the same vector for the same picture.

    Preprocessing is part of it: the same weights behind another resize are another encoder.
    """

    name: str
    """`source:model`, for example `builtin:effnet-lite0`."""
    weights: str
    """Digest of the weight bytes (BLAKE2b, hex), or a revision where the weights cannot be read."""
    dim: int
    pooling: str
    """How the vector is taken from the network: `cls`, `mean`, `gem`, `avg`, `head`, `function` (a
    bare function's own business), `none` (ready vectors)."""
    image_size: int | None = None
    """Side of the square the network sees, in pixels; None where the encoder takes any size."""
    preprocessing: str = "none"
    """Every step from upright RGB to the network's input, in words and numbers; its text is the digest's source."""
    normalised: bool = True
    """Rows have length 1."""
    supports_text: bool = False
    licence: str = "unknown"

    @property
    def digest(self) -> str:
        """16 hex digits over everything that changes a vector (not the licence)."""
        fields = dataclasses.asdict(self)
        del fields["licence"]
        return hashlib.blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=8).hexdigest()

    def differences(self, other: Card) -> list[str]:
        """Name every field in which the vectors of `other` could differ, as `field: mine != theirs`."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        differing = [key for key in mine if key != "licence" and mine[key] != theirs[key]]
        return [f"{key}: {mine[key]!r} != {theirs[key]!r}" for key in differing]

    def to_dict(self) -> dict[str, Any]:
        """Return the card and its digest as plain JSON values."""
        return {**dataclasses.asdict(self), "digest": self.digest}


@runtime_checkable
class Encoder(Protocol):
    """Upright RGB pictures in, one vector a picture out.

    The vector of a picture does not depend on its neighbours in the batch (to 1e-5), rows have length 1 unless the
    card says otherwise, and nothing is random.
    """

    @property
    def card(self) -> Card:
        """Which encoder this is."""

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, d) float32."""


@runtime_checkable
class TextEncoder(Encoder, Protocol):
    """An encoder whose text tower shares the space of its pictures."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """(n texts) -> (n, d) float32."""


@runtime_checkable
class StagedEncoder(Encoder, Protocol):
    """An encoder whose work on one picture can run in the decoding threads, apart from the network.

    `encode_images(images)` equals `encode_prepared([prepare(image) for image in images])`.
    """

    @property
    def short_side(self) -> int | None:
        """Pixels on the short side down to which a picture may be decoded at reduced scale; None: decode in full."""

    def prepare(self, image: Rgb) -> npt.NDArray[Any]:
        """Resize and crop one picture to the network's input: an array of one fixed shape and type."""

    def encode_prepared(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        """(n prepared pictures) -> (n, d) float32."""


@runtime_checkable
class ConcurrentEncoder(StagedEncoder, Protocol):
    """A staged encoder that is quickest with one picture a call, several calls side by side."""

    def encode_one(self, prepared: npt.NDArray[Any]) -> Vectors:
        """One prepared picture -> (d,) float32; callable from several threads at once."""


def is_encoder(candidate: object) -> TypeGuard[Encoder]:
    """Tell whether an object follows the protocol, without reading its card (that may run the network).

    `isinstance` does the same from Python 3.12 on; before, it evaluates properties.
    """
    return _offers(candidate, "card", "encode_images")


def is_staged(candidate: Encoder) -> TypeGuard[StagedEncoder]:
    """Tell whether the work on one picture can run apart from the network."""
    return _offers(candidate, "short_side", "prepare", "encode_prepared")


def is_concurrent(candidate: Encoder) -> TypeGuard[ConcurrentEncoder]:
    """Tell whether the network itself takes one picture a call, from any thread."""
    return is_staged(candidate) and _offers(candidate, "encode_one")


def _offers(candidate: object, *names: str) -> bool:
    missing = object()
    return not isinstance(candidate, type) and all(
        inspect.getattr_static(candidate, name, missing) is not missing for name in names
    )
