from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lookalike.errors import InputError, ProtocolError, ShapeError
from lookalike.evaluate import confidence
from lookalike.evaluate.confidence import bootstrap, intervals, paired

NAN = float("nan")


def all_resamples(units: list[list[float]]) -> list[float]:
    """Every draw with replacement there is: the distribution the bootstrap samples from."""
    return [sum(map(sum, draw)) / sum(map(len, draw)) for draw in itertools.product(units, repeat=len(units))]


@pytest.mark.parametrize("few", [0, 1 << 40])  # kinds counted, units drawn
def test_the_interval_is_the_percentile_of_all_draws_with_replacement(few, monkeypatch):
    monkeypatch.setattr(confidence, "_FEW", few)
    values = [0.0, 0.1, 0.4, 0.45, 1.0]
    want = np.quantile(all_resamples([[v] for v in values]), [0.1, 0.9])
    assert bootstrap(np.array(values), level=0.8, resamples=40_000) == pytest.approx(want, abs=0.012)


@pytest.mark.parametrize("few", [0, 1 << 40])
def test_groups_are_drawn_whole_and_weigh_by_their_queries(few, monkeypatch):
    monkeypatch.setattr(confidence, "_FEW", few)
    values, groups = [1.0, 1.0, 0.9, 0.0, 0.2, 0.5], ["a", "a", "a", "b", "b", None]
    want = np.quantile(all_resamples([[1.0, 1.0, 0.9], [0.0, 0.2], [0.5]]), [0.1, 0.9])
    assert bootstrap(np.array(values), groups=groups, level=0.8, resamples=20_000) == pytest.approx(want, abs=0.012)


def test_recall_of_480_in_600_has_the_interval_of_the_binomial():
    low, high = bootstrap(np.array([1.0] * 480 + [0.0] * 120))
    half = 1.96 * math.sqrt(0.8 * 0.2 / 600)
    assert (low, high) == pytest.approx((0.8 - half, 0.8 + half), abs=0.003)


def test_queries_in_groups_of_ten_equal_ones_widen_the_interval_by_the_root_of_ten():
    values = np.repeat(np.arange(100) % 2, 10).astype(float)
    alone = bootstrap(values)
    grouped = bootstrap(values, groups=np.repeat(np.arange(100), 10))
    assert (grouped[1] - grouped[0]) / (alone[1] - alone[0]) == pytest.approx(math.sqrt(10), rel=0.06)


def test_queries_that_are_not_evaluated_change_nothing():
    values = np.array([1.0, 0.0, 1.0, 1.0])
    padded = np.array([NAN, 1.0, 0.0, NAN, 1.0, 1.0])
    assert bootstrap(padded, seed=3) == bootstrap(values, seed=3)
    assert all(math.isnan(edge) for edge in bootstrap(np.array([NAN, NAN])))
    assert all(math.isnan(edge) for edge in bootstrap(np.empty(0)))


def test_the_seed_decides_and_equal_values_have_no_width():
    values = np.random.default_rng(0).random(50)
    assert bootstrap(values, seed=1) == bootstrap(values, seed=1)
    assert bootstrap(values, seed=1) != bootstrap(values, seed=2)
    assert bootstrap(np.ones(9)) == (1.0, 1.0)


def test_several_metrics_drawn_together_have_the_intervals_they_have_alone():
    rng = np.random.default_rng(0)
    ap, hit = rng.random(400), (rng.random(400) > 0.5).astype(float)
    partly = np.where(np.arange(400) < 10, NAN, hit)
    both = intervals({"map": ap, "recall@1": hit, "other": partly}, resamples=20_000)
    assert both["map"] == bootstrap(ap, resamples=20_000)
    assert both["recall@1"] == pytest.approx(bootstrap(hit, resamples=20_000), abs=0.006)
    assert both["other"] == bootstrap(partly, resamples=20_000)


@pytest.mark.parametrize("few", [0, 1 << 40])
def test_the_p_value_is_the_share_of_sign_patterns_with_a_difference_as_large(few, monkeypatch):
    monkeypatch.setattr(confidence, "_FEW", few)
    differences = np.array([0.5, 0.25, -0.125, 1.0, 0.3, 0.3])
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=6)]
    want = np.mean(np.array(sums) >= differences.sum() - 1e-9)
    assert paired(np.zeros(6), differences, resamples=40_000).p == pytest.approx(want, abs=0.008)


def test_five_wins_and_no_loss_have_p_of_one_sixteenth():
    result = paired(np.array([0.0] * 5 + [1.0]), np.ones(6), resamples=40_000)
    assert result.p == pytest.approx(2 / 2**5, abs=0.005)
    assert (result.won, result.lost, result.tied) == (5, 0, 1)
    assert result.difference == pytest.approx(5 / 6)
    assert result.low <= 5 / 6 <= result.high


def test_a_group_changes_sign_as_one():
    result = paired(np.zeros(50), np.ones(50), groups=np.repeat([1, 2], 25), resamples=20_000)
    assert result.p == pytest.approx(0.5, abs=0.015)


def test_a_run_against_itself_differs_by_nothing():
    values = np.array([0.3, NAN, 1.0])
    result = paired(values, values)
    assert (result.difference, result.low, result.high, result.p, result.tied) == (0.0, 0.0, 0.0, 1.0, 2)


def test_runs_over_other_queries_are_refused():
    with pytest.raises(ProtocolError, match="1 stand in one"):
        paired(np.array([1.0, NAN]), np.array([1.0, 0.0]))
    with pytest.raises(ShapeError, match=r"\[2, 3\]"):
        paired(np.ones(2), np.ones(3))
    with pytest.raises(ShapeError, match=r"\[2, 3\]"):
        bootstrap(np.ones(2), groups=["a", "b", "c"])
    with pytest.raises(InputError, match="resamples=0"):
        bootstrap(np.ones(2), resamples=0)
    with pytest.raises(InputError, match="level=95"):
        bootstrap(np.ones(2), level=95)
    assert math.isnan(paired(np.array([NAN]), np.array([NAN])).difference)
