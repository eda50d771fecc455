from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import CutOffError, InputError, NonFiniteError, ShapeError, UnknownNameError
from lookalike.rank.kreciprocal import KReciprocal, joint_distances
from lookalike.rank.kreciprocal_gallery import gallery_distances, rerank_gallery, rerank_within
from lookalike.rank.lists import ranking_lists, space

METRICS = ["cosine", "l2", "ip"]


def dense(vectors, metric):
    """Distances as documented, all of them, in float64."""
    x = vectors.astype(np.float64)
    if metric == "cosine":
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    if metric == "ip":
        return 2 * ((x * x).sum(1).max() - x @ x.T)
    return ((x[:, None] - x[None]) ** 2).sum(-1)


def clustered(seed, n, dim=8, groups=6):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(groups, dim)) * 2
    return (centres[rng.integers(groups, size=n)] + rng.normal(size=(n, dim)) + 0.5).astype(np.float32)


def matrix_of(found, queries, gallery):
    out = np.full((queries, gallery), np.nan)
    for row, (ids, scores) in enumerate(found):
        out[row, ids] = scores
    return out


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("strict", [False, True])
def test_the_whole_gallery_equals_the_equations_written_with_sets(literal, metric, strict) -> None:
    x = clustered(1, 60)
    chosen = KReciprocal(k1=8, k2=3, lambda_value=0.3, strict_overlap=strict)
    found = rerank_gallery(x[:12], x[12:], 48, metric=metric, settings=chosen)
    expected = literal(dense(x, metric), 8, 3, 0.3, strict=strict, queries=12)
    np.testing.assert_allclose(matrix_of(found, 12, 48), expected, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 20), st.integers(1, 30), st.sampled_from([0, 0.3]))
def test_any_duplicates_and_sizes_equal_the_equations(literal, seed, queries, gallery, k1, share) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, size=(queries + gallery, 2)).astype(np.float32)  # whole numbers: exact, ties everywhere
    chosen = KReciprocal(k1=k1, k2=min(3, k1), lambda_value=share)
    found = rerank_gallery(x[:queries], x[queries:], gallery, metric="l2", settings=chosen, block=5)
    expected = literal(dense(x, "l2"), k1, min(3, k1), share, queries=queries)
    np.testing.assert_allclose(matrix_of(found, queries, gallery), expected, atol=1e-12)
    for _, scores in found:
        assert (np.diff(scores) >= 0).all()
        assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("k", [5, 40, 300])
def test_top_k_is_the_head_of_the_full_order_with_ties_by_row(k) -> None:
    x = clustered(2, 420)
    x[300:] = x[180:300]  # every gallery picture of the last 120 stands twice
    full = rerank_gallery(x[:20], x[20:], 400)
    cut = rerank_gallery(x[:20], x[20:], k)
    for (ids, scores), (top, best) in zip(full, cut, strict=True):
        assert top.tolist() == ids[:k].tolist()
        assert best.tolist() == scores[:k].tolist()
        assert np.lexsort((ids, scores)).tolist() == list(range(400))


@pytest.mark.parametrize("metric", METRICS)
def test_block_size_and_thread_count_change_no_bit(metric) -> None:
    x = clustered(3, 300, dim=40)
    x[200:260] = x[7]  # more duplicates than a list holds
    runs = [
        rerank_gallery(x[:30], x[30:], 50, metric=metric, block=block, threads=threads)
        for block, threads in [(2048, 1), (7, 1), (64, 2), (300, 2)]
    ]
    for other in runs[1:]:
        assert (other.ids == runs[0].ids).all()
        assert (other.scores == runs[0].scores).all()


