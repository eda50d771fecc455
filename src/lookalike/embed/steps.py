"""From an upright RGB picture of any size to the square a network sees, as data that can be written down."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Rgb
from lookalike.errors import InputError, UnknownNameError

Triple = tuple[float, float, float]

CROPS: Mapping[str, str] = {
    "published": "as the model was published",
    "centre": "short side to the input's side, central square: what lies at the ends is not seen",
    "pad": "long side to the input's side, bars in the mean colour: everything is seen, smaller",
    "squash": "both sides to the input's side: everything is seen, out of shape",
    "multi": "three squares along the long side, vectors averaged: all of a 3:1 picture is seen, three times the cost",
}
"""Every crop policy; the choice is part of an encoder's identity."""

RESAMPLING: Mapping[str, int] = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
"""Names and Pillow's numbers, which the configuration files of the model libraries use."""

_VIEWS = 3
_WHOLE = 2**24
"""Pixels up to which the whole picture is resized before it is cropped, exactly as the model libraries do. Beyond, as
for a sliver of 4000 × 3, only the source pixels under the crop are: the same picture but for rounding."""


class Preparation(Protocol):
    """The work on one picture before the network: resize and crop."""

    @property
    def size(self) -> int:
        """Side of the square in pixels."""

    @property
    def portable(self) -> Steps | None:
        """The same as data that needs no other library; None where there is no such thing."""

    def __call__(self, image: Rgb) -> npt.NDArray[Any]:
        """(h, w, 3) uint8 -> an array of one fixed shape."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Resize, crop or pad, and the mean and deviation by which the network's input is scaled.

    The rounding rules are those of torchvision (`truncate`, `nearest`) and timm (`round`), because one pixel of
    offset is another vector. Pixels stay grey levels from 0 to 255 until the network divides them.

    >>> steps = Steps(fit="short", side=256, size=224, resample="bicubic")
    >>> steps(np.zeros((600, 400, 3), np.uint8)).shape
    (224, 224, 3)
    """

    fit: Literal["short", "long", "exact"]
    """Which side is brought to `side` pixels: the shorter, the longer, or both."""
    side: int
    size: int
    resample: str = "bicubic"
    mean: Triple = (0.485, 0.456, 0.406)
    std: Triple = (0.229, 0.224, 0.225)
    fill: tuple[int, int, int] = (0, 0, 0)
    other: Literal["truncate", "round"] = "truncate"
    """How the other side is rounded."""
    offset: Literal["nearest", "floor"] = "nearest"
    """How the crop's offset is rounded (halves to even)."""
    views: Literal["one", "three"] = "one"
    passes: Literal["quickest", "across"] = "quickest"
    """Which way is resized first; whole grey levels between the passes make it matter. Pillow takes the quicker order,
    torchvision always goes across first."""
    values: Literal["whole", "fractional"] = "whole"
    """Whether resized pixels are rounded to whole grey levels; DINOv3 is published with fractions."""

    def __post_init__(self) -> None:
        if self.resample not in RESAMPLING:
            raise UnknownNameError("resampling filter", self.resample, RESAMPLING)
        if self.side < 1 or self.size < 1:
            raise InputError(f"side={self.side}, size={self.size}: both are at least 1 pixel.")

    @property
    def portable(self) -> Steps:
        """These steps need nothing but Pillow."""
        return self

    def __call__(self, image: Rgb) -> npt.NDArray[Any]:
        """(h, w, 3) uint8 of any size -> (size, size, 3) uint8, or (3, size, size, 3) with three views.

        With fractional values the result is float32.
        """
        height, width = image.shape[:2]
        target = self.target(width, height)
        if self.views == "one":
            return self._window(image, target, *(self._start(length) for length in target))
        across, down = (max(length - self.size, 0) for length in target)
        places = [(round(across * share), round(down * share)) for share in np.linspace(0, 1, _VIEWS)]
        return np.stack([self._window(image, target, left, top) for left, top in places])

    def target(self, width: int, height: int) -> tuple[int, int]:
        """Return the (width, height) after resizing, at least 1 × 1."""
        if self.fit == "exact":
            return self.side, self.side
        reference = min(width, height) if self.fit == "short" else max(width, height)
        if self.other == "round":
            ratio = reference / self.side
            return max(round(width / ratio), 1), max(round(height / ratio), 1)
        lengths = [self.side if n == reference else int(self.side * n / reference) for n in (width, height)]
        return max(lengths[0], 1), max(lengths[1], 1)

    def _start(self, length: int) -> int:
        gap = length - self.size
        if gap < 0:
            return -(-gap // 2)
        return round(gap / 2.0) if self.offset == "nearest" else gap // 2

    def _window(self, image: Rgb, target: tuple[int, int], left: int, top: int) -> npt.NDArray[Any]:
        """Return the square at (left, top) of the picture resized to `target`; outside it the fill colour."""
        width, height = target
        x0, y0 = max(left, 0), max(top, 0)
        x1, y1 = min(left + self.size, width), min(top + self.size, height)
        if width * height <= _WHOLE:
            seen = self._resized(image, target, None)[y0:y1, x0:x1]
        else:
            across, down = image.shape[1] / width, image.shape[0] / height
            seen = self._resized(image, (x1 - x0, y1 - y0), (x0 * across, y0 * down, x1 * across, y1 * down))
        if seen.shape[:2] == (self.size, self.size):
            return np.ascontiguousarray(seen)
        square = np.empty((self.size, self.size, 3), dtype=seen.dtype)
        square[:] = self.fill
        square[y0 - top : y1 - top, x0 - left : x1 - left] = seen
        return square

    def _resized(
        self, image: Rgb, target: tuple[int, int], box: tuple[float, float, float, float] | None
    ) -> npt.NDArray[Any]:
        """Return `box` of the picture, or all of it, brought to `target` (width, height)."""
        from PIL import Image

        resample = Image.Resampling(RESAMPLING[self.resample])
        if self.values == "whole":
            source = Image.fromarray(np.ascontiguousarray(image))
            if source.size == target and box is None:
                return np.asarray(source)
            if self.passes == "across":
                x0, y0, x1, y1 = box or (0.0, 0.0, *source.size)
                source = source.resize((target[0], source.height), resample, (x0, 0, x1, source.height))
                box = (0, y0, target[0], y1)
            return np.asarray(source.resize(target, resample, box))
        planes = [Image.fromarray(np.ascontiguousarray(image[..., plane], dtype=np.float32)) for plane in range(3)]
        return np.stack([np.asarray(plane.resize(target, resample, box)) for plane in planes], axis=-1)

    def with_crop(self, crop: str) -> Steps:
        """Return the same network's input made square in another way, see `CROPS`."""
        if crop == "published":
            return self
        if crop == "centre":
            side = self.side if self.fit == "short" else self.size
            return dataclasses.replace(self, fit="short", side=side, other="truncate", views="one")
        if crop == "pad":
            red, green, blue = (round(255 * value) for value in self.mean)
            return dataclasses.replace(self, fit="long", side=self.size, fill=(red, green, blue), other="round")
        if crop == "squash":
            return dataclasses.replace(self, fit="exact", side=self.size)
        if crop == "multi":
            return dataclasses.replace(self, fit="short", side=self.size, other="truncate", views="three")
        raise UnknownNameError("crop of an encoder", crop, CROPS)

    def with_one_view(self, image: Rgb) -> npt.NDArray[Any]:
        """(h, w, 3) uint8 -> (size, size, 3), whatever the number of views: what one network call takes."""
        return dataclasses.replace(self, views="one")(image)

    def with_size(self, size: int) -> Steps:
        """Return the same preparation for a larger or smaller input, the share that is cropped kept."""
        return dataclasses.replace(self, size=size, side=int(size * self.side / self.size))

    def scaled(self, prepared: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """(n, size, size, 3) grey levels -> (n, 3, size, size) float32 as the network sees it, in numpy."""
        values = prepared.astype(np.float32) / np.float32(255)
        scaled = (values - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Steps:
        """Read what `to_dict` gave.

        >>> steps = Steps(fit="exact", side=64, size=64)
        >>> Steps.from_dict(steps.to_dict()) == steps
        True
        """
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(**plain)

    def __str__(self) -> str:
        sides = {"short": "short side", "long": "long side", "exact": "both sides"}[self.fit]
        rule = "" if self.fit == "exact" else f", other side {self.other.removesuffix('e')}ed"
        crops = "centre crop" if self.views == "one" else "three crops along the long side, vectors averaged,"
        filled = f", fill {_listed(self.fill)}" if self.fit == "long" or self.side < self.size else ""
        fractions = "" if self.values == "whole" else "fractions of grey levels kept, "
        rule += "" if self.passes == "quickest" else ", across first"
        return (
            f"upright RGB, {sides} {self.side} ({self.resample}, antialiased{rule}), {crops} {self.size} "
            f"(offset {self.offset}{filled}), {fractions}x / 255, mean {_listed(self.mean)}, std {_listed(self.std)}"
        )


def resampling_name(number: int) -> str:
    """Return the name of Pillow's resampling filter.

    >>> resampling_name(3)
    'bicubic'
    """
    for name, value in RESAMPLING.items():
        if value == int(number):
            return name
    raise UnknownNameError("resampling filter", str(number), RESAMPLING)


def as_triple(values: Any) -> Triple:
    """Return three floats, from three or from one."""
    red, green, blue = (float(value) for value in (values if hasattr(values, "__len__") else [values] * 3))
    return red, green, blue


def _listed(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.7g}" for value in values)
