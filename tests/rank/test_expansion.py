from __future__ import annotations

import json

import numpy as np
import pytest

from lookalike.catalogue.memory import MemoryStore
from lookalike.errors import InputError, NonFiniteError, ShapeError
from lookalike.rank.expansion import AlphaExpansion, augment, expand_queries, expanded


def test_golden_expansions_agree_to_nine_digits(shared) -> None:
    golden = json.loads((shared / "golden/kreciprocal_small.json").read_text())
    features = np.array(golden["features"])
    for case in golden["alpha_qe"]["cases"]:
        for query, names in enumerate(case["neighbours"]):
            found = expanded(features[query], features[3:][names], case["alpha"])
            np.testing.assert_allclose(found, case["expanded"][query], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("alpha", "n"), [(3, 50), (0, 5)])
def test_golden_store_is_expanded_and_searched_again_alike(shared, alpha, n) -> None:
    golden = np.load(shared / "golden/kreciprocal_l2_store.npz")
    store = MemoryStore([f"{i}" for i in range(2000)], golden["vectors"], metric="l2")
    plain = store.neighbours(golden["queries"], n)
    queries = expand_queries(store, golden["queries"], plain, AlphaExpansion(n=n, alpha=alpha))
    np.testing.assert_allclose(queries, golden[f"aqe_queries_a{alpha}_n{n}"], rtol=0, atol=6e-8)  # one float32 step
    again = store.neighbours(queries, 200)
    ids, scores = golden[f"aqe_ids_a{alpha}_n{n}"], golden[f"aqe_scores_a{alpha}_n{n}"]
    np.testing.assert_allclose(again.scores.reshape(20, 200), scores, rtol=2e-6)
    for row, place in np.argwhere(again.ids.reshape(20, 200) != ids):  # only where the golden float32 scores nearly tie
        others = np.delete(scores[row], place)
        assert np.abs(others - scores[row, place]).min() < 2e-6 * scores[row, place]
    assert (again.ids.reshape(20, 200) == ids).mean() > 0.999


def test_a_neighbour_at_a_right_angle_or_behind_has_no_weight_even_at_alpha_zero() -> None:
    assert expanded([1, 0], [[0, 5], [-2, 0.1]], alpha=0).tolist() == [1, 0]


def test_weights_are_powers_of_the_cosine() -> None:
    # cos((1,0), (3,4)/5) = 0.6, cubed 0.216: (1 + 0.216·0.6, 0.216·0.8), then to length 1
    total = np.array([1 + 0.216 * 0.6, 0.216 * 0.8])
    np.testing.assert_allclose(expanded([2, 0], [[3, 4]], alpha=3), total / np.linalg.norm(total), atol=1e-15)


def test_no_neighbours_leave_the_unit_query() -> None:
    assert expanded([3, 4], np.empty((0, 2))).tolist() == [0.6, 0.8]


def test_a_query_with_fewer_neighbours_uses_those_it_has() -> None:
    store = MemoryStore(["a"], np.array([[0.6, 0.8]]))
    queries = np.array([[1.0, 0.0]], np.float32)
    found = expand_queries(store, queries, store.neighbours(queries, 1), AlphaExpansion(n=50, alpha=0))
    np.testing.assert_allclose(found[0], expanded([1, 0], [[0.6, 0.8]], 0), atol=1e-7)


def test_augmented_rows_are_expansions_by_their_nearest_other_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6)).astype(np.float32)
    x[11] = x[4]  # a duplicate is a neighbour, the row itself is not
    u = x.astype(float) / np.linalg.norm(x, axis=1, keepdims=True)
    found = augment(x, AlphaExpansion(n=3, alpha=2))
    for row in range(40):
        others = [i for i in range(40) if i != row]
        near = sorted(others, key=lambda i, row=row: (-round(float(u[row] @ u[i]), 12), i))[:3]
        np.testing.assert_allclose(found[row], expanded(u[row], u[near], 2), atol=1e-6)


def test_what_cannot_be_expanded_is_refused() -> None:
    with pytest.raises(InputError, match="n=0"):
        AlphaExpansion(n=0)
    with pytest.raises(InputError, match="alpha"):
        AlphaExpansion(alpha=-1)
    store = MemoryStore(["a", "b"], np.eye(2))
    found = store.neighbours(np.eye(2, dtype=np.float32), 1)
    with pytest.raises(ShapeError, match="1 queries for 2"):
        expand_queries(store, np.ones((1, 2), np.float32), found)
    with pytest.raises(NonFiniteError, match="queries"):
        expand_queries(store, np.zeros((2, 2), np.float32), found)
