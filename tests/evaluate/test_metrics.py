from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import CutOffError, InputError, UnknownNameError
from lookalike.evaluate import metrics
from lookalike.evaluate.ranks import Ranks, rank_blocks, relevant_ranks
from lookalike.evaluate.relevance import ListedPairs, SameLabel, build_truth

_spec = importlib.util.spec_from_file_location("evaluate_oracles", Path(__file__).with_name("oracles.py"))
oracles = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracles)

ALL = [name.replace("@K", f"@{k}") for name in metrics.METRICS for k in ((1, 2, 5, 50) if "@K" in name else (0,))]


def ranks_of(*rankings: tuple[list[int], int], depth: int | None = None) -> Ranks:
    """One query each: flags down its list, and how many relevant items there are; none: not evaluated."""
    relevant = np.array([wanted for _, wanted in rankings])
    found = [np.flatnonzero(flags) + 1 for flags, _ in rankings]
    return Ranks(
        np.concatenate([np.empty(0, np.int64), *found]),
        np.concatenate([[0], np.cumsum([len(f) for f in found])]).astype(np.int64),
        relevant,
        np.array([len(flags) for flags, _ in rankings]),
        np.where(relevant > 0, 0, 2).astype(np.int8),
        np.zeros(len(rankings), bool),
        depth=depth,
    )


HAND = ranks_of(([1, 0, 0, 1, 0, 1], 3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall@1", 1.0),
        ("cmc@1", 1.0),
        ("mrr", 1.0),
        ("precision@5", 0.4),
        ("coverage@5", 2 / 3),
        ("r-precision", 1 / 3),
        ("map@r", 1 / 3),
        ("map", 2 / 3),  # (1 + 2/4 + 3/6) / 3
        ("map@2/all", 1 / 3),
        ("map@2/min", 0.5),
        ("map@2/hits", 1.0),
        ("map@5/all", 0.5),
        ("map@5/min", 0.5),
        ("map@5/hits", 0.75),
        ("ndcg@5", 0.671386),
        ("minp", 0.5),
        ("precision@10", 0.3),
    ],
)
def test_a_ranking_of_right_wrong_wrong_right_wrong_right_has_its_hand_checked_values(name, value):
    assert metrics.per_query(HAND, name).tolist() == [pytest.approx(value, abs=5e-7)]


def test_one_ranking_has_three_average_precisions_at_10_by_the_divisor():
    # hits at 1, 2, 4 of 12 relevant: (1 + 1 + 3/4) = 2.75 over 12, over 10, over 3
    ranks = ranks_of(([1, 1, 0, 1, 0, 0, 0, 0, 0, 0] + [1] * 9, 12))
    values = metrics.summarise(ranks, ["map@10/all", "map@10/min", "map@10/hits"])
    assert values == pytest.approx({"map@10/all": 2.75 / 12, "map@10/min": 0.275, "map@10/hits": 2.75 / 3})


def literal(name: str, flags: list[int], relevant: int) -> float:
    """The definition in words, on one list of right and wrong."""
    name, _, kind = name.partition("/")
    base, _, cut = name.partition("@")
    k = int(cut) if cut.isdigit() else len(flags)
    hits = sum(flags[:k])
    first = flags.index(1) + 1 if 1 in flags else math.inf
    if base in ("recall", "cmc"):
        return float(first <= k)
    if base == "mrr":
        return 1 / first
    if base == "precision":
        return hits / k
    if base == "coverage":
        return hits / relevant
    if base == "r-precision":
        return sum(flags[:relevant]) / relevant
    if name == "map@r":
        return float(oracles.average_precision(flags, relevant, relevant))
    if base == "map":
        divisor = {"": relevant, "all": relevant, "min": min(k, relevant), "hits": hits}[kind]
        return float(oracles.average_precision(flags, k, divisor))
    if base == "ndcg":
        return oracles.ndcg(flags, k, relevant)
    last = len(flags) - flags[::-1].index(1)
    return relevant / last


@settings(max_examples=100, deadline=None)
@given(rankings=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=30), min_size=1, max_size=6))
def test_every_metric_equals_its_literal_definition_and_lies_between_0_and_1(rankings):
    ranks = ranks_of(*[(flags, sum(flags)) for flags in rankings])
    for name in ALL:
        values = metrics.per_query(ranks, name)
        for flags, value in zip(rankings, values.tolist(), strict=True):
            if not any(flags):
                assert math.isnan(value), name
                continue
            assert value == pytest.approx(literal(name, flags, sum(flags)), abs=1e-12), name
            assert 0 <= value <= 1


@settings(max_examples=50, deadline=None)
@given(rankings=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=20), min_size=1, max_size=4))
def test_the_precision_recall_curve_is_the_mean_of_the_best_precision_at_each_of_101_recalls(rankings):
    ranks = ranks_of(*[(flags, sum(flags)) for flags in rankings])
    levels, curve = metrics.precision_recall_curve(ranks)
    assert levels.tolist() == pytest.approx([level / 100 for level in range(101)])
    kept = [flags for flags in rankings if any(flags)]
    if not kept:
        assert np.isnan(curve).all()
        return
    for level in range(101):
        want = [oracles.interpolated(flags, sum(flags), Fraction(level, 100)) for flags in kept]
        assert curve[level] == pytest.approx(float(sum(want) / len(want)), abs=1e-12)


