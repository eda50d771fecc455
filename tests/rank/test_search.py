"""Candidates of a query: their order, what was left out, and how far each stands out."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.catalogue.memory import MemoryStore
from lookalike.embed.encoder import Card
from lookalike.errors import CutOffError, EncoderMismatchError, InputError, NonFiniteError, NotFoundError
from lookalike.index.neighbours import Neighbours, pair_scores
from lookalike.rank.query import Term, query_vector, term
from lookalike.rank.search import lift, search


@pytest.fixture
def store() -> MemoryStore:
    angles = np.deg2rad([0, 10, 20, 40, 80, 120])
    return MemoryStore(list("abcdef"), np.stack([np.cos(angles), np.sin(angles)], axis=1))


QUERY = np.array([[1.0, 0.0]], dtype=np.float32)


def never():
    raise AssertionError("no encoder is needed for ready vectors")


def test_the_unwanted_item_is_left_out_and_k_stays_filled(store):
    [found] = search(store, QUERY, k=3, exclude=[0])
    assert found.ids.tolist() == [1, 2, 3]
    [found] = search(store, QUERY, k=3, exclude=[5])  # not among the first: one fewer is not the answer
    assert found.ids.tolist() == [0, 1, 2]
    [found] = search(store, QUERY, k=100, exclude=[None])
    assert len(found) == 6


def test_a_stage_changes_the_order_and_keeps_the_measured_scores(store):
    def reverse(_store, _queries, found: Neighbours) -> Neighbours:
        return Neighbours.from_rows([(ids[::-1], scores[::-1]) for ids, scores in found], found.metric)

    [plain] = search(store, QUERY, k=2)
    [turned] = search(store, QUERY, k=2, pool=4, stage=reverse)
    assert turned.ids.tolist() == [3, 2]
    assert turned.first_ranks.tolist() == [4, 3]
    assert turned.scores.tolist() == pytest.approx([np.cos(np.deg2rad(40)), np.cos(np.deg2rad(20))])
    assert plain.first_ranks.tolist() == [1, 2]


def test_lift_counts_robust_deviations_from_this_querys_own_median():
    background = np.array([0.1, 0.2, 0.3, 0.4, 0.5])  # median 0.3, median absolute deviation 0.1
    assert lift(np.array([0.3, 0.44826]), background, "cosine").tolist() == pytest.approx([0.0, 1.0])
    assert lift(np.array([0.15174]), background, "l2").tolist() == pytest.approx([1.0])  # nearer is better
    assert np.isnan(lift(np.array([0.3]), np.full(5, 0.3), "cosine")).all()


def test_k_below_one_is_refused(store):
    with pytest.raises(CutOffError, match="k=0"):
        search(store, QUERY, k=0)


def test_terms_are_brought_to_length_one_before_they_are_added(store):
    parts = [Term(kind="vector", value=np.array([10.0, 0.0])), Term(kind="vector", value=np.array([0.0, 2.0]))]
    assert query_vector(parts, store, never).tolist() == pytest.approx([2**-0.5, 2**-0.5])
    minus = [parts[0], Term(kind="vector", value=np.array([0.0, 2.0]), weight=-1.0)]
    assert query_vector(minus, store, never).tolist() == pytest.approx([2**-0.5, -(2**-0.5)])


def test_one_term_alone_is_asked_as_it_is(store):
    assert query_vector([Term(kind="vector", value=np.array([3.0, 4.0]))], store, never).tolist() == [3.0, 4.0]
    assert query_vector([Term(kind="item", value=0)], store, never).tolist() == pytest.approx([1.0, 0.0])


def test_terms_that_cancel_out_are_refused(store):
    parts = [Term(kind="item", value=0), Term(kind="item", value=0, weight=-1.0)]
    with pytest.raises(NonFiniteError, match="no direction"):
        query_vector(parts, store, never)


@pytest.mark.parametrize("weight", [0.0, float("nan"), float("inf")])
def test_a_weight_that_says_nothing_is_refused(weight):
    with pytest.raises(InputError, match="says nothing"):
        Term(kind="item", value=1, weight=weight)


def test_an_empty_query_and_an_unknown_item_are_refused(store):
    with pytest.raises(InputError, match="finds nothing"):
        query_vector([], store, never)
    with pytest.raises(InputError, match="99"):
        query_vector([Term(kind="item", value=99)], store, never)


def test_what_was_typed_is_a_picture_where_the_file_exists_and_else_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "red shoe").touch()
    assert term("red shoe").kind == "picture"
    assert term("blue shoe").kind == "text"
    for missing in ("shoe.jpg", "photos/shoe", "SHOE.JPEG"):
        with pytest.raises(NotFoundError, match="no picture"):
            term(missing)


def test_words_for_an_encoder_of_pictures_are_refused_before_it_is_loaded(store):
    class Pictures:
        metric, dim = "cosine", 2
        card = Card(name="pictures-only", weights="0", dim=2, pooling="none")

    with pytest.raises(InputError, match=r"cannot be searched with words.*open_clip:"):
        query_vector([Term(kind="text", value="red shoe")], Pictures(), never)


def test_words_are_read_by_the_model_that_made_the_vectors_and_by_no_other():
    class Reader:
        def __init__(self, weights: str) -> None:
            self.card = Card(name="reader", weights=weights, dim=2, pooling="none", supports_text=True)

        def encode_images(self, images):
            return np.tile(np.float32([1, 0]), (len(images), 1))

        def encode_texts(self, texts):
            return np.float32([[len(text), 0] for text in texts]) / np.float32([[len(text)] for text in texts])

    class Stored:
        metric, dim, card = "cosine", 2, Reader("1").card

    words = [Term(kind="text", value="red shoe")]
    assert query_vector(words, Stored(), lambda: Reader("1")).tolist() == [1.0, 0.0]
    with pytest.raises(EncoderMismatchError, match=r"weights: '1' != '2'"):
        query_vector(words, Stored(), lambda: Reader("2"))


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_lift_is_measured_against_the_scores_of_all_items_where_they_are_few(metric):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(50, 6)).astype(np.float32)
    store = MemoryStore([str(row) for row in range(50)], rows, metric=metric)
    query = rng.normal(size=(1, 6)).astype(np.float32)
    [found] = search(store, query, k=50)
    everything = pair_scores(query[0], rows, metric)
    assert found.lifts == pytest.approx(lift(found.scores, everything, metric), abs=1e-4)


def test_a_cosine_is_never_shown_above_one():
    rows = np.random.default_rng(0).normal(size=(200, 7)).astype(np.float32)
    store = MemoryStore([str(row) for row in range(200)], rows)
    assert max(found.scores[0] for found in search(store, rows, k=1)) <= 1.0
    assert max(scores[0] for _, scores in store.neighbours(rows, 1)) > 1.0  # what rounding does to the raw score


def test_a_store_without_scores_to_compare_with_has_no_lift():
    assert np.isnan(lift(np.array([0.3]), np.array([]), "cosine")).all()
