"""Cropping while resampling equals resampling everything and cropping then."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lookalike.embed.crop import CentreCrop

CROP = CentreCrop(resize=64, size=56)


def whole_then_cut(image: np.ndarray, resize: int, size: int) -> np.ndarray:
    """The definition, step by step."""
    height, width = image.shape[:2]
    short = min(width, height)
    scaled = (round(width * resize / short), round(height * resize / short))
    whole = Image.fromarray(image).resize(scaled, Image.Resampling.BICUBIC)
    left, top = (scaled[0] - size) // 2, (scaled[1] - size) // 2
    return np.asarray(whole.crop((left, top, left + size, top + size)))


def smooth(height: int, width: int, seed: int) -> np.ndarray:
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 180), st.integers(1, 180), st.integers(0, 3))
def test_the_cut_equals_the_whole_picture_resampled_and_cut(height: int, width: int, seed: int) -> None:
    image = smooth(height, width, seed)
    found, expected = CROP(image).astype(int), whole_then_cut(image, 64, 56).astype(int)
    # Pillow's coefficients differ in the last bit where the box starts at a fraction: one level a pass, seldom
    assert np.abs(found - expected).max() <= 2
    assert np.abs(found - expected).mean() < 0.25


def test_a_large_picture_is_reduced_in_blocks_without_a_visible_difference() -> None:
    image = smooth(900, 1400, 1)
    found, expected = CROP(image).astype(int), whole_then_cut(image, 64, 56).astype(int)
    assert np.abs(found - expected).mean() < 0.5


def test_the_odd_pixel_of_an_uneven_border_is_cut_on_the_right() -> None:
    image = np.zeros((256, 257, 3), dtype=np.uint8)
    image[:, 16] = 255  # the first column that is kept: (257 - 224) // 2 = 16
    cut = CentreCrop(resize=256, size=224)(image)
    assert (cut[:, 0] == 255).all()
    assert (cut[:, 1:] == 0).all()


def test_the_words_of_the_card_hold_both_numbers() -> None:
    assert str(CROP) == "short side 64 (bicubic, antialiased), centre crop 56"
