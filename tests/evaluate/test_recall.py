from __future__ import annotations

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

from lookalike.errors import InputError, InputTypeError, NonFiniteError, ShapeError
from lookalike.evaluate.recall import NothingEvaluatedWarning, recall_at_k

LINE = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.4], [0.0, 1.0]])
"""Directions at growing angles from the first."""


def test_24_of_25_queries_with_a_hit_give_0_96():
    queries = np.tile([[1.0, 0.0]], (25, 1))
    gallery = np.array([[1.0, 0.0], [0.0, 1.0]])
    labels = ["right"] * 24 + ["far"]
    assert recall_at_k(queries, gallery, labels, ["right", "far"], ks=(1, 2)) == {1: 24 / 25, 2: 1.0}


def test_a_query_whose_label_is_absent_is_left_out_of_the_share():
    assert recall_at_k(LINE[:2], LINE[2:], ["a", "z"], ["b", "a", "c"], ks=(1, 2)) == {1: 0.0, 2: 1.0}


def test_k_beyond_the_gallery_is_no_error_and_no_padding():
    assert recall_at_k(LINE[:1], LINE[2:], ["a"], ["b", "b", "a"], ks=(2, 3, 1000)) == {2: 0.0, 3: 1.0, 1000: 1.0}


def test_the_query_is_removed_by_id_not_by_place_or_distance():
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    ids = [4, 3, 2, 1]
    # each has an exact twin under another label, so its first neighbour is wrong; dropping the nearest would give 1/2
    assert recall_at_k(vectors, vectors, list("abab"), list("abab"), (1, 3), ids, ids) == {1: 0.0, 3: 1.0}


def test_query_equal_to_gallery_without_ids_is_refused_and_self_match_finds_itself():
    for gallery in (LINE, LINE.copy(), LINE.tolist()):
        with pytest.raises(InputError, match="query_ids and gallery_ids"):
            recall_at_k(LINE, gallery, list("aabbc"), list("aabbc"))
        with pytest.raises(InputError, match="query_ids and gallery_ids"):
            recall_at_k(LINE, gallery, list("aabbc"), list("aabbc"), query_ids=range(5))
    assert recall_at_k(LINE, LINE, list("abcde"), list("abcde"), ks=(1,), self_match=True) == {1: 1.0}
    assert recall_at_k(LINE, LINE, list("aabbc"), list("aabbc"), (1,), range(5), range(5), self_match=True) == {1: 1.0}


def test_where_nothing_can_be_evaluated_there_is_no_number_and_a_warning_with_the_reason():
    with pytest.warns(NothingEvaluatedWarning, match="self_only 5"):
        values = recall_at_k(LINE, LINE, list("abcde"), list("abcde"), query_ids=range(5), gallery_ids=range(5))
    assert all(math.isnan(value) for value in values.values())
    with pytest.warns(NothingEvaluatedWarning, match="no queries"):
        assert math.isnan(recall_at_k(LINE[:0], LINE, [], list("abcde"), ks=(1,))[1])
    with pytest.warns(NothingEvaluatedWarning, match="label_missing 1"):
        assert math.isnan(recall_at_k(LINE[:1], LINE[1:], [None], list("abcd"), ks=(1,))[1])


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("red", "blue"),
        (-1, -2),
        (2**24, 2**24 + 1),
        (2**53, 2**53 + 1),
        (np.int64(2**62), np.int64(2**62 + 1)),
        ("é", "e"),
    ],
)
def test_labels_are_compared_whole_whatever_they_are(own, other):
    assert recall_at_k(LINE[:1], LINE[1:3], [own], [other, own], ks=(1, 2)) == {1: 0.0, 2: 1.0}
    assert recall_at_k(LINE[:1], LINE[1:3], np.array([own]), np.array([other, own]), ks=(1,)) == {1: 0.0}


def test_ids_may_be_text_and_break_ties_alphabetically():
    twins = np.array([[1.0, 0.0], [1.0, 0.0]])
    paths = ["z.jpg", "a.jpg"]
    assert recall_at_k(LINE[:1], twins, ["x"], ["x", "y"], (1,), ["q.jpg"], paths) == {1: 0.0}
    assert recall_at_k(LINE[:1], twins, ["x"], ["y", "x"], (1,), ["q.jpg"], paths) == {1: 1.0}
    with pytest.raises(InputTypeError, match="all be text"):
        recall_at_k(LINE[:1], twins, ["x"], ["x", "y"], (1,), [1], paths)


def test_scores_below_zero_count_like_any_other():
    gallery = np.array([[-1.0, 0.1], [-1.0, 0.0]])
    for metric in ("cosine", "ip"):
        assert recall_at_k([[1.0, 0.2]], gallery, ["a"], ["a", "b"], ks=(1,), metric=metric) == {1: 1.0}


def test_bad_input_is_one_clear_error():
    good = ([[1.0, 0.0]], [[1.0, 0.1]], ["a"], ["a"])
    with pytest.raises(InputError, match="K=0"):
        recall_at_k(*good, ks=(0,))
    with pytest.raises(InputTypeError, match="whole number"):
        recall_at_k(*good, ks=(1.5,))
    with pytest.raises(ShapeError, match="q_labels has 2"):
        recall_at_k(good[0], good[1], ["a", "b"], ["a"])
    with pytest.raises(ShapeError, match="g_labels has 0"):
        recall_at_k(good[0], good[1], ["a"], [])
    with pytest.raises(NonFiniteError, match="query_emb holds NaN or infinity in row 0"):
        recall_at_k([[np.nan, 0.0]], *good[1:])
    with pytest.raises(NonFiniteError, match=r"length zero.*row 0"):
        recall_at_k(good[0], [[0.0, 0.0]], ["a"], ["a"])
    with pytest.raises(ShapeError, match="3 columns where 2"):
        recall_at_k(good[0], [[0.0, 0.0, 1.0]], ["a"], ["a"])
    with pytest.raises(InputError, match="id twice"):
        recall_at_k(good[0], [[1.0, 0.0], [0.0, 1.0]], ["a"], ["a", "a"], query_ids=[1], gallery_ids=[2, 2])


def test_a_good_run_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recall_at_k(LINE[:2], LINE[2:], ["a", "b"], ["b", "a", "c"])


def test_importing_the_evaluation_loads_nothing_heavy():
    modules = ", ".join(f"lookalike.evaluate.{name}" for name in ("recall", "metrics", "relevance", "confidence"))
    heavy = {"numba", "scipy", "torch", "faiss"}
    code = f"import sys, lookalike.index.exact, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
