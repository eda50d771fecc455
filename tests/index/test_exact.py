from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import InputError, InputTypeError, NonFiniteError, ShapeError, UnknownNameError
from lookalike.index.exact import topk
from lookalike.index.neighbours import pair_scores

METRICS = ("cosine", "ip", "l2")


def brute(queries, gallery, k, metric, ids, exclude):
    """Score every pair alone, sort by score and id, leave out what is excluded."""
    rows = []
    for q, query in enumerate(queries):
        scored = [
            (float(pair_scores(query, gallery[[g]], metric)[0]), int(ids[g]))
            for g in range(len(gallery))
            if ids[g] not in exclude[q]
        ]
        scored.sort(key=lambda pair: (pair[0] if metric == "l2" else -pair[0], pair[1]))
        rows.append(scored[:k])
    return rows


def as_rows(found):
    return [list(zip(scores.tolist(), ids.tolist(), strict=True)) for ids, scores in found]


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    metric=st.sampled_from(METRICS),
    k=st.integers(1, 25),
    budget=st.sampled_from([1, 300, 2000, 256 << 20]),
    threads=st.sampled_from([1, 2]),
)
def test_neighbours_equal_the_sorted_pairs_for_every_block_size_and_thread_count(data, metric, k, budget, threads):
    dim = data.draw(st.integers(1, 9))
    draw = data.draw(st.sampled_from(["ties", "crowded"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    num_q, num_g = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 20))
    make = {
        "ties": lambda n: rng.integers(-1, 2, (n, dim)) + 0.5,
        "crowded": lambda n: 1 + 1e-6 * rng.integers(0, 3, (n, dim)),
    }[draw]
    queries, gallery = make(num_q).astype(np.float32), make(num_g).astype(np.float32)
    ids = rng.permutation(num_g + 5)[:num_g]
    exclude = [rng.permutation(num_g + 8)[: rng.integers(0, num_g + 4)] for _ in range(num_q)]
    found = topk(queries, gallery, k, metric=metric, ids=ids, exclude=exclude, memory_budget=budget, threads=threads)
    assert as_rows(found) == brute(queries, gallery, k, metric, ids, exclude)
    assert found.metric == metric


@pytest.mark.parametrize("scale", [2.0**-80, 2.0**-45, 1.0, 2.0**45, 2.0**60])
@pytest.mark.parametrize("metric", METRICS)
def test_the_scale_of_the_vectors_changes_no_order(metric, scale):
    rng = np.random.default_rng(1)
    gallery = rng.standard_normal((50, 16)).astype(np.float32)
    scaled = gallery * np.float32(scale)
    want = topk(gallery[:9], gallery, 5, metric=metric)
    got = topk(scaled[:9], scaled, 5, metric=metric)
    assert got.ids.tolist() == want.ids.tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_of_long_vectors_far_from_the_origin_are_the_float64_ones(metric):
    rng = np.random.default_rng(4)
    gallery = (50 + rng.standard_normal((400, 384))).astype(np.float32)
    queries = (50 + rng.standard_normal((6, 384))).astype(np.float32)
    found = topk(queries, gallery, 7, metric=metric, memory_budget=100_000)
    for query, (ids, _) in zip(queries, found, strict=True):
        scores = pair_scores(query, gallery, metric)
        assert ids.tolist() == np.argsort(scores if metric == "l2" else -scores, kind="stable")[:7].tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [1, 2, 5, 8, 33, 1280])
def test_a_pair_has_the_same_score_in_any_company(metric, dim):
    rng = np.random.default_rng(dim)
    query, items = rng.standard_normal(dim).astype(np.float32), rng.standard_normal((700, dim)).astype(np.float32)
    together = pair_scores(query, items, metric)
    assert together.tolist() == [pair_scores(query, items[[row]], metric)[0] for row in range(700)]
    assert together[3:50:7].tolist() == pair_scores(query, items[3:50:7], metric).tolist()


def test_equal_scores_come_back_in_id_order():
    found = topk([[1.0, 0.0]], [[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 0.0]], 2, ids=[30, 20, 1, 10])
    assert found.ids.tolist() == [10, 20]
    assert found.scores.tolist() == [1.0, 1.0]


def test_excluded_items_take_no_place_and_fewer_than_k_come_back_as_fewer():
    gallery = np.eye(4, dtype=np.float32)
    found = topk(gallery[:2], gallery, 3, exclude=[[0], [1, 2, 77]])
    assert [ids.tolist() for ids, _ in found] == [[1, 2, 3], [0, 3]]
    assert topk(gallery, gallery, 9, exclude=[[0, 1, 2, 3]] * 4).lengths.tolist() == [0, 0, 0, 0]
    assert topk(gallery, gallery, 9).lengths.tolist() == [4, 4, 4, 4]


def test_negative_scores_are_neighbours_like_any_other_and_l2_is_squared():
    found = topk([[1.0, 0.0]], [[-1.0, 0.0], [-3.0, 0.0]], 2, metric="ip")
    assert (found.ids.tolist(), found.scores.tolist()) == ([0, 1], [-1.0, -3.0])
    found = topk([[0.6, 0.8]], [[1.0, 0.0], [0.6, -0.8]], 2, metric="l2")
    assert found.scores.tolist() == pytest.approx([2 - 2 * 0.6, 4 * 0.64], abs=1e-6)


def test_empty_sides_give_empty_answers():
    assert len(topk(np.empty((0, 3)), np.ones((2, 3)), 1)) == 0
    assert topk(np.ones((2, 3)), np.empty((0, 3)), 1).lengths.tolist() == [0, 0]


def test_bad_input_is_refused_by_name():
    good = np.ones((2, 3))
    with pytest.raises(InputError, match="k=0"):
        topk(good, good, 0)
    with pytest.raises(InputTypeError, match=r"1\.5"):
        topk(good, good, 1.5)
    with pytest.raises(UnknownNameError, match="cosine"):
        topk(good, good, 1, metric="cos")
    with pytest.raises(ShapeError, match="4 columns where 3"):
        topk(good, np.ones((2, 4)), 1)
    with pytest.raises(ShapeError, match="1 entries for 2 queries"):
        topk(good, good, 1, exclude=[[0]])
    with pytest.raises(InputTypeError, match="whole numbers"):
        topk(good, good, 1, exclude=[[0], ["a"]])
    with pytest.raises(InputError, match="memory_budget=0"):
        topk(good, good, 1, memory_budget=0)
    for queries, gallery, name in (([[0.0, 0, 0]], good, "queries"), (good, [[1.0, 0, 0], [0, 0, 0]], "gallery")):
        with pytest.raises(NonFiniteError, match=rf"{name} has .*length zero"):
            topk(queries, gallery, 1)
        topk(queries, gallery, 1, metric="l2")
    with pytest.raises(NonFiniteError, match="NaN"):
        topk([[np.nan]], [[1.0]], 1)


@pytest.mark.parametrize("metric", METRICS)
def test_memory_stays_within_the_budget_and_no_float64_copy_of_the_gallery_is_made(metric):
    rng = np.random.default_rng(0)
    gallery = rng.standard_normal((10_000, 256)).astype(np.float32)  # 10 MB; 20 MB in float64
    queries = gallery[:40].copy()
    budget = 2 << 20
    tracemalloc.start()
    try:
        topk(queries, gallery, 5, metric=metric, memory_budget=budget)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < budget + gallery.size + (2 << 20)  # the finiteness check at the border holds one byte a number
