from __future__ import annotations

import itertools

import numpy as np
import pytest

from lookalike.catalogue.memory import MemoryStore
from lookalike.catalogue.store import Candidate
from lookalike.errors import InputError, InputTypeError
from lookalike.rank.kreciprocal import KReciprocal, KReciprocalReranker, rerank_k_reciprocal

METRICS = ["cosine", "l2", "ip"]


def store_of(n=120, dim=12, *, metric="cosine", seed=0, length=1.0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(9, dim))
    vectors = (centres[rng.integers(9, size=n)] + 0.6 * rng.normal(size=(n, dim))) * length
    return MemoryStore([f"p{i}" for i in range(n)], vectors.astype(np.float32), metric=metric)


def probe(dim=12, seed=1):
    return np.random.default_rng(seed).normal(size=dim).astype(np.float32)


@pytest.fixture
def golden(shared):
    golden = np.load(shared / "golden/kreciprocal_l2_store.npz")
    store = MemoryStore([f"{i:04d}" for i in range(2000)], golden["vectors"], metric="l2")
    return golden, store


@pytest.mark.parametrize(("k1", "share"), [(20, 0.3), (40, 0.1)])
def test_golden_candidates_come_back_in_the_golden_order_and_scores(golden, k1, share) -> None:
    values, store = golden
    name = f"p200_k{k1}_k6_l{share}"
    reranker = KReciprocalReranker(store, k1=k1, k2=6, lambda_value=share)
    for row in range(20):
        paths = store.paths(values["ids"][row, :200])
        pool = [Candidate(path, float(score)) for path, score in zip(paths, values["scores"][row, :200], strict=True)]
        order = values[f"order_{name}"][row]
        best = reranker.rerank(pool, 200)
        assert [candidate.path for candidate in best] == [paths[i] for i in order]
        final = values[f"final_{name}"][row][order]
        np.testing.assert_allclose([candidate.score for candidate in best], final, rtol=0, atol=1e-9)


def test_the_store_s_own_search_gives_the_golden_ranking_and_pools(golden) -> None:
    values, store = golden
    found = store.neighbours(values["queries"], 200)
    np.testing.assert_allclose(found.scores.reshape(20, 200), values["scores"][:, :200], rtol=2e-6)
    again = rerank_k_reciprocal(store, values["queries"], found)
    order = np.take_along_axis(values["ids"], values["order_p200_k20_k6_l0.3"], 1)
    assert (again.ids.reshape(20, 200) == order).mean() > 0.999  # the golden probe row carries float32 rounding


