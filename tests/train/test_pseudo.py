"""Guessed labels: mutual neighbours above a measured cosine, and how far they are right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookalike.errors import InputError, ShapeError
from lookalike.train.augment import augmented
from lookalike.train.pseudo import Agreement, agreement, looks, near_duplicates


def bursts(groups=20, each=3, alone=15, dim=32, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.normal(size=(groups, dim)), each, axis=0) + 0.05 * rng.normal(size=(groups * each, dim))
    return np.concatenate([rows, rng.normal(size=(alone, dim))]), np.r_[
        np.repeat(np.arange(groups), each), [-1] * alone
    ]


def test_bursts_are_found_and_single_pictures_left_alone():
    rows, truth = bursts()
    found = near_duplicates(rows)
    assert (found.codes == truth).all()
    assert (found.groups, found.measured, found.too_large) == (20, True, 0)
    assert found.covered == 60 / 75


def test_the_threshold_is_what_a_share_of_unrelated_pairs_reaches_however_many_are_related():
    # unrelated unit vectors of 400 dimensions: cosines are normal with deviation 1/20
    for each in (1, 4):
        rows, _ = bursts(groups=30, each=each, alone=300, dim=400)
        assert near_duplicates(rows, rare=0.001).threshold == pytest.approx(3.09 / 20, abs=0.01)


def test_neighbours_that_are_not_mutual_are_not_joined():
    # b is nearest to a and to c; c's nearest is b, but b's is a
    degrees = np.radians([0, 4, 12, 90, 95])
    rows = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    assert near_duplicates(rows, neighbours=1, threshold=0.9).codes.tolist() == [0, 0, -1, 1, 1]


def test_a_chain_of_more_than_the_largest_group_is_taken_apart():
    degrees = np.radians(np.arange(10))
    rows = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    assert near_duplicates(rows, neighbours=2, threshold=0.99, largest=10).groups == 1
    apart = near_duplicates(rows, neighbours=2, threshold=0.99, largest=9)
    assert (apart.groups, apart.too_large, apart.covered) == (0, 1, 0.0)


def test_agreement_counts_pairs():
    # groups {a a b} and {b b}: pairs in a group 3 + 1, right 1 + 1; true pairs a: 3, b: 3
    codes = np.array([0, 0, 0, 1, 1, -1, -1])
    found = agreement(codes, ["a", "a", "b", "b", "b", "a", None])
    assert found == Agreement(precision=2 / 4, recall=2 / 6, pairs=4)
    none = agreement(np.array([-1, -1]), ["a", "b"])
    assert math.isnan(none.precision)
    assert math.isnan(none.recall)
    with pytest.raises(ShapeError):
        agreement(codes, ["a"])


@pytest.mark.parametrize("bad", [{"neighbours": 0}, {"rare": 0.0}, {"threshold": 2.0}, {"largest": 1}])
def test_settings_outside_their_range_are_refused(bad):
    with pytest.raises(InputError):
        near_duplicates(np.eye(5), **bad)


def test_two_pictures_are_too_few():
    with pytest.raises(InputError, match="too few"):
        near_duplicates(np.eye(2))


def test_a_look_is_repeatable_and_two_looks_differ():
    picture = np.random.default_rng(0).integers(0, 256, size=(50, 70, 3)).astype(np.uint8)
    first, again, other = (augmented(picture, 24, seed=seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert (first == again).all()
    assert (first != other).any()
    assert (first.shape, first.dtype) == ((24, 24, 3), np.uint8)
    assert augmented(np.full((1, 300, 3), 128, np.uint8), 8, seed=0).shape == (8, 8, 3)


def test_looks_at_one_picture_share_a_label():
    class Mean:
        card = None

        def encode_images(self, images):
            return np.stack([image.mean(axis=(0, 1)) for image in images]).astype(np.float32)

    pictures = np.random.default_rng(0).integers(1, 256, size=(3, 20, 20, 3)).astype(np.uint8)
    vectors, codes = looks(Mean(), lambda i: pictures[i], 3, each=2, size=8)
    assert vectors.shape == (6, 3)
    assert codes.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(InputError, match="each=1"):
        looks(Mean(), lambda i: pictures[i], 3, each=1)
