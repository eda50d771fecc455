from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import InputError, ShapeError, UnknownNameError
from lookalike.index.neighbours import Neighbours
from lookalike.rank.fusion import RankFusion, ScoreFusion, fuse_ranks, fuse_scores


def ranking(*rows, metric="cosine"):
    return Neighbours.from_rows([(np.array(ids, np.int64), np.array(scores, float)) for ids, scores in rows], metric)


ORDERS = st.lists(st.integers(0, 20), unique=True, max_size=12)


@given(st.lists(ORDERS, min_size=1, max_size=4))
def test_rank_fusion_is_the_sum_of_reciprocal_ranks(orders) -> None:
    rankings = [ranking((ids, np.arange(len(ids), 0, -1))) for ids in orders]
    expected: dict[int, float] = {}
    for ids in orders:
        for place, item in enumerate(ids, 1):
            expected[item] = expected.get(item, 0) + 1 / (60 + place)
    [(ids, scores)] = list(fuse_ranks(rankings))
    assert sorted(ids) == sorted(expected)
    np.testing.assert_allclose(scores, [expected[i] for i in ids])
    assert (np.diff(scores) <= 0).all()


def test_an_item_two_rankings_agree_on_beats_one_that_one_puts_first() -> None:
    fused = fuse_ranks([ranking(([1, 2, 3], [3, 2, 1])), ranking(([4, 2, 5], [3, 2, 1]))])
    assert fused.ids[0] == 2
    assert fused.scores[0] == pytest.approx(2 / 62)


def test_equal_sums_come_in_id_order() -> None:
    assert fuse_ranks([ranking(([9, 3], [1, 0])), ranking(([3, 9], [1, 0]))]).ids.tolist() == [3, 9]


def test_weights_count_and_zero_switches_a_ranking_off() -> None:
    one, two = ranking(([1, 2], [1.0, 0.0])), ranking(([2, 1], [1.0, 0.0]))
    assert fuse_ranks([one, two], RankFusion(weights=(1, 0))).ids.tolist() == [1, 2]
    assert fuse_scores([one, two], ScoreFusion(weights=(1, 2))).ids.tolist() == [2, 1]


def test_a_squared_distance_counts_the_other_way_round() -> None:
    near = ranking(([1, 2, 3], [0.0, 1.0, 4.0]), metric="l2")
    fused = fuse_scores([near])
    assert dict(zip(fused.ids.tolist(), fused.scores.tolist(), strict=True)) == {1: 1.0, 2: 0.75, 3: 0.0}


def test_z_scores_have_mean_0_and_deviation_1_and_a_missing_item_is_the_worst() -> None:
    one, two = ranking(([1, 2], [5.0, 3.0])), ranking(([1], [0.4]))
    fused = fuse_scores([one, two], ScoreFusion(scale="z-score"))
    assert fused.ids.tolist() == [1, 2]
    assert fused.scores.tolist() == [1.0, -1.0]  # the second ranking has no spread: it says nothing


def test_queries_without_answers_stay_without() -> None:
    empty = ranking(([], []), ([1], [0.5]))
    assert fuse_scores([empty, empty]).lengths.tolist() == [0, 1]
    assert fuse_ranks([empty]).lengths.tolist() == [0, 1]


def test_what_cannot_be_fused_is_refused() -> None:
    with pytest.raises(InputError, match="no ranking"):
        fuse_ranks([])
    with pytest.raises(ShapeError, match=r"\[1, 2\]"):
        fuse_ranks([ranking(([1], [1])), ranking(([1], [1]), ([2], [1]))])
    with pytest.raises(InputError, match="1 weights for 2"):
        fuse_ranks([ranking(([1], [1])), ranking(([1], [1]))], RankFusion(weights=(1,)))
    with pytest.raises(InputError, match="constant"):
        RankFusion(constant=0)
    with pytest.raises(InputError, match="weights"):
        ScoreFusion(weights=(0, 0))
    with pytest.raises(UnknownNameError, match="min-max"):
        ScoreFusion(scale="minmax")
