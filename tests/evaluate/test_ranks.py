from __future__ import annotations

import importlib.util
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import InputError, NonFiniteError, ShapeError, UnknownNameError
from lookalike.evaluate import counting, kernels
from lookalike.evaluate.bounds import make_filter, wide_products
from lookalike.evaluate.metrics import recall
from lookalike.evaluate.ranks import Ranks, rank_blocks, relevant_ranks
from lookalike.evaluate.relevance import CameraRule, ListedPairs, SameLabel, Truth, build_truth

_spec = importlib.util.spec_from_file_location("evaluate_oracles", Path(__file__).with_name("oracles.py"))
oracles = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(oracles)

METRICS = ("cosine", "ip", "l2")


def truth_of(queries, gallery, **rules) -> Truth:
    return build_truth(SameLabel(queries, gallery), num_queries=len(queries), num_gallery=len(gallery), **rules)


def expected(vectors_q, vectors_g, truth, metric, ids=None, *, first_only=False):
    rows = []
    for query in range(truth.num_queries):
        if truth.reasons[query]:
            rows.append([])
            continue
        relevant, removed = truth.rows(np.array([query]))
        order = oracles.ranking(vectors_q[query], vectors_g, set(removed.items.tolist()), metric, ids)
        ranks = oracles.relevant_ranks(order, set(relevant.items.tolist()))
        rows.append(ranks[:1] if first_only else ranks)
    return rows


def as_rows(ranks: Ranks) -> list[list[int]]:
    return [ranks[query].tolist() for query in range(len(ranks))]


@st.composite
def tie_heavy(draw):
    """Small whole numbers: most scores are equal to some other one."""
    dim = draw(st.integers(1, 6))
    sizes = draw(st.tuples(st.integers(1, 9), st.integers(1, 14)))
    value = st.integers(-2, 2)
    q, g = (
        np.array(draw(st.lists(st.lists(value, min_size=dim, max_size=dim), min_size=n, max_size=n)), np.float32)
        for n in sizes
    )
    same = draw(st.booleans())
    if same:
        q = g
    for array in (q, g):
        array[~array.any(axis=1), 0] = 1  # cosine takes no zero vectors
    labels = st.sampled_from(["a", "b", "c", None])
    cameras = st.sampled_from([0, 1, None])
    g_labels, g_cameras = ([draw(kind) for _ in g] for kind in (labels, cameras))
    q_labels, q_cameras = (g_labels, g_cameras) if same else ([draw(kind) for _ in q] for kind in (labels, cameras))
    g_ids = np.array(draw(st.permutations(range(len(g)))), dtype=np.int64)
    q_ids = g_ids if same else np.arange(len(q)) + draw(st.integers(0, 20))
    rules = {"query_ids": q_ids, "gallery_ids": g_ids}
    if draw(st.booleans()):
        rules["camera"] = CameraRule(q_cameras, g_cameras)
    if draw(st.booleans()):
        rules["junk"] = ListedPairs({0: draw(st.lists(st.integers(0, len(g) - 1)))})
    return q, g, truth_of(q_labels, g_labels, **rules), g_ids


@settings(max_examples=150, deadline=None)
@given(
    case=tie_heavy(),
    metric=st.sampled_from(METRICS),
    first_only=st.booleans(),
    block=st.sampled_from([None, 1, 2, 3, 7]),
    threads=st.sampled_from([1, 2, 3]),
    most=st.sampled_from([0, 2, 512]),
)
def test_ranks_equal_the_sorted_list_for_every_block_size_thread_count_and_way_of_counting(
    case, metric, first_only, block, threads, most
):
    queries, gallery, truth, ids = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MOST_THRESHOLDS", most)
        ranks = relevant_ranks(
            queries,
            gallery,
            truth,
            metric=metric,
            gallery_ids=ids,
            first_only=first_only,
            block=block,
            threads=threads,
        )
    assert as_rows(ranks) == expected(queries, gallery, truth, metric, ids.tolist(), first_only=first_only)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("most", [0, 4, 512])