def test_a_perfect_list_scores_1_in_every_metric_that_can():
    ranks = ranks_of(([1, 1, 1, 0], 3))
    for name in ("recall@1", "mrr", "r-precision", "map@r", "map", "map@2/min", "map@2/hits", "ndcg@2", "minp"):
        assert metrics.per_query(ranks, name).tolist() == [1.0]


def test_more_relevant_items_than_the_gallery_of_other_queries_does_not_raise_map_above_1():
    # 5.14 was once printed elsewhere for padded lists
    vectors = np.eye(4, dtype=np.float32) + np.float32(0.1)
    truth = build_truth(SameLabel(list("aaab"), list("aaab")), num_queries=4, num_gallery=4)
    ranks = relevant_ranks(vectors, vectors, truth)
    for value in metrics.summarise(ranks, ALL).values():
        assert 0 <= value <= 1


def test_where_nothing_is_evaluated_the_summary_is_not_a_number():
    assert all(math.isnan(value) for value in metrics.summarise(ranks_of(([0, 0], 0)), ALL).values())


def test_a_cut_off_beyond_the_candidate_lists_is_refused_and_one_within_is_not():
    ranks = ranks_of(([1, 0, 0, 0, 0, 0], 2), depth=3)
    assert metrics.per_query(ranks, "map@3/all").tolist() == [0.5]
    assert metrics.per_query(ranks, "map@r").tolist() == [0.5]
    with pytest.raises(CutOffError, match=r"k=4 is outside 1\.\.3"):
        metrics.per_query(ranks, "recall@4")
    for name in ("map", "minp"):
        with pytest.raises(InputError, match=f"{name} looks 6 places deep; the lists end after 3.*map@3/all"):
            metrics.per_query(ranks, name)
    with pytest.raises(InputError, match="precision-recall"):
        metrics.precision_recall_curve(ranks)
    with pytest.raises(InputError, match="K=0"):
        metrics.per_query(HAND, "recall@0")


def test_a_relevant_item_that_was_not_retrieved_counts_as_missed():
    truth = build_truth(ListedPairs({0: [0, 1, 2]}), num_queries=1, num_gallery=3)
    ranks = Ranks.from_lists([[0]], truth, depth=1)
    assert metrics.summarise(ranks, ["map@1/all", "coverage@1", "mrr"]) == pytest.approx(
        {"map@1/all": 1 / 3, "coverage@1": 1 / 3, "mrr": 1.0}
    )
    whole = Ranks.from_lists([[0]], truth, depth=3)  # three were asked for, one came back
    assert metrics.summarise(whole, ["map", "minp"]) == pytest.approx({"map": 1 / 3, "minp": 0.0})
    nothing = Ranks.from_lists([[]], truth, depth=3)
    assert metrics.summarise(nothing, ["map", "minp", "mrr", "recall@3", "ndcg@3", "map@3/hits"]) == dict.fromkeys(
        ["map", "minp", "mrr", "recall@3", "ndcg@3", "map@3/hits"], 0.0
    )


def test_a_metric_of_all_ranks_is_refused_where_only_the_first_was_counted():
    vectors = np.eye(3, dtype=np.float32)
    truth = build_truth(SameLabel(list("aab"), list("aab")), num_queries=3, num_gallery=3)
    ranks = relevant_ranks(vectors, vectors, truth, first_only=True)
    assert metrics.summarise(ranks, ["recall@1", "mrr", "cmc@3"]) == {"recall@1": 1.0, "mrr": 1.0, "cmc@3": 1.0}
    assert not metrics.needs_all(["recall@1", "mrr", "cmc@3"])
    with pytest.raises(InputError, match="map needs the ranks of all"):
        metrics.per_query(ranks, "map")


@pytest.mark.parametrize("name", ["recal@1", "map@10", "recall", "mrr@5", "recall@K"])
def test_a_mistyped_metric_gets_the_right_spellings(name):
    with pytest.raises(UnknownNameError, match=r"recall@K|map@K/all|mrr"):
        metrics.find(name)


def test_values_measured_block_by_block_are_those_measured_at_once():
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((50, 5)).astype(np.float32), rng.integers(0, 6, 50)
    ids = np.arange(50)
    truth = build_truth(SameLabel(labels, labels), num_queries=50, num_gallery=50, query_ids=ids, gallery_ids=ids)
    whole = relevant_ranks(vectors, vectors, truth)
    parts = metrics.measure(rank_blocks(vectors, vectors, truth, block=7, memory_budget=100), ALL)
    for name in ALL:
        assert parts[name].tolist() == metrics.per_query(whole, name).tolist()
    with pytest.raises(UnknownNameError):
        metrics.measure([], ["nonsense"])
