from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import InputError, ShapeError
from lookalike.evaluate import pairs
from lookalike.evaluate.relevance import (
    REASONS,
    CameraRule,
    LabelSets,
    ListedPairs,
    Revisited,
    SameLabel,
    Truth,
    build_truth,
)


def rows_of(truth: Truth) -> tuple[list[list[int]], list[list[int]]]:
    both = truth.rows(np.arange(truth.num_queries))
    return tuple(
        [csr.items[csr.offsets[q] : csr.offsets[q + 1]].tolist() for q in range(truth.num_queries)] for csr in both
    )


def test_the_order_of_exclusions_is_self_then_camera_then_junk_then_counting():
    labels = ["a", "b", "c", "d", "e", None]
    gallery = ["a", "b", "b", "c", "c", "d"]
    truth = build_truth(
        SameLabel(labels, gallery),
        num_queries=6,
        num_gallery=6,
        query_ids=np.array([100, 101, 102, 103, 104, 105]),
        gallery_ids=np.array([100, 101, 1, 2, 3, 4]),
        camera=CameraRule([0, 1, 2, 3, 4, 5], [9, 1, 1, 2, 9, 9]),
        junk=ListedPairs({2: [4], 3: [0]}),
    )
    assert [REASONS[code] for code in truth.reasons] == [
        "self_only",  # its only match is itself
        "camera_rule",  # itself goes first; the other one was seen by its own camera
        "junk_only",  # one fell to the camera rule, the last to the junk list
        "",
        "label_absent",
        "label_missing",
    ]
    assert truth.excluded == {"label_missing": 1, "label_absent": 1, "self_only": 1, "camera_rule": 1, "junk_only": 1}
    assert truth.num_relevant.tolist() == [0, 0, 0, 1, 0, 0]
    assert truth.num_removed.tolist() == [1, 2, 2, 1, 0, 0]
    assert truth.gallery_sizes.tolist() == [5, 4, 4, 5, 6, 6]
    assert truth.removed_by == {"self": 2, "camera": 2, "junk": 2}
    assert rows_of(truth)[1] == [[0], [1, 2], [3, 4], [0], [], []]


def test_the_camera_rule_removes_only_the_querys_own_identity_and_a_missing_camera_matches_none():
    truth = build_truth(
        SameLabel(["a", "a"], ["a", "a", "b", "a"], name="identity"),
        num_queries=2,
        num_gallery=4,
        camera=CameraRule([1, None], [1, 2, 1, None]),
    )
    assert rows_of(truth) == ([[1, 3], [0, 1, 3]], [[0], []])


def test_several_labels_match_by_any_or_by_all():
    queries = [{"red", "shoe"}, {"hat"}, set(), ["shoe", "shoe"]]
    gallery = [{"red"}, {"shoe", "red", "new"}, {"shoe"}, set()]
    any_of, all_of = (
        build_truth(LabelSets(queries, gallery, match=match), num_queries=4, num_gallery=4) for match in ("any", "all")
    )
    assert rows_of(any_of)[0] == [[0, 1, 2], [], [], [1, 2]]
    assert rows_of(all_of)[0] == [[1], [], [], [1, 2]]
    assert any_of.excluded == {"label_missing": 1, "label_absent": 1}
    assert any_of.num_relevant.tolist() == [3, 0, 0, 2]
    with pytest.raises(InputError, match="'some'"):
        LabelSets(queries, gallery, match="some")


def test_revisited_setups_move_easy_hard_and_junk_to_their_places():
    lists = {"easy": [[0]], "hard": [[1, 2]], "junk": [[3]]}
    outcome = {
        setup: rows_of(build_truth(Revisited(**lists, setup=setup), num_queries=1, num_gallery=5))
        for setup in ("easy", "medium", "hard")
    }
    assert outcome == {
        "easy": ([[0]], [[1, 2, 3]]),
        "medium": ([[0, 1, 2]], [[3]]),
        "hard": ([[1, 2]], [[0, 3]]),
    }
    with pytest.raises(InputError, match="'difficult'"):
        Revisited(**lists, setup="difficult")
    with pytest.raises(ShapeError, match="1 queries where there are 2"):
        build_truth(Revisited(**lists), num_queries=2, num_gallery=5)


