"""From sides or pictures to a report: what is counted, what is said, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import lookalike as la
from lookalike.errors import InputError, NonFiniteError, ShapeError
from lookalike.evaluate.diagnose import diagnose
from lookalike.evaluate.protocol import Protocol, items_digest
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side


def side(rows, labels, ids=None, **columns) -> Side:
    vectors = np.array(rows, dtype=np.float32)
    numbers = np.arange(len(vectors)) if ids is None else np.array(ids)
    return Side(vectors=vectors, ids=numbers, columns={"label": labels, **columns})


CLOSE = [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0], [0.1, 0.99]]


def test_the_query_is_removed_by_id_and_not_by_position():
    gallery = side(CLOSE, list("abab"), ids=[10, 11, 12, 13])
    query = side([CLOSE[0]], ["a"], ids=[10])
    report = measure(query, gallery, ks=(1, 3))
    assert report.protocol.self_rule == "removed by id"
    assert report.metrics["recall@1"] == 0.0  # item 11, label b, is nearest once item 10 is gone
    assert report.metrics["recall@3"] == 1.0


def test_the_order_of_the_input_changes_neither_number_nor_digest():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(30, 8)), rng.integers(0, 5, 30).astype(str).tolist()
    order = rng.permutation(30)
    one = measure(side(rows, labels), side(rows, labels))
    shuffled = side(rows[order], [labels[i] for i in order], ids=order)
    two = measure(shuffled, shuffled)
    assert one.metrics == two.metrics
    assert one.protocol.digest == two.protocol.digest


def test_another_label_on_one_item_is_another_protocol():
    one = measure(side(CLOSE, list("aabb")), side(CLOSE, list("aabb")))
    two = measure(side(CLOSE, list("aaba")), side(CLOSE, list("aaba")))
    assert one.protocol.digest != two.protocol.digest
    assert [line.split(":")[0] for line in one.protocol.differences(two.protocol)] == ["items"]


def test_cut_offs_and_seed_do_not_make_another_protocol():
    base = {"relevance": "r", "metric": "cosine", "self_rule": "removed by id", "split": "s", "items": "i"}
    one, two = Protocol(**base, ks=(1, 5), seed=0), Protocol(**base, ks=(1, 10), seed=3)
    assert one.digest == two.digest


def test_a_digest_of_names_does_not_confuse_where_one_ends():
    assert items_digest(["a", "b"]) != items_digest(["ab"])
    assert items_digest(["a"], ["b"]) != items_digest(["a", "b"])


def test_one_label_only_is_refused_because_every_answer_would_be_right():
    with pytest.raises(InputError, match="every answer would be right"):
        measure(side(CLOSE, list("aaaa")), side(CLOSE, list("aaaa")))


def test_sides_check_what_belongs_together():
    with pytest.raises(ShapeError, match="'label' has 3 entries for 4 vectors"):
        side(CLOSE, list("abc"))
    with pytest.raises(NonFiniteError, match="row 1"):
        side([[1.0, 0.0], [np.nan, 1.0]], list("ab"))
    with pytest.raises(InputError, match="Did you mean 'label'"):
        side(CLOSE, list("aabb")).column("lable")


def test_ties_are_settled_by_id_and_counted():
    rows = [[1.0, 0.0]] * 4
    report = measure(side(rows, list("abab")), side(rows, list("abab")), ks=(1,))
    # everything ties: each query's first answer is the item of the smallest other id
    assert report.metrics["recall@1"] == 0.25
    assert any(warning.startswith("4 queries depend on a tie") for warning in report.warnings)


def test_no_evaluated_query_means_null_and_never_zero():
    report = measure(side(CLOSE, list("abcd")), side(CLOSE, list("abcd")))
    assert np.isnan(report.metrics["recall@1"])
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["metrics"]["recall@1"] is None
    assert plain["intervals"] == {}
    assert "Nothing was evaluated" in report.diagnosis[0]


def test_the_interval_of_clustered_queries_is_wider():
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(12, 6))
    rows = np.repeat(centres, 10, axis=0) + rng.normal(scale=0.9, size=(120, 6))
    labels = np.repeat(np.arange(12), 10).astype(str).tolist()
    plain = measure(side(rows, labels), side(rows, labels), ks=(1,))
    grouped = measure(side(rows, labels), side(rows, labels), ks=(1,), cluster="label")
    width = [high - low for low, high in (plain.intervals["map"], grouped.intervals["map"])]
    assert plain.metrics == grouped.metrics
    assert width[1] > width[0]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"recall@1": 0.5, "recall@10": 0.9}, "re-rank"),
        ({"recall@1": 0.1, "recall@10": 0.3}, "another encoder"),
        ({"recall@1": 1.0, "recall@10": 1.0}, "leak"),
    ],
)
def test_the_diagnosis_names_the_next_step_and_its_numbers(values, word):
    [sentence] = diagnose(values, num_queries=500, num_evaluated=500, excluded={}, measured=True)
    assert word in sentence
    assert f"{values['recall@1']:.3f}" in sentence


def test_few_queries_and_many_left_out_are_said():
    sentences = diagnose(
        {"recall@1": 0.6, "recall@5": 0.7}, num_queries=80, num_evaluated=40, excluded={"self_only": 40}, measured=True
    )
    assert any("Few queries (40)" in sentence for sentence in sentences)
    assert any("40 of 80" in sentence and "self_only 40" in sentence for sentence in sentences)


def colour(rgb, seed) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(np.array(rgb) + rng.normal(0, 10, (32, 32, 3)), 0, 255).astype(np.uint8)


def mean_colour(images):
    return np.stack([image.reshape(-1, 3).mean(axis=0) for image in images])


def test_the_package_and_the_function_are_one_name():
    import lookalike.evaluate  # noqa: F401 - the import that would hide a function of the same name

    reds, blues = [colour((200, 20, 20), i) for i in range(3)], [colour((20, 20, 200), i) for i in range(3)]
    report = la.evaluate(reds[:1] + blues[:1], ["r", "b"], reds[1:] + blues[1:], list("rrbb"), mean_colour, ks=(1,))
    assert report.recall == {1: 1.0}


def test_a_path_on_both_sides_is_one_picture_and_not_its_own_answer(tmp_path):
    paths = []
    for number, rgb in enumerate([(200, 20, 20), (190, 30, 20), (20, 20, 200), (30, 20, 190)]):
        paths.append(str(tmp_path / f"{number}.png"))
        Image.fromarray(colour(rgb, number)).save(paths[-1])
    report = la.evaluate(paths, list("rrbb"), paths, list("rrbb"), mean_colour, ks=(1,))
    assert report.protocol.self_rule == "removed by id"
    assert (report.num_queries, report.num_gallery) == (4, 4)
    relative = la.evaluate(
        [paths[0]], ["r"], [tmp_path / "." / "0.png", *paths[1:]], list("rrbb"), mean_colour, ks=(1,)
    )
    assert relative.protocol.self_rule == "removed by id"


def test_the_same_arrays_on_both_sides_need_ids_or_the_word_self_match():
    pictures = [colour((200, 20, 20), i) for i in range(2)] + [colour((20, 20, 200), i) for i in range(2)]
    vectors = mean_colour(pictures)
    with pytest.raises(InputError, match="would find itself"):
        la.evaluate(vectors, list("aabb"), vectors.copy(), list("aabb"), None)
    report = la.evaluate(vectors, list("aabb"), vectors, list("aabb"), None, self_match=True, ks=(1,))
    assert report.recall == {1: 1.0}
    assert report.protocol.self_rule == "kept: not a measurement"


def test_an_unreadable_picture_is_left_out_on_its_side_with_its_label(tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"nothing")
    reds, blues = [colour((200, 20, 20), i) for i in range(2)], [colour((20, 20, 200), i) for i in range(2)]
    report = la.evaluate(
        [str(tmp_path / "bad.jpg"), reds[0], blues[0]], ["b", "r", "b"], [reds[1], blues[1]], ["r", "b"], mean_colour,
        ks=(1,), query_ids=[0, 1, 2], gallery_ids=[3, 4],
    )  # fmt: skip
    assert report.recall == {1: 1.0}  # a shifted row would have called a red picture blue
    assert report.num_queries == 2
    assert [failure.reason for failure in report.failed] == ["unknown-format"]


def test_every_public_name_is_there_and_sorted():
    assert la.__all__ == sorted(la.__all__)
    for name in la.__all__:
        assert getattr(la, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        _ = la.serach


def test_where_self_matches_are_kept_no_query_is_called_a_copy_of_itself():
    rows = np.random.default_rng(4).normal(size=(6, 5)).astype(np.float32)
    report = measure(side(rows, list("aabbcc")), side(rows, list("aabbcc")), self_match=True)
    assert report.leaks is None
    assert "near-duplicate" not in report.to_text()
