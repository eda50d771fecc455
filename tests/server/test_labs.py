"""The five labs: hand-checked numbers, and those of the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.train.triplets import batch


def test_a_triplet_by_hand(client):
    answer = client.post("labs/triplet", {"cos_positive": 0.85, "cos_negative": 0.78, "margin": 0.2}).json
    assert answer["plain"] == {"loss": pytest.approx(0.0844, abs=5e-5), "kind": "semi-hard"}
    assert answer["squared"] == {"loss": pytest.approx(0.06), "kind": "semi-hard"}
    assert answer["positive"]["squared"] == pytest.approx(0.3)
    assert client.post("labs/triplet", {"cos_positive": 24 / 25, "cos_negative": 0}).json["positive"][
        "squared"
    ] == pytest.approx(0.08)


def test_a_triplet_of_items_has_three_sides_and_is_warned_of_where_the_labels_object(client):
    answer = client.post("labs/triplet", {"anchor": 1, "positive": 2, "negative": 13}).json
    assert answer["labels"] == ["blue", "blue", "red"]
    assert answer["warning"] is None
    assert answer["third"]["plain"] <= answer["positive"]["plain"] + answer["negative"]["plain"]
    wrong = client.post("labs/triplet", {"anchor": 1, "positive": 13, "negative": 2}).json
    assert "no positive" in wrong["warning"]
    assert wrong["plain"]["kind"] == "hard"
    assert "three different" in client.post("labs/triplet", {"anchor": 1, "positive": 1, "negative": 2}).json["warning"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"anchor": 1},
        {"cos_positive": 2, "cos_negative": 0},
        {"cos_positive": 1, "cos_negative": 0, "margin": 0},
        {"anchor": 1, "positive": 2, "negative": 3, "cos_positive": 1, "cos_negative": 1},
    ],
)
def test_half_a_triplet_is_refused(client, body):
    assert client.post("labs/triplet", body).status == 422


def test_a_batch_is_that_of_the_training_code(client, shop):
    answer = client.post("labs/triplets", {"ids": list(range(1, 19)), "margin": 0.3, "squared": True}).json
    with Catalogue.open(shop, readonly=True) as store:
        codes = np.repeat(np.arange(3), 6)
        expected = batch(store.vectors(store.ids()), codes, margin=0.3, squared=True)
    assert answer["triplets"] == 3 * 6 * 5 * 12 == expected.triplets
    assert (answer["easy"], answer["semi_hard"], answer["hard"]) == (expected.easy, expected.semi_hard, expected.hard)
    assert answer["loss_mean"] == expected.loss_mean
    drawn = client.post("labs/triplets", {"classes": 2, "per_class": 4, "seed": 1}).json
    assert (drawn["items"], drawn["classes"], drawn["triplets"]) == (8, 2, 2 * 4 * 3 * 4)
    assert drawn == client.post("labs/triplets", {"classes": 2, "per_class": 4, "seed": 1}).json


def test_the_hardest_rows_hold_the_item_with_the_wrong_label(tmp_path, serve):
    from lookalike.server.settings import Settings

    from .shops import make_catalogue

    shop = make_catalogue(tmp_path)
    with Catalogue.open(shop) as store:
        store.set_columns({"label": ["red"]}, ids=[1])
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    rows = client.post("labs/triplets", {"ids": list(range(1, 19)), "top": 3}).json["hardest"]
    assert rows[0]["anchor"]["id"] == 1 or rows[0]["positive"]["id"] == 1
    assert rows[0]["worst"] >= rows[1]["worst"] >= rows[2]["worst"]


def test_recall_of_the_strip_is_that_of_the_command_line(client, shop):
    answer = client.post("labs/recall", {"relevance": "identity", "depth": 6}).json
    command = [
        sys.executable,
        "-m",
        "lookalike",
        "eval",
        str(shop),
        "--relevance",
        "identity",
        "--ks",
        "1,2,3,4,5,6",
        "--format",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert {f"recall@{row['k']}": row["value"] for row in answer["recall"]} == {
        k: report["metrics"][k] for k in report["metrics"] if k.startswith("recall@")
    }
    assert [[row["low"], row["high"]] for row in answer["recall"]] == [
        report["intervals"][f"recall@{k}"] for k in range(1, 7)
    ]
    assert answer["measurement"]


def test_the_strip_shows_the_rank_of_the_first_relevant_answer(client):
    answer = client.post("labs/recall", {"relevance": "identity", "depth": 17, "limit": 200}).json
    assert len(answer["rows"]) == 18
    for row in answer["rows"]:
        assert row["first"] == row["relevant"].index("1") + 1
        assert row["relevant"].count("1") == 1  # pairs: the query itself is not in its own list
        assert row["id"] not in row["ids"]
    at_one = sum(row["first"] == 1 for row in answer["rows"]) / 18
    assert answer["recall"][0]["value"] == pytest.approx(at_one)
    failed = client.post("labs/recall", {"relevance": "identity", "depth": 17, "only": "failed", "at": 1}).json
    assert failed["matching"] == 18 - round(18 * at_one)


def test_self_match_jumps_to_one_and_is_marked_as_no_measurement(client):
    answer = client.post("labs/recall", {"relevance": "identity", "self_match": True, "limit": 1}).json
    assert answer["recall"][0]["value"] == 1.0
    assert not answer["measurement"]
    assert answer["diagnosis"][0].startswith("Not a measurement")
    assert answer["rows"][0]["ids"][0] == answer["rows"][0]["id"]


def test_a_label_nobody_else_has_is_left_out_or_counted_as_a_miss(tmp_path, serve):
    from lookalike.server.settings import Settings

    from .shops import make_catalogue

    shop = make_catalogue(tmp_path)
    with Catalogue.open(shop) as store:
        store.set_columns({"label": ["only", None]}, ids=[1, 2])
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    honest = client.post("labs/recall", {"depth": 3, "limit": 2}).json
    assert honest["excluded"] == {"label_missing": 1, "self_only": 1}
    assert (honest["num_queries"], honest["num_evaluated"]) == (18, 16)
    assert [row["status"] for row in honest["rows"]] == ["self_only", "label_missing"]
    counted = client.post("labs/recall", {"depth": 3, "absent": "count-as-miss"}).json
    assert counted["num_evaluated"] == 18
    assert counted["recall"][0]["value"] == pytest.approx(honest["recall"][0]["value"] * 16 / 18)
    assert not counted["measurement"]


def test_bytes_of_an_index_by_hand(client):
    body = {"n": 1_000_000, "dim": 512, "kind": "ivf-pq", "settings": {"m": 64, "nlist": 4000}}
    tables = client.post("labs/memory", body).json["tables"]
    assert tables[0]["components"] == {
        "codes": 64_000_000,
        "ids": 8_000_000,
        "centroids": 8_192_000,
        "codebooks": 524_288,
    }
    assert (tables[0]["total"], tables[0]["exact"]) == (80_716_288, True)
    assert [table["n"] for table in tables] == [10**6, 10**7, 10**8]
    flat = client.post("labs/memory", {"factors": [1]}).json["tables"][0]
    assert (flat["n"], flat["dim"], flat["total"]) == (18, 1280, 18 * 1280 * 4)


def test_a_graph_of_any_size_is_told_exactly_or_as_an_estimate(client):
    tables = client.post("labs/memory", {"n": 10**6, "dim": 512, "kind": "hnsw", "factors": [1, 1000]}).json["tables"]
    assert [table["exact"] for table in tables] == [True, False]
    assert tables[1]["total"] == pytest.approx(1000 * tables[0]["total"], rel=1e-4)


def test_an_impossible_index_is_refused_with_both_numbers(client):
    answer = client.post("labs/memory", {"n": 10**6, "dim": 512, "kind": "ivf-pq", "settings": {"m": 100}})
    assert (answer.status, "100" in answer.json["detail"], "512" in answer.json["detail"]) == (422, True, True)
    assert client.post("labs/memory", {"kind": "ivf", "settings": {"nprob": 3}}).status == 422
    assert client.post("labs/memory", {"kind": "ivf", "settings": {"nprobe": "three"}}).status == 422
    assert client.post("labs/memory", {"kind": "hnsw", "settings": {"m": True}, "factors": [1]}).status == 422


def test_a_query_board_fails_cell_by_cell(client):
    cells = client.post("labs/board", {"prompts": ["red"], "items": [1], "k": 3, "bins": 7}).json["cells"]
    assert [(cell["query"], cell["status"]) for cell in cells] == [("red", "failed"), ("item 1", "ok")]
    refused = cells[0]["problem"]
    assert (refused["status"], "open_clip:" in refused["hint"]) == (422, True)
    assert "builtin:effnet-lite0" in refused["detail"]
    scores = cells[1]["scores"]
    assert (sum(scores["counts"]), len(scores["edges"])) == (17, 8)
    found = client.post("search", {"terms": [{"item": 1}], "k": 3}).json["candidates"]
    assert [row["score"] for row in cells[1]["candidates"]] == [row["score"] for row in found]
