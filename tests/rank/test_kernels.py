"""Every compiled loop beside a plain numpy or Python twin, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from lookalike.rank import gallery_kernels, kernels


def sparse_rows(seed, n=30, filled=6):
    """(n, n) rows of a few random columns as a full matrix, and as offsets, ascending columns and weights."""
    rng = np.random.default_rng(seed)
    full = np.zeros((n, n))
    for row in range(n):
        columns = rng.choice(n, size=rng.integers(1, filled + 1), replace=False)
        full[row, columns] = rng.random(len(columns)) + 0.1
    rows, columns = np.nonzero(full)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)
    return full, (offsets, columns.astype(np.int32), full[rows, columns])


def test_rows_are_averaged_over_their_lists() -> None:
    full, features = sparse_rows(0)
    lists = np.random.default_rng(1).integers(0, 30, size=(30, 4)).astype(np.int32)
    offsets, columns, weights = kernels.average_rows(lists, *features)
    out = np.zeros_like(full)
    out[np.repeat(np.arange(30), np.diff(offsets)), columns] = weights
    np.testing.assert_allclose(out, full[lists].mean(axis=1), atol=1e-15)
    assert all((np.diff(columns[offsets[row] : offsets[row + 1]]) > 0).all() for row in range(30))


def test_rows_are_scaled_to_a_sum_of_one() -> None:
    _, (offsets, _, weights) = sparse_rows(2)
    kernels.normalise_rows(offsets, weights)
    np.testing.assert_allclose(np.add.reduceat(weights, offsets[:-1]), 1)


def test_minima_on_the_fly_equal_minima_of_averaged_rows() -> None:
    full, features = sparse_rows(3, n=40)
    lists = np.random.default_rng(4).integers(0, 40, size=(40, 3)).astype(np.int32)
    averaged = full[lists].mean(axis=1)
    expected = np.minimum(averaged[:5, None], averaged[None, 5:]).sum(-1)
    np.testing.assert_allclose(kernels.shared_with(lists, *features, 5), expected, atol=1e-14)


def test_an_inverted_index_gives_the_same_minima() -> None:
    full, features = sparse_rows(5)
    index = gallery_kernels.invert(*features, 10, 30)
    expected = np.minimum(full[:10, None], full[None, 10:]).sum(-1)
    wanted = np.random.default_rng(6).integers(0, 20, size=(10, 7)).astype(np.int32)
    found = gallery_kernels.shared_at(features, 0, index, wanted, 20)
    np.testing.assert_allclose(found, np.take_along_axis(expected, wanted, 1), atol=1e-14)
    offsets, columns, weights = features
    one = gallery_kernels.shared_from(columns[: offsets[1]], weights[: offsets[1]], index, 20)
    np.testing.assert_allclose(one, expected[0], atol=1e-14)


def test_products_through_an_inverted_index_equal_a_matrix_product() -> None:
    full, (offsets, columns, weights) = sparse_rows(7)
    place, rows, values = gallery_kernels.invert(offsets, columns, weights, 0, 30)
    tile = np.zeros((30, 30), np.float32)
    gallery_kernels.dot_tile(
        offsets.astype(np.int32),
        columns,
        weights.astype(np.float32),
        place.astype(np.int32),
        rows,
        values.astype(np.float32),
        tile,
    )
    np.testing.assert_allclose(tile, full @ full.T, atol=1e-5)


@pytest.mark.parametrize("count", [1, 3, 12])
def test_the_smallest_of_a_row_come_ascending_with_ties_by_column(count) -> None:
    tile = np.random.default_rng(8).integers(0, 4, size=(9, 12)).astype(np.float32)
    kept, names = gallery_kernels.smallest_in_rows(tile, count)
    order = np.argsort(tile, axis=1, kind="stable")[:, :count]
    assert names.tolist() == order.tolist()
    assert kept.tolist() == np.take_along_axis(tile, order, 1).tolist()


@pytest.mark.parametrize("largest", [-1.0, 9.0])
def test_a_pair_has_the_same_distance_in_any_company(largest) -> None:
    x = np.random.default_rng(9).random((20, 33)).astype(np.float32)
    rows, columns = np.repeat(np.arange(20), 20), np.tile(np.arange(20, dtype=np.int32), 20)
    together = gallery_kernels.pair_distances(x, rows, columns, largest).reshape(20, 20)
    d = x.astype(float)
    expected = ((d[:, None] - d) ** 2).sum(-1) if largest < 0 else np.maximum(2 * (largest - d @ d.T), 0)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(together, expected, atol=1e-12)
    assert (together == together.T).all()
    for a, b in [(0, 19), (7, 3)]:
        alone = gallery_kernels.pair_distances(x, np.array([a]), np.array([b], np.int32), largest)
        assert alone[0] == together[a, b]


def test_naming_a_re_ranker_loads_no_compiler_and_no_index() -> None:
    code = (
        "import sys; from lookalike.rank import expansion, fusion, geometric, graph_file, rerankers;"
        "print([m for m in ('torch', 'faiss', 'onnxruntime', 'numba', 'scipy', 'cv2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_empty_cache_is_announced_in_one_line_and_a_full_one_is_not(tmp_path) -> None:
    code = (
        "import logging, sys, numpy as np; logging.basicConfig(level='INFO', stream=sys.stdout, format='%(message)s');"
        "from lookalike.rank.kreciprocal import pool_distances; pool_distances(np.zeros((3, 3)))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert [len(lines) for lines in said] == [1, 0]
    assert "compiling" in said[0][0]


@pytest.mark.parametrize("n", [60, 1_100])  # with the table of places, and beyond it
def test_expanded_sets_equal_the_definition_whatever_way_lists_are_looked_up(n) -> None:
    rng = np.random.default_rng(n)
    spots = np.sort(rng.random(n))
    order = np.argsort(np.abs(spots[:, None] - spots), axis=1, kind="stable")[:, :9].astype(np.int32)
    lists = [row.tolist() for row in order]

    def reciprocal(p, count):
        return {g for g in lists[p][:count] if p in lists[g][:count]}

    offsets, columns = kernels.expanded_sets(order, 5, False)
    for p in range(n):
        own = reciprocal(p, 9)
        halves = [reciprocal(g, 5) for g in own]
        grown = own.union(*(half for half in halves if 3 * len(own & half) >= 2 * len(half)))
        assert columns[offsets[p] : offsets[p + 1]].tolist() == sorted(grown)
