"""The triplet arithmetic against figures worked out by hand, and against the definition written as three loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import InputError, ShapeError
from lookalike.train import triplets


def literal(matrix, codes, margin):
    """Every triplet, one by one: kinds, losses."""
    kinds = {"easy": 0, "semi-hard": 0, "hard": 0}
    losses = []
    for a in range(len(codes)):
        for p in range(len(codes)):
            for n in range(len(codes)):
                if a == p or codes[a] != codes[p] or codes[a] == codes[n] or codes[a] < 0 or codes[n] < 0:
                    continue
                kinds[triplets.kind(matrix[a, p], matrix[a, n], margin)] += 1
                losses.append(triplets.hinge(matrix[a, p], matrix[a, n], margin))
    return kinds, losses


def test_cosines_of_85_and_78_at_margin_02_lose_00844_plain_and_006_squared_and_are_semi_hard():
    t = triplets.triplet(0.85, 0.78, margin=0.2)
    assert t.squared == pytest.approx((0.30, 0.44), abs=1e-12)
    assert t.plain == pytest.approx((math.sqrt(0.30), math.sqrt(0.44)), abs=1e-12)
    assert t.loss_plain == pytest.approx(0.0844, abs=5e-5)
    assert t.loss_squared == pytest.approx(0.06, abs=1e-12)
    assert t.kind_plain == t.kind_squared == "semi-hard"


def test_the_two_conventions_can_disagree_about_one_triplet():
    t = triplets.triplet(0.99, 0.95, margin=0.2)  # squared 0.02 and 0.10; plain 0.1414 and 0.3162
    assert t.loss_squared == pytest.approx(0.12, abs=1e-12)
    assert t.loss_plain == pytest.approx(0.0252, abs=5e-5)
    u = triplets.triplet(0.5, 0.3, margin=0.2)  # squared 1.0 and 1.4: easy; plain 1.0 and 1.1832: not yet
    assert (u.kind_squared, u.kind_plain) == ("easy", "semi-hard")


def test_a_negative_exactly_at_the_margin_is_easy_and_one_at_the_positive_is_hard():
    assert triplets.kind(0.3, 0.5, 0.2) == "easy"
    assert triplets.hinge(0.3, 0.5, 0.2) == 0.0
    assert triplets.kind(0.3, 0.3, 0.2) == "hard"


def test_16_classes_of_4_have_11520_valid_triplets():
    assert triplets.valid_triplets(np.repeat(np.arange(16), 4)) == 64 * 3 * 60 == 11_520


def test_a_missing_label_is_in_no_triplet():
    assert triplets.valid_triplets(np.array([0, 0, 1, -1, -1])) == 2
    summary = triplets.batch(np.eye(5), np.array([0, 0, 1, -1, -1]))
    assert summary.triplets == 2


def test_eight_equal_vectors_lose_exactly_the_margin_and_are_called_collapsed():
    for squared in (False, True):
        summary = triplets.batch(np.full((8, 5), 0.3), np.repeat([0, 1], 4), margin=0.2, squared=squared)
        assert summary.loss_mean == 0.2
        assert summary.loss_open == 0.2
        assert summary.collapsed
        assert summary.hard == summary.triplets == 8 * 3 * 4
        assert summary.open_share == 1.0


def test_all_different_labels_have_no_triplet_and_a_finite_loss_of_zero():
    summary = triplets.batch(np.eye(4), np.arange(4))
    assert (summary.triplets, summary.loss_mean, summary.open_share) == (0, 0.0, 0.0)
    assert math.isnan(summary.positive_mean)
    assert not summary.collapsed


def test_the_worst_anchor_is_the_mislabelled_one():
    vectors = np.array([[1, 0], [1, 0.01], [1, 0.02], [0, 1], [0.01, 1], [1, 0.005]], dtype=float)
    codes = np.array([0, 0, 0, 1, 1, 1])  # the last lies among the zeros
    worst = triplets.hardest(triplets.distances(vectors), codes, margin=0.2, top=1)[0]
    assert worst.row == 5
    assert worst.worst_pair[0] in (3, 4)
    assert worst.worst_pair[1] in (0, 1)


@given(st.integers(0, 10_000), st.integers(2, 14), st.integers(1, 4), st.booleans(), st.sampled_from([0.05, 0.2, 1.0]))
def test_sums_equal_three_literal_loops(seed, n, classes, squared, margin):
    rng = np.random.default_rng(seed)
    vectors = np.round(rng.normal(size=(n, 3)), 1) + np.array([0.01, 0, 0])  # rounding makes ties
    codes = rng.integers(-1, classes, size=n)
    matrix = triplets.distances(vectors, squared=squared)
    kinds, losses = literal(matrix, codes, margin)
    summary = triplets.batch(vectors, codes, margin=margin, squared=squared)
    assert {"easy": summary.easy, "semi-hard": summary.semi_hard, "hard": summary.hard} == kinds
    assert summary.triplets == len(losses) == triplets.valid_triplets(codes)
    assert summary.loss_mean == pytest.approx(np.mean(losses) if losses else 0.0, abs=1e-12)
    open_ = [loss for loss in losses if loss > 0]
    assert summary.loss_open == pytest.approx(np.mean(open_) if open_ else 0.0, abs=1e-12)
    assert summary.open_share == pytest.approx(len(open_) / len(losses) if losses else 0.0)


@pytest.mark.parametrize("margin", [0.0, -0.2, float("nan"), float("inf")])
def test_a_margin_that_is_not_above_zero_is_refused(margin):
    with pytest.raises(InputError, match="margin"):
        triplets.triplet(0.5, 0.4, margin=margin)


def test_a_cosine_outside_its_range_and_a_wrong_matrix_are_refused():
    with pytest.raises(InputError, match=r"cos_positive=1\.5"):
        triplets.triplet(1.5, 0)
    with pytest.raises(ShapeError):
        triplets.batch_of(np.zeros((3, 3)), np.array([0, 1]), margin=0.2)
