"""Resize and crop: which pixels are seen under each policy, and that steps survive being written down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.embed.aspect import beyond_aspect
from lookalike.embed.steps import CROPS, RESAMPLING, Steps
from lookalike.embed.views import combined, mirrored, stacked
from lookalike.errors import InputError, UnknownNameError

NEAREST = Steps(fit="short", side=4, size=4, resample="nearest", mean=(0.5, 0.4, 0.3))


def _columns(width: int, height: int) -> np.ndarray:
    """A picture whose every pixel holds its column."""
    return np.broadcast_to(np.arange(width, dtype=np.uint8)[None, :, None], (height, width, 3)).copy()


def test_a_centre_crop_sees_the_middle() -> None:
    assert NEAREST(_columns(12, 4))[0, :, 0].tolist() == [4, 5, 6, 7]


def test_three_crops_see_both_ends_and_the_middle() -> None:
    seen = NEAREST.with_crop("multi")(_columns(12, 4))
    assert seen.shape == (3, 4, 4, 3)
    assert seen[:, 0, :, 0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_a_square_picture_is_seen_three_times_alike() -> None:
    seen = NEAREST.with_crop("multi")(_columns(4, 4))
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0], seen[2])


def test_padding_sees_everything_between_bars_of_the_mean_colour() -> None:
    seen = NEAREST.with_crop("pad")(_columns(8, 4))
    assert seen.shape == (4, 4, 3)
    assert seen[0, 0].tolist() == seen[3, 3].tolist() == [128, 102, 76]  # 255 · (0.5, 0.4, 0.3), halves to even
    assert seen[1, :, 0].tolist() == [1, 3, 5, 7]


def test_squashing_sees_everything() -> None:
    seen = NEAREST.with_crop("squash")(_columns(8, 4))
    assert seen[0, :, 0].tolist() == [1, 3, 5, 7]


def test_every_crop_but_the_published_one_says_so() -> None:
    published = Steps(fit="exact", side=64, size=64)
    texts = {crop: str(published.with_crop(crop)) for crop in CROPS}
    assert texts["squash"] == texts["published"]
    assert len(set(texts.values())) == 4
    with pytest.raises(UnknownNameError, match="Did you mean 'centre'"):
        published.with_crop("center")


@settings(deadline=None)
@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    fit=st.sampled_from(["short", "long", "exact"]),
    resample=st.sampled_from(sorted(RESAMPLING)),
    crop=st.sampled_from(sorted(CROPS)),
    values=st.sampled_from(["whole", "fractional"]),
    passes=st.sampled_from(["quickest", "across"]),
)
def test_any_picture_comes_out_square_and_steps_are_read_back(
    width: int, height: int, fit: str, resample: str, crop: str, values: str, passes: str
) -> None:
    steps = Steps(fit=fit, side=20, size=16, resample=resample, values=values, passes=passes).with_crop(crop)  # type: ignore[arg-type]
    seen = steps(np.full((height, width, 3), 99, dtype=np.uint8))
    assert seen.shape == ((3, 16, 16, 3) if crop == "multi" else (16, 16, 3))
    assert seen.dtype == (np.uint8 if values == "whole" else np.float32)
    again = Steps.from_dict({key: list(v) if isinstance(v, tuple) else v for key, v in steps.to_dict().items()})
    assert again == steps
    assert str(again) == str(steps)


def test_a_sliver_costs_no_more_than_its_crop_and_looks_the_same() -> None:
    steps = Steps(fit="short", side=64, size=64, resample="bilinear")
    generator = np.random.default_rng(0)
    middle = generator.integers(0, 256, (3, 400, 3), dtype=np.uint8)
    sliver = np.zeros((3, 60_000, 3), dtype=np.uint8)
    sliver[:, 29_800:30_200] = middle
    small = np.zeros((3, 6_000, 3), dtype=np.uint8)
    small[:, 2_800:3_200] = middle
    assert steps.target(60_000, 3)[0] * 64 > 2**24 > steps.target(6_000, 3)[0] * 64
    difference = steps(sliver).astype(int) - steps(small)
    assert np.abs(difference).max() <= 1


def test_a_larger_input_keeps_the_share_that_is_cropped() -> None:
    assert Steps(fit="short", side=256, size=224).with_size(448).side == 512


def test_a_mirrored_batch_is_mirrored_left_to_right_in_both_layouts() -> None:
    batch = _columns(4, 4)[None]
    assert mirrored(batch)[0, 0, :, 0].tolist() == [3, 2, 1, 0]
    channels_first = np.ascontiguousarray(batch.transpose(0, 3, 1, 2)).astype(np.float32)
    np.testing.assert_array_equal(mirrored(channels_first), mirrored(batch).transpose(0, 3, 1, 2))


def test_looks_count_alike_whatever_their_length_and_raw_vectors_do_not() -> None:
    batch, views = stacked([np.zeros((3, 4, 4, 3), np.uint8)])
    assert (len(batch), views) == (3, 3)
    rows = np.array([[10, 0], [0, 1], [0, 1]], dtype=np.float32)
    np.testing.assert_allclose(combined([rows], 3, unit=True), [[5**-0.5, 2 * 5**-0.5]], atol=1e-7)
    np.testing.assert_allclose(combined([rows], 3, unit=False), [[10 / 3, 2 / 3]], atol=1e-6)


def test_a_flip_is_the_mean_of_both_unit_vectors() -> None:
    one, other = np.array([[3, 4]], dtype=np.float32), np.array([[4, 3]], dtype=np.float32)
    np.testing.assert_allclose(combined([one, other], 1, unit=True), [[0.5**0.5, 0.5**0.5]], atol=1e-7)


def test_pictures_beyond_a_ratio_are_listed_longest_first() -> None:
    found = beyond_aspect({"a": (100, 100), "b": (100, 401), "c": (900, 100), "d": (200, 100)}, limit=2)
    assert list(found.beyond.items()) == [("c", 9.0), ("b", 4.01)]
    assert "2 of 4 pictures are longer than 2:1, the longest 9.0:1 (c): a centre crop sees 11% of it" in str(found)
    assert str(beyond_aspect({"a": (1, 1)})) == "none of 1 pictures is longer than 2:1"
    with pytest.raises(InputError, match=r"limit=0.5"):
        beyond_aspect({}, limit=0.5)