def test_listed_pairs_outside_the_gallery_and_columns_of_another_length_are_refused():
    with pytest.raises(InputError, match=r"gallery item 5, outside 0\.\.4"):
        build_truth(ListedPairs({0: [5]}), num_queries=1, num_gallery=5)
    with pytest.raises(InputError, match=r"query 1, outside 0\.\.0"):
        build_truth(ListedPairs({1: [0]}), num_queries=1, num_gallery=5)
    with pytest.raises(ShapeError, match="2 query entries for 1 query vectors"):
        build_truth(SameLabel(["a", "b"], ["a"]), num_queries=1, num_gallery=1)
    with pytest.raises(ShapeError, match="3 gallery entries for 2 gallery vectors"):
        build_truth(SameLabel(["a"], ["a", "b"]), num_queries=1, num_gallery=2, camera=CameraRule([1], [1, 2, 3]))
    with pytest.raises(InputError, match="camera rule needs one identity"):
        build_truth(ListedPairs({0: [0]}), num_queries=1, num_gallery=1, camera=CameraRule([1], [1]))


def test_pairs_by_name_are_looked_up_and_an_unknown_name_is_named():
    pairs_by_name = [("q1", 7), ("q0", 8), ("q1", 8)]
    assert ListedPairs.from_names(pairs_by_name, ["q0", "q1"], [8, 7]).items == {1: [1, 0], 0: [0]}
    with pytest.raises(InputError, match="'q2', which is not in the queries"):
        ListedPairs.from_names([("q2", 7)], ["q0"], [7])
    with pytest.raises(InputError, match="9, which is not in the gallery"):
        ListedPairs.from_names([("q0", 9)], ["q0"], [7])


def test_a_junk_list_may_name_an_item_twice_or_one_that_is_not_relevant():
    truth = build_truth(
        SameLabel(["a"], ["a", "a", "b"]), num_queries=1, num_gallery=3, junk=ListedPairs({0: [2, 0, 2]})
    )
    assert rows_of(truth) == ([[1]], [[0, 2]])
    assert (truth.num_removed.tolist(), truth.removed_by) == ([2], {"junk": 2})


@settings(max_examples=100, deadline=None)
@given(data=st.data(), match=st.sampled_from(["any", "all", "one"]), limit=st.integers(1, 40))
def test_the_truth_equals_the_rules_applied_pair_by_pair(data, match, limit):
    num_q, num_g = data.draw(st.integers(1, 7)), data.draw(st.integers(0, 9))
    one, camera = st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None])
    label = one if match == "one" else st.sets(st.sampled_from("abc"))
    q_labels, g_labels = ([data.draw(label) for _ in range(n)] for n in (num_q, num_g))
    q_cameras, g_cameras = ([data.draw(camera) for _ in range(n)] for n in (num_q, num_g))
    position = st.integers(0, max(num_g - 1, 0))
    junk = {q: data.draw(st.lists(position)) if num_g else [] for q in range(num_q)}
    q_ids = np.arange(num_q) + data.draw(st.integers(0, 5))

    def relevant(q: int, g: int) -> bool:
        if match == "one":
            return q_labels[q] is not None and q_labels[q] == g_labels[g]
        shared = q_labels[q] & g_labels[g]
        return bool(shared) if match == "any" else bool(q_labels[q]) and shared == q_labels[q]

    def removed(q: int, g: int) -> bool:
        seen = match == "one" and q_cameras[q] is not None and q_cameras[q] == g_cameras[g] and relevant(q, g)
        return q_ids[q] == g or seen or g in junk[q]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs.blocks, "__defaults__", (limit,))
        truth = build_truth(
            SameLabel(q_labels, g_labels) if match == "one" else LabelSets(q_labels, g_labels, match=match),
            num_queries=num_q,
            num_gallery=num_g,
            query_ids=q_ids,
            gallery_ids=np.arange(num_g),
            camera=CameraRule(q_cameras, g_cameras) if match == "one" else None,
            junk=ListedPairs(junk),
        )
    gone = [[g for g in range(num_g) if removed(q, g)] for q in range(num_q)]
    kept = [[g for g in range(num_g) if relevant(q, g) and not removed(q, g)] for q in range(num_q)]
    assert rows_of(truth) == (kept, gone)
    assert truth.num_relevant.tolist() == [len(row) for row in kept]
    assert truth.num_removed.tolist() == [len(row) for row in gone]
    assert truth.evaluated.tolist() == [bool(row) for row in kept]