def test_ranks_equal_a_float64_brute_force_count_on_crowded_vectors(metric, same, most, monkeypatch):
    monkeypatch.setattr(counting, "MOST_THRESHOLDS", most)
    # all rows within a thousandth of each other: float32 scores are useless, almost every comparison is a close one
    rng = np.random.default_rng(5)
    base = rng.standard_normal(33)
    gallery = (base + 1e-3 * rng.standard_normal((300, 33))).astype(np.float32)
    queries = gallery if same else (base + 1e-3 * rng.standard_normal((80, 33))).astype(np.float32)
    labels = rng.integers(0, 40, 300)
    truth = truth_of(labels[: len(queries)], labels, query_ids=np.arange(len(queries)), gallery_ids=np.arange(300))
    q, g = queries.astype(np.float64), gallery.astype(np.float64)
    scores = {
        "ip": q @ g.T,
        "cosine": (q @ g.T) / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(g, axis=1),
        "l2": -((q[:, None] - g[None]) ** 2).sum(-1),
    }[metric]
    scores[np.arange(len(queries)), np.arange(len(queries))] = -np.inf
    hits = labels[: len(queries), None] == labels[None]
    hits[np.arange(len(queries)), np.arange(len(queries))] = False
    want = [
        sorted(1 + int((row > row[j]).sum()) for j in np.flatnonzero(hit))
        for row, hit in zip(scores, hits, strict=True)
    ]
    assert as_rows(relevant_ranks(queries, gallery, truth, metric=metric, threads=1)) == want


@pytest.mark.parametrize("scale", [1e-25, 1e-12, 1.0, 1e12, 1e17])
@pytest.mark.parametrize("metric", METRICS)
def test_the_scale_of_the_vectors_changes_no_rank(metric, scale):
    rng = np.random.default_rng(2)
    gallery = rng.standard_normal((60, 8)).astype(np.float32)
    scaled = (gallery * np.float64(2.0 ** round(np.log2(scale)))).astype(np.float32)
    truth = truth_of(np.arange(60) % 12, np.arange(60) % 12, query_ids=np.arange(60), gallery_ids=np.arange(60))
    plain = relevant_ranks(gallery, gallery, truth, metric=metric)
    assert as_rows(relevant_ranks(scaled, scaled, truth, metric=metric)) == as_rows(plain)


@pytest.mark.parametrize("dim", [1, 3, 4, 7, 128, 1280])
@pytest.mark.parametrize("metric", METRICS)
def test_kernel_scores_have_the_bits_of_their_numpy_twin(metric, dim):
    rng = np.random.default_rng(dim)
    q, g = (rng.standard_normal((n, dim)).astype(np.float32) for n in (3, 4))
    rows = kernels.Rows(q, g, kernels.norms(q), kernels.norms(g), np.arange(4), counting._CODES[metric])
    for query in range(3):
        for item in range(4):
            assert kernels.key(rows, query, item) == oracles.key(q[query], g[item], metric)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(METRICS), far=st.sampled_from([0.0, 1.0, 1e3, 1e5]))
def test_a_score_outside_the_margin_is_on_the_right_side(seed, metric, far):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 300))
    q = (far + rng.standard_normal((4, dim))).astype(np.float32)
    g = (rng.choice([0.0, far]) + rng.standard_normal((50, dim)) * rng.choice([1e-3, 1.0])).astype(np.float32)
    ready = make_filter(q, g, metric)
    tile = (ready.queries @ ready.gallery.T).astype(np.float64)
    middle = ready.queries.astype(np.float64) @ ready.gallery.astype(np.float64).T
    for query in range(4):
        exact = np.array([oracles.key(q[query], row, metric) for row in g])
        for item in range(50):
            assert (exact[tile[query] > middle[query, item] + ready.margin[query]] > exact[item]).all()
            assert (exact[tile[query] < middle[query, item] - ready.margin[query]] < exact[item]).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), metric=st.sampled_from(METRICS), far=st.sampled_from([0.0, 1e3]))
