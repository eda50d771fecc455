"""Pictures anyone can draw again, and the vectors float32 torch gave for them: the built-in encoder's self-check."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lookalike.arrays import Rgb, Vectors

_SIDE = 224
_FILE = Path(__file__).with_name("golden.npy")


def pictures() -> list[Rgb]:
    """Draw the golden pictures: (224, 224, 3) each, in whole-number arithmetic, the same on every machine.

    They are of the network's own size, so that no resampling stands between them and their vectors.

    >>> [picture.shape for picture in pictures()] == [(224, 224, 3)] * 4
    True
    """
    y, x = np.mgrid[0:_SIDE, 0:_SIDE]
    ramp = np.stack([x, y, (x + y) // 2], axis=-1)
    checks = np.where(((x // 28 + y // 28) % 2)[..., None] == 0, (230, 60, 40), (20, 90, 200))
    disc = np.where(((x - 112) ** 2 + (y - 96) ** 2 < 64**2)[..., None], (250, 210, 40), (70, 120, 60))
    stripes = np.stack([(x * 7 + y * 3) % 256, (x * y) // 197, (y * 11) % 256], axis=-1)
    return [part.astype(np.uint8) for part in (ramp, checks, disc, stripes)]


def vectors() -> Vectors:
    """Return the (4, 1280) float32 unit rows of `pictures()` as torch computed them from the published weights."""
    loaded: Vectors = np.load(_FILE)
    return loaded
