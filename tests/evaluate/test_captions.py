"""Captions find pictures and pictures find captions, by their literal definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import InputError, ShapeError
from lookalike.evaluate.captions import caption_recall
from lookalike.evaluate.fidelity import fidelity


def test_five_captions_a_picture_and_one_that_goes_wrong() -> None:
    images = np.eye(2)
    captions = np.array([[1, 0]] * 5 + [[0, 1]] * 4 + [[1, 0.5]])  # the tenth leans to the wrong picture
    found = caption_recall(images, captions, [0] * 5 + [1] * 5, ks=(1, 2))
    assert found.text_to_image.recall == {1: 0.9, 2: 1.0}
    assert found.image_to_text.recall == {1: 1.0, 2: 1.0}
    assert (found.text_to_image.num_queries, found.text_to_image.num_gallery) == (10, 2)
    assert (found.image_to_text.num_queries, found.image_to_text.num_gallery) == (2, 10)
    assert found.captions_per_image == {5: 2}


def test_a_picture_without_captions_distracts_but_is_no_query() -> None:
    found = caption_recall(np.eye(3), [[0.1, 0, 1], [0, 1, 0]], [0, 1], ks=(1, 2))
    assert found.text_to_image.recall == {1: 0.5, 2: 1.0}  # caption 0 finds picture 2, which has no caption, first
    assert found.image_to_text.excluded == {"label_absent": 1}
    assert found.image_to_text.num_evaluated == 2
    assert found.captions_per_image == {0: 1, 1: 2}


@settings(deadline=None)  # intervals are drawn too
@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_both_directions_equal_their_literal_definition(images: int, captions: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    pictures, words = generator.normal(size=(images, 4)), generator.normal(size=(captions, 4))
    owner = generator.integers(0, images, captions)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (pictures, words)]
    scores = unit[1] @ unit[0].T
    found = caption_recall(pictures, words, owner, ks=(1, 3))
    for k in (1, 3):
        to_image = [owner[c] in np.argsort(-scores[c], kind="stable")[:k] for c in range(captions)]
        to_text = [
            any(owner[c] == i for c in np.argsort(-scores[:, i], kind="stable")[:k])
            for i in range(images) if (owner == i).any()
        ]  # fmt: skip
        assert math.isclose(found.text_to_image.recall[k], np.mean(to_image))
        assert math.isclose(found.image_to_text.recall[k], np.mean(to_text))


def test_the_interval_resamples_pictures_because_their_captions_rise_and_fall_together() -> None:
    generator = np.random.default_rng(0)
    images = generator.normal(size=(40, 8))
    right = np.repeat(np.arange(40) % 2 == 0, 5)  # all five captions of a picture are right, or none
    captions = np.where(right[:, None], np.repeat(images, 5, axis=0), -np.repeat(images, 5, axis=0))
    found = caption_recall(images, captions, np.repeat(np.arange(40), 5), ks=(1,)).text_to_image
    low, high = found.intervals[1]
    assert found.recall[1] == 0.5
    assert high - low > 0.25  # ± 1.96 · sqrt(.25 / 40) = 0.31 wide; as 200 single captions it would be 0.14


def test_the_report_has_its_definitions_beside_the_numbers() -> None:
    text = caption_recall(np.eye(2), np.eye(2), [0, 1], ks=(1,)).to_text()
    assert "recall@1: 1.0000" in text
    assert "recall@K: share of captions whose picture is among the first K pictures" in text
    assert "recall@K: share of pictures with at least one of their captions" in text


@pytest.mark.parametrize(
    ("owners", "ks", "error", "said"),
    [
        ([0], (1,), ShapeError, r"shape \(1,\) for 2 captions"),
        ([0, 2], (1,), InputError, r"Caption 1 belongs to picture 2, outside 0\.\.1"),
        ([0, -1], (1,), InputError, r"Caption 1 belongs to picture -1"),
        ([0.0, 1.0], (1,), InputError, "whole numbers"),
        ([0, 1], (0,), InputError, "at least 1"),
        ([0, 1], (), InputError, "at least one cut-off"),
    ],
)
def test_what_does_not_fit_is_refused(owners: list[float], ks: tuple[int, ...], error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        caption_recall(np.eye(2), np.eye(2), owners, ks=ks)  # type: ignore[arg-type]


def test_a_copy_that_keeps_every_neighbour_has_fidelity_one_and_a_shuffled_one_little() -> None:
    vectors = np.random.default_rng(0).normal(size=(200, 16))
    same = fidelity(vectors, vectors * 3)
    assert (same.overlap.value, round(same.least_cosine, 6)) == (1.0, 1.0)
    other = fidelity(vectors, np.random.default_rng(1).normal(size=(200, 16)))
    assert other.overlap.value < 0.2  # 10 of 199 by chance: 0.05
    assert abs(other.mean_cosine) < 0.1
    assert math.isnan(fidelity(vectors, vectors[:, :8]).least_cosine)
    with pytest.raises(ShapeError, match="200 original vectors and 199 of the copy"):
        fidelity(vectors, vectors[:-1])
    with pytest.raises(InputError, match="1 pictures have no neighbours"):
        fidelity(vectors[:1], vectors[:1])