def test_float64_products_are_within_their_margin_of_the_exact_score(seed, metric, far):
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 200))
    q, g = ((far + rng.standard_normal((n, dim))).astype(np.float32) for n in (3, 40))
    products, margins = wide_products(q, g, metric)
    for query in range(3):
        exact = np.array([oracles.key(q[query], row, metric) for row in g])
        assert (np.abs(products[query] - exact) <= margins[query]).all()
        assert margins[query] <= 1e-10 * max(1.0, np.abs(exact).max()) * (1 + far) ** 2


def test_an_exact_duplicate_under_another_label_costs_the_query_its_first_place():
    # dropping the first result instead of the query itself would give rank 1 to one of the two twins
    gallery = np.array([[1, 0], [1, 0], [0.9, 0.1]], np.float32)
    truth = truth_of(["a", "b", "a"], ["a", "b", "a"], query_ids=np.arange(3), gallery_ids=np.arange(3))
    ranks = relevant_ranks(gallery, gallery, truth)
    assert as_rows(ranks) == [[2], [], [1]]
    assert ranks.excluded == {"self_only": 1}


def test_equal_scores_rank_in_id_order_and_the_query_is_reported_as_tied():
    gallery = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    truth = truth_of(["a", "b"], ["a", "b", "c"])
    queries = np.array([[1, 0], [1, 0]], np.float32)
    ranks = relevant_ranks(queries, gallery, truth, gallery_ids=np.array([7, 3, 1]))
    assert as_rows(ranks) == [[2], [1]]
    assert ranks.tied.tolist() == [True, True]


@pytest.mark.parametrize("most", [0, 512])
def test_a_tie_among_relevant_items_alone_or_with_a_removed_one_is_no_tie(most, monkeypatch):
    monkeypatch.setattr(counting, "MOST_THRESHOLDS", most)
    gallery = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], np.float32)
    truth = truth_of(["a"], ["a", "a", "b", "b"], junk=ListedPairs({0: [2]}))
    ranks = relevant_ranks(gallery[:1], gallery, truth)
    assert as_rows(ranks) == [[1, 2]]
    assert ranks.tied.tolist() == [False]
    assert relevant_ranks(gallery[:1], gallery, truth_of(["a"], ["a", "a", "b", "b"])).tied.tolist() == [True]


def test_small_memory_budgets_change_nothing():
    rng = np.random.default_rng(0)
    gallery = rng.integers(-2, 3, (70, 5)).astype(np.float32) + np.float32(0.5)
    labels = rng.integers(0, 4, 70)
    truth = truth_of(labels, labels, query_ids=np.arange(70), gallery_ids=np.arange(70))
    plain = relevant_ranks(gallery, gallery, truth)
    small = relevant_ranks(gallery, gallery, truth, memory_budget=1000)
    assert as_rows(small) == as_rows(plain)
    assert small.tied.tolist() == plain.tied.tolist()
    parts = list(rank_blocks(gallery, gallery, truth, block=16, memory_budget=1000))
    assert [len(part) for part in parts] == [16, 16, 16, 16, 6]


def test_an_equal_copy_of_the_queries_gives_what_the_same_array_gives():
    rng = np.random.default_rng(1)
    gallery = rng.standard_normal((40, 6)).astype(np.float32)
    truth = truth_of(np.arange(40) % 7, np.arange(40) % 7, query_ids=np.arange(40), gallery_ids=np.arange(40))
    assert as_rows(relevant_ranks(gallery, gallery.copy(), truth)) == as_rows(relevant_ranks(gallery, gallery, truth))


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_no_queries_or_no_gallery_gives_no_ranks(shape):
    q, n = shape
    truth = truth_of(["a"] * q, ["a"] * n)
    ranks = relevant_ranks(np.ones((q, 2)), np.ones((n, 2)), truth)
    assert len(ranks) == q
    assert ranks.ranks.size == 0
    assert ranks.excluded == ({"label_absent": q} if q else {})


