"""Another look at one picture: part of it, perhaps mirrored, in other light."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from lookalike.arrays import Rgb

# Milder than for classification (Szegedy et al., 2015, crop down to 0.08): a part of 8 % may show nothing of the object
# two looks are meant to share.
_AREA = (0.35, 1.0)
_ASPECT = (3 / 4, 4 / 3)
_LIGHT = 0.3
"""Brightness, contrast and each colour are scaled by up to ± this share."""


def augmented(image: Rgb, size: int, *, seed: int | Sequence[int]) -> Rgb:
    """(h, w, 3) uint8 -> (size, size, 3) uint8; the same seed gives the same look.

    >>> augmented(np.zeros((30, 40, 3), np.uint8), 8, seed=0).shape
    (8, 8, 3)
    """
    rng = np.random.default_rng(seed)
    box = _box(image.shape[1], image.shape[0], rng)
    cut = Image.fromarray(image).resize((size, size), Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
    if rng.random() < 0.5:
        cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    pixels = np.asarray(cut, dtype=np.float32)
    mean = pixels.mean()
    contrast, brightness = 1 + rng.uniform(-_LIGHT, _LIGHT, size=2)
    colours = 1 + rng.uniform(-_LIGHT / 2, _LIGHT / 2, size=3).astype(np.float32)
    changed = ((pixels - mean) * np.float32(contrast) + mean) * np.float32(brightness) * colours
    return np.asarray(np.clip(changed + 0.5, 0, 255).astype(np.uint8))


def _box(width: int, height: int, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Return a random part (left, top, right, bottom) of at least about a third of the picture."""
    aspect = float(np.exp(rng.uniform(*np.log(_ASPECT))))
    area = rng.uniform(*_AREA) * width * height
    wide = min(width, max(1.0, (area * aspect) ** 0.5))
    high = min(height, max(1.0, (area / aspect) ** 0.5))
    left, top = rng.uniform(0, width - wide), rng.uniform(0, height - high)
    return left, top, left + wide, top + high
