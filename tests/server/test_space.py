"""Binary columns, masks and the map: what a page draws 100,000 points from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import InputError, NonFiniteError, UnknownNameError
from lookalike.rank.maps import lay_out, trust


def test_the_map_is_three_columns_where_its_description_says(client):
    info = client.get("map/info").json
    content = client.get("map").content
    assert info["bytes"] == len(content) == 12 * 18
    columns = {
        column["name"]: np.frombuffer(content, "<" + {"float32": "f4", "uint32": "u4"}[column["dtype"]],
                                      info["n"], column["offset"])
        for column in info["columns"]
    }  # fmt: skip
    assert columns["id"].tolist() == list(range(1, 19))
    assert np.isfinite(columns["x"]).all()
    assert 0 <= info["trust"]["low"] <= info["trust"]["value"] <= info["trust"]["high"] <= 1
    assert 0 < info["explained"][1] <= info["explained"][0] < 1


def test_an_unchanged_map_is_not_sent_again(client):
    etag = client.get("map").headers["etag"]
    assert client.get("map", headers={"If-None-Match": etag}).status == 304
    assert client.get("map", headers={"If-None-Match": '"other"'}).status == 200


def test_a_map_is_kept_with_the_catalogue_and_made_again_after_a_change(client, shop, tmp_path):
    from lookalike.catalogue import maps

    from .shops import make_catalogue

    client.get("map")
    with Catalogue.open(shop, readonly=True) as store:
        assert maps.read(store, "map-pca").ids.tolist() == list(range(1, 19))
    other = make_catalogue(tmp_path)
    with Catalogue.open(other) as store:
        maps.make(store, "map-pca", lambda ids, rows: (lay_out(rows).points, {}))
        assert maps.read(store, "map-pca") is not None
        store.delete(ids=[1])
        assert maps.read(store, "map-pca") is None


def test_umap_is_refused_until_it_was_made_and_named_where_it_is_not_installed(client):
    assert client.get("map?method=umap").status == 409
    assert client.get("map?method=tsne").status == 422


def test_codes_and_legend_give_the_column_back(client, shop):
    legend = client.get("columns/identity").json
    codes = np.frombuffer(client.get("columns/identity/values").content, "<i4")
    names = {entry["code"]: entry["value"] for entry in legend["legend"]}
    with Catalogue.open(shop, readonly=True) as store:
        assert [names[code] for code in codes.tolist()] == store.column("identity")


def test_numbers_come_as_float32_with_nan_where_missing(client):
    legend = client.get("columns/price").json
    assert (legend["encoding"], legend["low"], legend["high"]) == ("numbers", 0.5, 17.5)
    values = np.frombuffer(client.get("columns/price/values").content, "<f4")
    assert values.tolist() == [number + 0.5 for number in range(18)]
    norms = np.frombuffer(client.get("columns/@norm/values").content, "<f4")
    assert norms == pytest.approx(1, abs=1e-6)


def test_a_legend_counts_what_passes_the_filter_under_unchanged_codes(client):
    everything = {entry["value"]: entry["code"] for entry in client.get("columns/label").json["legend"]}
    some = client.get("columns/label?where=price%20%3C%207").json
    assert [(entry["value"], entry["count"]) for entry in some["legend"]] == [("blue", 6), ("green", 1)]
    assert all(everything[entry["value"]] == entry["code"] for entry in some["legend"])


def test_an_unknown_column_is_named_with_the_right_spellings(client):
    answer = client.get("columns/labell")
    assert (answer.status, "'label'" in answer.json["hint"]) == (422, True)


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ({"where": "label = 'green'"}, range(7, 13)),
        ({"ids": [1, 18, 18, 500]}, [1, 18]),
        ({"where": "label = 'green'", "ids": [8, 1]}, [8]),
        ({}, range(1, 19)),
    ],
)
def test_a_mask_has_one_bit_an_item_lowest_first(client, body, ids):
    answer = client.post("mask", body)
    bits = np.unpackbits(np.frombuffer(answer.content, np.uint8), bitorder="little")[:18]
    assert (np.flatnonzero(bits) + 1).tolist() == list(ids)
    assert answer.headers["x-selected"] == str(len(list(ids)))


def oracle_trust(points: np.ndarray, vectors: np.ndarray, k: int) -> float:
    """The definition, item by item: sorted by distance, then by number."""
    shares = []
    for row in range(len(points)):
        lists = []
        for space in (points.astype(np.float64), vectors.astype(np.float64)):
            distance = [(float(((space[row] - other) ** 2).sum()), place) for place, other in enumerate(space)]
            lists.append({place for _, place in sorted(d for d in distance if d[1] != row)[:k]})
        shares.append(len(lists[0] & lists[1]) / k)
    return float(np.mean(shares))


@settings(max_examples=25, deadline=None)
@given(st.integers(5, 40), st.integers(2, 6), st.integers(1, 4), st.integers(0, 1_000))
def test_trust_is_the_share_of_neighbours_on_the_map_that_are_true_ones(n, dim, k, seed):
    vectors = np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)
    points = lay_out(vectors, metric="l2").points
    assert trust(points, vectors, metric="l2", k=k).value == pytest.approx(oracle_trust(points, vectors, k))


def test_a_plane_is_laid_out_without_loss_and_a_map_drawn_by_chance_is_not_trusted():
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((200, 2)).astype(np.float32) @ np.linalg.qr(rng.standard_normal((8, 2)))[0].T
    plane = plane.astype(np.float32)
    made = lay_out(plane, metric="l2")
    assert trust(made.points, plane, metric="l2").value > 0.999
    assert sum(made.explained) == pytest.approx(1, abs=1e-6)
    chance = rng.standard_normal((200, 2)).astype(np.float32)
    assert trust(chance, plane, metric="l2").value == pytest.approx(10 / 199, abs=0.03)


def test_the_axes_are_those_of_a_singular_value_decomposition():
    rows = np.random.default_rng(1).standard_normal((300, 12)).astype(np.float32) * np.arange(1, 13, dtype=np.float32)
    centred = rows - rows.mean(axis=0, dtype=np.float64)
    u, s, _ = np.linalg.svd(centred.astype(np.float64), full_matrices=False)
    assert np.abs(lay_out(rows, metric="l2").points) == pytest.approx(np.abs(u[:, :2] * s[:2]), abs=2e-3)


@pytest.mark.slow
def test_umap_keeps_more_neighbours_than_a_projection_and_is_the_same_every_time():
    pytest.importorskip("umap", reason="umap-learn is not installed", exc_type=ImportError)
    rng = np.random.default_rng(3)
    rows = np.repeat(rng.standard_normal((12, 40)), 20, axis=0) + 0.3 * rng.standard_normal((240, 40))
    rows = rows.astype(np.float32)
    made, again = lay_out(rows, "umap", seed=1), lay_out(rows, "umap", seed=1)
    assert np.array_equal(made.points, again.points)
    assert made.explained is None
    assert trust(made.points, rows).value > trust(lay_out(rows).points, rows).value


def test_a_map_of_one_item_or_of_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="1 vectors make no pca map"):
        lay_out(np.ones((1, 3), np.float32))
    with pytest.raises(NonFiniteError, match="Row 1 has length zero"):
        lay_out(np.array([[1, 0], [0, 0]], np.float32))
    with pytest.raises(UnknownNameError, match="tsne"):
        lay_out(np.ones((3, 3), np.float32), "tsne")
    assert lay_out(np.ones((3, 1), np.float32), metric="l2").points.tolist() == [[0, 0]] * 3
