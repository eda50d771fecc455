from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lookalike.errors import InputError, NonFiniteError, ShapeError
from lookalike.rank.kreciprocal import KReciprocal, candidate_distances, pool_distances

FAST = settings(max_examples=150, deadline=None)


@st.composite
def pools(draw):
    """Symmetric distances of a pool, in whole steps so that ties and zero distances abound."""
    n = draw(st.integers(2, 14))
    upper = draw(hnp.arrays(np.int64, (n, n), elements=st.integers(0, draw(st.sampled_from([0, 1, 3, 50])))))
    d = np.triu(upper, 1).astype(float)
    return d + d.T


@st.composite
def parameters(draw):
    k1 = draw(st.integers(1, 20))
    return KReciprocal(
        k1=k1,
        k2=draw(st.integers(1, k1)),
        lambda_value=draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])),
        strict_overlap=draw(st.booleans()),
    )


@FAST
@given(pools(), parameters())
def test_a_pool_equals_the_equations_written_with_sets(literal, distances, chosen) -> None:
    expected = literal(distances, chosen.k1, chosen.k2, chosen.lambda_value, strict=chosen.strict_overlap)
    np.testing.assert_allclose(pool_distances(distances, chosen), expected[0], atol=1e-12)


@FAST
@given(pools(), parameters())
def test_values_lie_in_zero_to_one_and_are_numbers(distances, chosen) -> None:
    final = pool_distances(distances, chosen)
    assert np.isfinite(final).all()
    assert ((final >= 0) & (final <= 1)).all()


@FAST
@given(pools(), st.integers(1, 20))
def test_lambda_one_keeps_the_original_order(distances, k1) -> None:
    final = pool_distances(distances, KReciprocal(k1=k1, k2=1, lambda_value=1.0))
    assert np.argsort(final, kind="stable").tolist() == np.argsort(distances[0, 1:], kind="stable").tolist()


@FAST
@given(st.integers(0, 2**32 - 1), st.integers(2, 25), parameters())
def test_shuffling_a_pool_without_ties_changes_no_value(seed, n, chosen) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n + 1, 5))
    d = ((points[:, None] - points[None]) ** 2).sum(-1)
    order = rng.permutation(n)
    moved = np.concatenate([[0], order + 1])
    shuffled = pool_distances(d[np.ix_(moved, moved)], chosen)
    np.testing.assert_allclose(shuffled, pool_distances(d, chosen)[order], atol=1e-12)


def test_one_candidate_is_at_the_mix_of_both_distances() -> None:
    # Two elements: each is the other's only neighbour, scaled distance 1, features (1, e⁻¹)/(1+e⁻¹) and its mirror.
    low, high = np.exp(-1) / (1 + np.exp(-1)), 1 / (1 + np.exp(-1))
    expected = 0.7 * (1 - 2 * low / (2 * high)) + 0.3
    assert pool_distances([[0, 5], [5, 0]], KReciprocal(k1=1, k2=1)) == pytest.approx([expected], abs=1e-15)


def test_all_equal_elements_are_all_at_distance_zero() -> None:
    assert pool_distances(np.zeros((40, 40)), KReciprocal(k1=39, k2=6)).tolist() == [0.0] * 39


def test_a_list_holds_its_own_element_first_even_among_earlier_duplicates() -> None:
    d = np.ones((31, 31))
    d[:30, :30] = 0
    np.fill_diagonal(d, 0)
    assert np.isfinite(pool_distances(d, KReciprocal(k1=5, k2=3))).all()


@pytest.mark.parametrize("case", range(6))
def test_golden_matrices_agree_to_nine_digits(shared, case) -> None:
    golden = np.load(shared / "golden/kreciprocal_matrices.npz")
    k1, k2, lambda_value = golden[f"case{case}_par"]
    final = pool_distances(golden[f"case{case}_D"], KReciprocal(k1=int(k1), k2=int(k2), lambda_value=lambda_value))
    np.testing.assert_allclose(final, golden[f"case{case}_out"], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("k1", "lambda_value"), [(20, 0.3), (40, 0.1)])
