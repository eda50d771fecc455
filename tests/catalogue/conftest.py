"""Small pictures, and an encoder that is quick and tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.arrays import Rgb, Vectors
from lookalike.embed.encoder import Card


class Grid:
    """An 8-d encoder: the mean of each channel in the upper and the lower half, and two constants."""

    def __init__(self, name: str = "test:grid", preprocessing: str = "halves") -> None:
        self.calls = 0
        self._card = Card(name=name, weights="1", dim=8, pooling="none", preprocessing=preprocessing)

    @property
    def card(self) -> Card:
        return self._card

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        self.calls += len(images)
        rows = []
        for image in images:
            half = max(image.shape[0] // 2, 1)
            upper, lower = image[:half].mean((0, 1)), image[half:].mean((0, 1)) if half < len(image) else np.zeros(3)
            rows.append(np.concatenate([upper, lower, [1, image.shape[1]]]))
        out = np.array(rows, dtype=np.float64)
        return (out / np.linalg.norm(out, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def grid() -> Grid:
    return Grid()


@pytest.fixture
def other_grid() -> Grid:
    return Grid(preprocessing="other halves")


def draw(path: Path, seed: int, size: int = 6) -> Path:
    """Write a small lossless picture that only this seed has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="PNG", compress_level=0)
    return path


@pytest.fixture(scope="session")
def make_grid() -> type[Grid]:
    return Grid


@pytest.fixture(scope="session")
def picture() -> Callable[..., Path]:
    return draw


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of five pictures in two folders."""
    root = tmp_path / "photos"
    for seed, name in enumerate(["mug/a.png", "mug/b.png", "cup/c.png", "cup/d.png", "e.png"]):
        draw(root / name, seed)
    return root