@pytest.mark.parametrize("metric", METRICS)
def test_many_queries_at_once_equal_one_at_a_time(metric) -> None:
    store = store_of(metric=metric)
    queries = np.stack([probe(seed=s) for s in range(5)])
    found = store.neighbours(queries, 60)
    batched = rerank_k_reciprocal(store, queries, found, KReciprocal(k1=10, k2=3))
    reranker = KReciprocalReranker(store, k1=10, k2=3)
    for row, hits in enumerate(store.search(list(queries), k=60)):
        best = reranker.rerank(list(hits), 60)
        assert store.paths(batched[row][0]) == [candidate.path for candidate in best]
        np.testing.assert_allclose(batched[row][1], [candidate.score for candidate in best], atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("length", [0.01, 1.0, 50.0])
def test_scores_are_numbers_in_zero_to_one_ascending_whatever_the_lengths(metric, length) -> None:
    store = store_of(metric=metric, length=length)
    best = KReciprocalReranker(store).rerank(list(store.search(probe(), k=100)[0]), 100)
    scores = [candidate.score for candidate in best]
    assert np.isfinite(scores).all()
    assert scores == sorted(scores)
    assert 0 <= scores[0] <= scores[-1] <= 1


def test_an_inner_product_store_of_unit_vectors_ranks_as_a_cosine_store() -> None:
    vectors = store_of().vectors(np.arange(120))
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    query = probe() / np.linalg.norm(probe())
    results = []
    for metric in ("cosine", "ip"):
        store = MemoryStore([str(i) for i in range(120)], vectors, metric=metric)
        results.append(KReciprocalReranker(store).rerank(list(store.search(query, k=60)[0]), 60))
    assert [c.path for c in results[0]] == [c.path for c in results[1]]
    np.testing.assert_allclose([c.score for c in results[0]], [c.score for c in results[1]], atol=1e-6)


def test_a_scaled_inner_product_store_ranks_alike() -> None:
    results = []
    for length in (1.0, 1000.0):
        store = store_of(metric="ip", length=length)
        results.append(KReciprocalReranker(store).rerank(list(store.search(length * probe(), k=60)[0]), 60))
    assert [c.path for c in results[0]] == [c.path for c in results[1]]


@pytest.mark.parametrize("metric", METRICS)
def test_thirty_exact_duplicates_give_no_nan_and_tie_in_candidate_order(metric) -> None:
    vectors = store_of().vectors(np.arange(120)).copy()
    vectors[40:70] = vectors[5]
    store = MemoryStore([f"p{i}" for i in range(120)], vectors, metric=metric)
    pool = list(store.search(vectors[5], k=100)[0])
    best = KReciprocalReranker(store, k1=10, k2=3).rerank(pool, 100)
    assert np.isfinite([candidate.score for candidate in best]).all()
    place = {candidate.path: rank for rank, candidate in enumerate(pool)}
    for one, two in itertools.pairwise(best):
        assert one.score < two.score or place[one.path] < place[two.path]


@pytest.mark.parametrize("metric", METRICS)
def test_a_store_of_one_vector_many_times_keeps_the_order(metric) -> None:
    store = MemoryStore([f"p{i}" for i in range(50)], np.ones((50, 4)), metric=metric)
    pool = list(store.search(np.ones(4), k=50)[0])
    assert [c.path for c in KReciprocalReranker(store).rerank(pool, 50)] == [c.path for c in pool]


def test_lambda_one_keeps_the_order_and_top_k_cuts_it() -> None:
    store = store_of()
    pool = list(store.search(probe(), k=50)[0])
    best = KReciprocalReranker(store, lambda_value=1).rerank(pool, 7)
    assert [c.path for c in best] == [c.path for c in pool[:7]]
    assert len(KReciprocalReranker(store).rerank(pool, 500)) == 50


def test_the_order_candidates_are_given_in_changes_no_score() -> None:
    store = store_of()
    pool = list(store.search(probe(), k=80)[0])
    shuffled = [pool[i] for i in np.random.default_rng(5).permutation(80)]
    plain = dict(KReciprocalReranker(store).rerank(pool, 80))
    other = dict(KReciprocalReranker(store).rerank(shuffled, 80))
    assert plain.keys() == other.keys()
    assert all(abs(plain[path] - other[path]) < 1e-12 for path in plain)


def test_one_candidate_is_a_pool() -> None:
    store = store_of()
    [best] = KReciprocalReranker(store).rerank([Candidate("p3", 0.5)], 5)
    assert best.path == "p3"
    assert 0 <= best.score <= 1


def test_properties_show_the_settings_and_cannot_be_set() -> None:
    store = store_of()
    reranker = KReciprocalReranker(store, k1=30, k2=5, lambda_value=0.2)
    assert (reranker.store, reranker.k1, reranker.k2, reranker.lambda_value) == (store, 30, 5, 0.2)
    for name in ("store", "k1", "k2", "lambda_value"):
        with pytest.raises(AttributeError):
            setattr(reranker, name, 1)


def test_a_wrong_store_or_element_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="Store"):
        KReciprocalReranker({"a": 1})
    for element in (("p1", 0.5), "p1", None):
        with pytest.raises(InputTypeError, match="Candidate"):
            KReciprocalReranker(store_of()).rerank([Candidate("p0", 0.5), element], 5)


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        ([], "no candidates"),
        ([Candidate("p1", 0.5), Candidate("p1", 0.4)], "twice"),
        ([Candidate("p1", 0.5), Candidate("elsewhere", 0.4)], "elsewhere"),
        ([Candidate("p1", float("nan"))], "nan"),
        ([Candidate("p1", float("inf"))], "inf"),
    ],
)
def test_a_pool_that_cannot_be_ranked_is_a_value_error_that_says_why(candidates, said) -> None:
    with pytest.raises(ValueError, match=said):
        KReciprocalReranker(store_of()).rerank(candidates, 5)


@pytest.mark.parametrize("top_k", [0, -1, 2.5, True])
def test_a_top_k_that_is_no_count_is_a_value_error(top_k) -> None:
    with pytest.raises(InputError, match="top_k"):
        KReciprocalReranker(store_of()).rerank([Candidate("p1", 0.5)], top_k)


@pytest.mark.parametrize("wrong", [{"k1": 0}, {"k2": 0}, {"k1": 4, "k2": 5}, {"lambda_value": 1.5}])
def test_settings_out_of_range_are_a_value_error(wrong) -> None:
    with pytest.raises(ValueError, match=r"k1|k2|lambda_value"):
        KReciprocalReranker(store_of(), **wrong)
