"""P×K batches cover every usable picture, never repeat one in a batch, and count what they leave out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import InputError
from lookalike.train.sampling import PKSampler


@given(
    st.lists(st.integers(0, 23), min_size=2, max_size=12),
    st.integers(2, 5),
    st.integers(2, 5),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_every_usable_picture_is_seen_and_none_twice_in_a_batch(sizes, classes, per_class, seed, epoch):
    codes = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(3, -1)])
    if sum(size >= 2 for size in sizes) < 2:
        with pytest.raises(InputError):
            PKSampler(codes=codes, classes=classes, per_class=per_class)
        return
    sampler = PKSampler(codes=codes, classes=classes, per_class=per_class, seed=seed)
    plan = sampler.epoch(epoch)
    usable = np.flatnonzero((codes >= 0) & (np.array([*sizes, 0])[codes] >= 2))
    assert set(np.concatenate(plan)) == set(usable)
    for rows in plan:
        assert np.unique(rows).size == rows.size
        found, counts = np.unique(codes[rows], return_counts=True)
        assert found.size == min(classes, sum(size >= 2 for size in sizes))
        assert (counts == np.minimum(np.array(sizes)[found], per_class)).all()


def test_an_epoch_is_the_same_whenever_it_is_planned_and_differs_from_the_next():
    codes = np.repeat(np.arange(6), 9)
    first = PKSampler(codes=codes, classes=3, per_class=4, seed=1)
    again = PKSampler(codes=codes, classes=3, per_class=4, seed=1)
    first.epoch(1)
    assert all((a == b).all() for a, b in zip(first.epoch(2), again.epoch(2), strict=True))
    assert any((a != b).any() for a, b in zip(first.epoch(2), first.epoch(3), strict=False) if a.size == b.size)


def test_coverage_counts_what_is_left_out_and_what_is_shown_again():
    codes = np.array([0] * 4 + [1] * 6 + [2] + [-1] * 2 + [3] * 2)
    sampler = PKSampler(codes=codes, classes=2, per_class=4)
    coverage = sampler.coverage()
    assert (coverage.pictures, coverage.usable, coverage.seen) == (15, 12, 12)
    assert (coverage.alone, coverage.unlabelled, coverage.small_classes) == (1, 2, 1)
    # class 1 has six pictures: its second group of four shows two again; all groups: 0, 1, 1, 3 in two batches
    assert (coverage.batches, coverage.repeats) == (2, 2)
    assert str(coverage) == (
        "12 of 12 usable pictures in 2 batches, 2 shown again; 1 classes have fewer than K pictures; "
        "left out: 2 without a label, 1 alone in a class"
    )


def test_one_large_class_never_fills_a_batch_alone():
    codes = np.concatenate([np.zeros(100, dtype=int), [1, 1, 2, 2]])
    for rows in PKSampler(codes=codes, classes=3, per_class=4).epoch(1):
        assert np.unique(codes[rows]).size == 3


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0] * 9, "All 9 labelled pictures are of one class"),
        ([0, 1, 2, 3], "two classes of at least 2 pictures and there are 0: 4 pictures, 4 classes, the largest of 1"),
        ([-1, -1], "None of the 2 pictures has a label"),
    ],
)
def test_labels_that_cannot_be_trained_on_are_refused_with_the_counts(codes, message):
    with pytest.raises(InputError, match=message):
        PKSampler(codes=np.array(codes))


def test_a_loss_with_proxies_may_use_the_only_picture_of_a_class():
    codes = np.array([0, 1, 1, 2])
    assert PKSampler(codes=codes, smallest=1).coverage().seen == 4


@pytest.mark.parametrize("settings", [{"classes": 1}, {"per_class": 1}, {"smallest": 0}])
def test_batches_too_small_for_a_triplet_are_refused(settings):
    with pytest.raises(InputError, match="at least"):
        PKSampler(codes=np.repeat([0, 1], 4), **settings)