def test_golden_store_pools_agree_to_nine_digits_in_the_same_order(shared, k1, lambda_value) -> None:
    golden = np.load(shared / "golden/kreciprocal_l2_store.npz")
    vectors, name = golden["vectors"], f"p200_k{k1}_k6_l{lambda_value}"
    for row, (ids, scores) in enumerate(zip(golden["ids"], golden["scores"], strict=True)):
        d = candidate_distances(scores[:200], vectors[ids[:200]], "l2")
        final = pool_distances(d, KReciprocal(k1=k1, k2=6, lambda_value=lambda_value))
        np.testing.assert_allclose(final, golden[f"final_{name}"][row], rtol=0, atol=1e-9)
        assert np.argsort(final, kind="stable").tolist() == golden[f"order_{name}"][row].tolist()


@pytest.mark.parametrize("overlap", [("one_query_pool_float64", True), ("one_query_pool_ge_float64", False)])
def test_golden_pools_of_one_query_agree_under_both_overlap_rules(shared, overlap) -> None:
    name, strict = overlap
    golden = json.loads((shared / "golden/kreciprocal_small.json").read_text())
    features = np.array(golden["features"])
    for case in golden["cases"]:
        chosen = KReciprocal(k1=case["k1"], k2=case["k2"], lambda_value=case["lambda_value"], strict_overlap=strict)
        for query, expected in enumerate(case[name]):
            points = np.concatenate([features[query : query + 1], features[3:]])
            d = ((points[:, None] - points[None]) ** 2).sum(-1)
            np.testing.assert_allclose(pool_distances(d, chosen), expected, rtol=0, atol=1.001e-9)


def test_the_two_overlap_rules_differ_where_the_overlap_is_exactly_two_thirds(shared) -> None:
    golden = json.loads((shared / "golden/kreciprocal_small.json").read_text())
    assert any(case["one_query_pool_float64"] != case["one_query_pool_ge_float64"] for case in golden["cases"])


def test_squared_distance_of_unit_vectors_is_two_minus_twice_the_cosine() -> None:
    d = candidate_distances(np.array([0.6, 0.96]), np.array([[3, 4], [4, 3]], dtype=np.float32), "cosine")
    np.testing.assert_allclose(d, [[0, 0.8, 0.08], [0.8, 0, 0.08], [0.08, 0.08, 0]], atol=1e-11)


def test_inner_products_of_long_vectors_become_distances_from_the_largest_product() -> None:
    # products: 10·10 = 100 largest; 100-30 = 70, 100-12 = 88, 100-40 = 60; twice that, only the ratios count
    vectors = np.array([[10, 0], [4, 3]], dtype=np.float32)
    d = candidate_distances(np.array([30.0, 12.0]), vectors, "ip")
    np.testing.assert_allclose(d / 2, [[0, 70, 88], [70, 0, 60], [88, 60, 0]], atol=1e-9)


def test_exact_duplicates_tie_exactly_in_every_row() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(37, 63)).astype(np.float32)
    vectors[[5, 20, 36]] = vectors[1]
    d = candidate_distances(rng.random(37), vectors, "l2")[1:, 1:]
    for twin in (5, 20, 36):
        others = [i for i in range(37) if i not in (1, twin)]
        assert d[1, twin] == 0
        assert (d[others, 1] == d[others, twin]).all()


@pytest.mark.parametrize(
    "wrong",
    [{"k1": 0}, {"k1": 2.5}, {"k1": True}, {"k2": 0}, {"k2": 21}, {"lambda_value": 1.1}, {"lambda_value": -0.1}],
)
def test_settings_outside_their_range_are_refused_by_name(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        KReciprocal(**wrong)


def test_lambda_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="nan"):
        KReciprocal(lambda_value=float("nan"))


def test_a_matrix_that_is_not_square_or_holds_no_candidate_is_refused() -> None:
    with pytest.raises(ShapeError, match="probe"):
        pool_distances(np.zeros((2, 3)))
    with pytest.raises(ShapeError):
        pool_distances(np.zeros((1, 1)))
    with pytest.raises(NonFiniteError):
        pool_distances([[0, np.nan], [np.nan, 0]])
