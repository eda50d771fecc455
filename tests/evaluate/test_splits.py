from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import InputError, ShapeError
from lookalike.evaluate.splits import Split, class_folds, holdout, leave_one_out

TEN_EACH = [f"{label}/{place}.jpg" for label in "abcde" for place in range(10)]
LABELS = [name[0] for name in TEN_EACH]


def named(split: Split, names: list[str]) -> tuple[set[str], set[str], set[str]]:
    query, gallery, rest = ({names[row] for row in rows} for rows in (split.query, split.gallery, split.rest))
    return query, gallery, rest


def test_by_item_takes_the_same_share_of_every_class() -> None:
    split = holdout(TEN_EACH, LABELS, 0.2)
    assert Counter(LABELS[row] for row in split.query) == dict.fromkeys("abcde", 2)
    assert Counter(LABELS[row] for row in split.gallery) == dict.fromkeys("abcde", 8)
    assert not split.leave_one_out
    assert split.rest == ()
    assert split.description == "holdout 0.2 by item (seed 0)"


@pytest.mark.parametrize(
    ("size", "fraction", "queries"), [(2, 0.01, 1), (2, 0.99, 1), (3, 0.5, 2), (5, 0.1, 1), (10, 0.25, 3)]
)
def test_every_class_of_two_asks_at_least_once_and_answers_at_least_once(
    size: int, fraction: float, queries: int
) -> None:
    names = [f"{label}{place}" for label in "xy" for place in range(size)]
    split = holdout(names, [name[0] for name in names], fraction)
    assert len(split.query) == 2 * queries


def test_the_only_picture_of_a_class_answers_and_an_unlabelled_one_does_neither() -> None:
    split = holdout(["a", "b", "c", "d"], ["x", "x", "y", None], 0.5)
    assert (len(split.query), split.gallery[-1], split.rest) == (1, 2, (3,))


def test_by_identity_holds_out_whole_classes_that_ask_one_another() -> None:
    split = holdout(TEN_EACH, LABELS, 0.4, by="identity")
    assert split.leave_one_out
    held = {LABELS[row] for row in split.query}
    assert len(held) == 2
    assert len(split.query) == 20
    assert {LABELS[row] for row in split.rest} == set("abcde") - held


@given(st.permutations(range(50)), st.integers(0, 5), st.sampled_from(["item", "identity"]))
def test_the_order_of_the_input_changes_nothing(order: list[int], seed: int, by: str) -> None:
    shuffled = [TEN_EACH[row] for row in order]
    plain = holdout(TEN_EACH, LABELS, 0.3, by=by, seed=seed)
    other = holdout(shuffled, [name[0] for name in shuffled], 0.3, by=by, seed=seed)
    assert named(plain, TEN_EACH) == named(other, shuffled)
    assert plain.digest == other.digest


def test_another_seed_is_another_split() -> None:
    assert len({holdout(TEN_EACH, LABELS, 0.3, seed=seed).digest for seed in range(20)}) == 20


def test_a_picture_added_to_one_class_leaves_the_other_classes_alone() -> None:
    before = named(holdout(TEN_EACH, LABELS, 0.3), TEN_EACH)[0]
    grown = [*TEN_EACH, "a/new.jpg"]
    after = named(holdout(grown, [name[0] for name in grown], 0.3), grown)[0]
    assert {name for name in before if name[0] != "a"} == {name for name in after if name[0] != "a"}


def test_the_digest_tells_sides_apart() -> None:
    assert holdout(["a", "b", "c", "d"], list("xxyy"), 0.5).digest != leave_one_out(["a", "b", "c", "d"]).digest


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40), st.integers(2, 3), st.integers(0, 3))
def test_folds_part_the_classes(labels: list[str], folds: int, seed: int) -> None:
    names = [str(row) for row in range(len(labels))]
    if len(set(labels)) < 2 * folds:
        with pytest.raises(InputError, match=r"folds|Two classes"):
            class_folds(names, labels, folds, seed=seed)
        return
    found = class_folds(names, labels, folds, seed=seed)
    classes = [{labels[row] for row in fold.query} for fold in found]
    assert all(fold.leave_one_out and len(held) >= 2 for fold, held in zip(found, classes, strict=True))
    assert sorted(row for fold in found for row in fold.query) == list(range(len(labels)))
    assert sum(len(held) for held in classes) == len(set(labels))


def test_one_huge_class_never_makes_a_fold_of_its_own() -> None:
    labels = ["big"] * 100 + list("abc")
    found = class_folds([str(row) for row in range(103)], labels, 2)
    assert sorted(len(fold.query) for fold in found) == [2, 101]


def test_folds_are_of_about_equal_size() -> None:
    names = [str(row) for row in range(1000)]
    labels = [str(random.Random(row).randrange(60)) for row in range(1000)]
    sizes = [len(fold.query) for fold in class_folds(names, labels, 5)]
    assert max(sizes) - min(sizes) <= 10


REFUSED = [
    (lambda: holdout(TEN_EACH, LABELS, 0.0), r"holdout=0.0 is outside 0..1"),
    (lambda: holdout(TEN_EACH, LABELS, float("nan")), r"holdout=nan is outside"),
    (lambda: holdout(["a", "b"], ["x", "x"], 0.5), r"Two classes are needed and there is only 'x'"),
    (lambda: holdout(["a", "b"], [None, None], 0.5), r"there is none"),
    (lambda: holdout(["a", "b"], ["x", "y"], 0.5), r"No class has two pictures"),
    (lambda: holdout(["a", "b"], ["x", "y"], 0.5, by="identity"), r"at least 3 identities and there are 2"),
    (lambda: holdout(["a", "a"], ["x", "y"], 0.5), r"The name 'a' comes more than once"),
    (lambda: class_folds(["a", "b"], ["x", "y"], 1), r"1 folds of 2 classes"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_a_split_that_measures_nothing_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


def test_names_and_labels_come_in_pairs() -> None:
    with pytest.raises(ShapeError, match="1 names and 2 labels"):
        holdout(["a"], ["x", "y"], 0.5)