def test_zero_vectors_are_refused_by_row_under_cosine_and_ranked_under_l2():
    gallery = np.array([[1, 0], [0, 0]], np.float32)
    truth = truth_of(["a"], ["a", "b"])
    with pytest.raises(NonFiniteError, match=r"gallery .*row 1"):
        relevant_ranks(gallery[:1], gallery, truth)
    assert as_rows(relevant_ranks(gallery[:1], gallery, truth, metric="l2")) == [[1]]


def test_what_does_not_fit_is_refused():
    truth = truth_of(["a"], ["a", "b"])
    with pytest.raises(ShapeError, match="1 queries and 2 items"):
        relevant_ranks(np.ones((2, 2)), np.ones((2, 2)), truth)
    with pytest.raises(ShapeError, match="3 columns where 2"):
        relevant_ranks(np.ones((1, 2)), np.ones((2, 3)), truth)
    with pytest.raises(UnknownNameError, match="cosine"):
        relevant_ranks(np.ones((1, 2)), np.ones((2, 2)), truth, metric="cosin")
    with pytest.raises(InputError, match="block=0"):
        relevant_ranks(np.ones((1, 2)), np.ones((2, 2)), truth, block=0)


def test_ranks_from_lists_leave_out_removed_items_and_give_the_missed_no_rank():
    truth = truth_of(["a"], ["a", "b", "a", "a", "b"], query_ids=np.array([10]), gallery_ids=np.arange(10, 15))
    ranks = Ranks.from_lists([[10, 11, 13]], truth, gallery_ids=np.arange(10, 15))
    assert as_rows(ranks) == [[2]]
    assert (ranks.num_relevant.tolist(), ranks.depth) == ([2], 3)
    assert recall(ranks, 1).tolist() == [0.0]
    with pytest.raises(InputError, match="twice"):
        Ranks.from_lists([[1, 1]], truth)
    with pytest.raises(InputError, match="id 9"):
        Ranks.from_lists([[9]], truth, gallery_ids=np.arange(10, 15))
    with pytest.raises(InputError, match=r"outside 0\.\.4"):
        Ranks.from_lists([[5]], truth)
    with pytest.raises(ShapeError, match="2 candidate lists"):
        Ranks.from_lists([[1], [2]], truth)


def test_whole_lists_give_the_ranks_of_the_whole_gallery():
    rng = np.random.default_rng(3)
    q, g = (rng.integers(-2, 3, (n, 4)).astype(np.float32) + np.float32(0.25) for n in (12, 30))
    truth = truth_of(rng.integers(0, 5, 12), rng.integers(0, 5, 30))
    lists = [oracles.ranking(row, g, (), "cosine") for row in q]
    assert as_rows(Ranks.from_lists(lists, truth)) == as_rows(relevant_ranks(q, g, truth))


def test_kernels_compile_without_a_cache_where_the_installation_is_read_only(monkeypatch):
    real = kernels.numba.njit

    def refuse(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(kernels.numba, "njit", refuse)
    assert kernels._compile(lambda a: a + 1)(1) == 2


def test_compiling_is_announced_once_where_nothing_is_cached(monkeypatch, caplog):
    class Fresh:
        signatures = ()

        class stats:  # noqa: N801
            cache_path = "/nowhere"

    monkeypatch.setattr(counting.kernels, "count_tile", Fresh)
    with caplog.at_level(logging.INFO, logger="lookalike"):
        counting._notice()
    assert [record.message for record in caplog.records] == ["Compiling the ranking kernels, once (a few seconds)."]