def test_a_tie_at_the_end_of_a_list_is_settled_by_row() -> None:
    x = np.zeros((40, 3), np.float32)
    x[:, 0] = 1
    x[0] = (0, 1, 0)  # every other row is at the same distance from it
    lists = ranking_lists(space(x, "l2"), 6, block=9)
    assert lists.names[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert lists.names[30].tolist() == [30, 1, 2, 3, 4, 5]


def test_lists_and_farthest_equal_a_full_sort() -> None:
    x = clustered(4, 150)
    lists = ranking_lists(space(x, "l2"), 21, block=32)
    d = dense(x, "l2")
    np.fill_diagonal(d, -1)
    assert lists.names.tolist() == np.argsort(d, axis=1, kind="stable")[:, :21].tolist()
    np.testing.assert_allclose(lists.scale, d.max(1), rtol=1e-6)


def test_a_cloud_far_from_the_origin_keeps_its_neighbours() -> None:
    x = clustered(5, 120)
    far = x.astype(np.float64) + 4096.0  # float32 products of these lose every distance below about 30
    near = (far.astype(np.float32) - np.float32(4096)).astype(np.float32)
    assert (
        ranking_lists(space(far.astype(np.float32), "l2"), 10).names == ranking_lists(space(near, "l2"), 10).names
    ).all()


def test_golden_joint_form_agrees_to_nine_digits(shared) -> None:
    golden = json.loads((shared / "golden/kreciprocal_small.json").read_text())
    x = np.array(golden["features"], dtype=np.float32)
    for case in golden["cases"]:
        chosen = KReciprocal(k1=case["k1"], k2=case["k2"], lambda_value=case["lambda_value"], strict_overlap=True)
        found = rerank_gallery(x[:3], x[3:], 9, metric="l2", settings=chosen)
        # the features are rounded to float32 here, which alone moves a distance by 1e-7
        np.testing.assert_allclose(matrix_of(found, 3, 9), case["float64"], rtol=0, atol=5e-7)
        np.testing.assert_allclose(matrix_of(found, 3, 9), case["reference_f32"], rtol=0, atol=2e-6)


def test_golden_joint_form_in_float64_agrees_to_nine_digits(shared) -> None:
    golden = json.loads((shared / "golden/kreciprocal_small.json").read_text())
    for case in golden["cases"]:
        chosen = KReciprocal(k1=case["k1"], k2=case["k2"], lambda_value=case["lambda_value"], strict_overlap=True)
        final = joint_distances(dense(np.array(golden["features"]), "l2"), 3, chosen)
        np.testing.assert_allclose(final, case["float64"], rtol=0, atol=1e-9)


def test_the_matrix_on_disk_holds_the_same_distances(tmp_path) -> None:
    x = clustered(6, 90)
    written = gallery_distances(x[:10], x[10:], tmp_path / "final.npy", metric="l2")
    assert written.dtype == np.float32
    assert not written.flags.writeable
    found = rerank_gallery(x[:10], x[10:], 80, metric="l2")
    np.testing.assert_allclose(np.load(tmp_path / "final.npy"), matrix_of(found, 10, 80), atol=1e-6)


def test_within_one_set_no_row_finds_itself_even_among_its_duplicates() -> None:
    x = clustered(7, 80)
    x[40:60] = x[3]
    found = rerank_within(x, 79)
    assert all(row not in ids and len(ids) == 79 for row, (ids, _) in enumerate(found))


def test_an_excluded_row_leaves_its_place_to_the_next() -> None:
    x = clustered(8, 60)
    plain = rerank_gallery(x[:5], x[5:], 20)
    skip = [int(ids[2]) for ids, _ in plain]
    skip[4] = -1
    found = rerank_gallery(x[:5], x[5:], 19, exclude=skip)
    for row in range(4):
        assert found[row][0].tolist() == [i for i in plain[row][0].tolist() if i != skip[row]]
    assert found[4][0].tolist() == plain[4][0][:19].tolist()


def test_lambda_one_is_the_plain_ranking() -> None:
    x = clustered(9, 70)
    found = rerank_gallery(x[:6], x[6:], 64, metric="l2", settings=KReciprocal(lambda_value=1.0))
    assert [ids.tolist() for ids, _ in found] == np.argsort(dense(x, "l2")[:6, 6:], axis=1, kind="stable").tolist()


def test_all_equal_vectors_are_all_at_distance_zero_in_row_order() -> None:
    found = rerank_gallery(np.ones((3, 4)), np.ones((50, 4)), 7)
    assert [ids.tolist() for ids, _ in found] == [list(range(7))] * 3
    assert (found.scores == 0).all()


def test_what_cannot_be_ranked_is_refused_by_name() -> None:
    x = clustered(10, 20)
    with pytest.raises(CutOffError):
        rerank_gallery(x[:2], x[2:], 0)
    with pytest.raises(InputError, match="empty"):
        rerank_gallery(x[:2], x[:0], 3)
    with pytest.raises(ShapeError, match="queries"):
        rerank_gallery(x[:2, :3], x[2:], 3)
    with pytest.raises(ShapeError, match="exclude"):
        rerank_gallery(x[:2], x[2:], 3, exclude=[1])
    with pytest.raises(InputError, match="0 to 17"):
        rerank_gallery(x[:2], x[2:], 3, exclude=[1, 18])
    with pytest.raises(UnknownNameError):
        rerank_gallery(x[:2], x[2:], 3, metric="cosin")
    with pytest.raises(NonFiniteError, match="length zero"):
        rerank_within(np.zeros((3, 4)), 1)
