"""Saved runs: listed, read query by query, compared."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.server.settings import Settings

from .shops import make_catalogue


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return make_catalogue(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def client(shop):
    from .shops import running

    with running(Settings(catalogue=shop, port=0, threads=1)) as client:
        yield client


@pytest.fixture(scope="module")
def runs(client):
    bodies = (
        {"relevance": "identity", "save": "plain"},
        {"relevance": "identity", "rerank": "k-reciprocal:k1=4,k2=2", "save": "better"},
        {"relevance": "label", "save": "other"},
    )
    return [client.finished("evaluate", body)["result"]["run_id"] for body in bodies]


def test_runs_are_listed_best_first_within_each_protocol(client, runs):
    listed = client.get("runs").json["runs"]
    assert {row["id"] for row in listed} == set(runs)
    first, second, third = listed
    assert first["protocol"] == second["protocol"] != third["protocol"]
    assert first["metrics"]["recall@1"] >= second["metrics"]["recall@1"]


def test_a_name_that_is_taken_gets_a_number(client, runs):
    client.finished("evaluate", {"relevance": "label", "save": "plain"})
    assert "plain-2" in {row["name"] for row in client.get("runs").json["runs"]}


def test_a_run_is_read_back_whole(client, runs):
    run = client.get(f"runs/{runs[0]}").json
    assert run["report"]["num_queries"] == 18
    assert run["text"].startswith("[evaluation]\nnum queries: 18\nnum gallery: 18\nembedding_dim: 1280\n[recall]\n")


def test_failed_queries_are_those_below_one_worst_first_with_their_pictures(client, runs):
    everything = client.get(f"runs/{runs[0]}/queries?metric=mrr&limit=500").json
    failed = client.get(f"runs/{runs[0]}/queries?only=failed&metric=mrr&limit=500").json
    assert everything["total"] == 18
    values = [row["values"]["mrr"] for row in failed["queries"]]
    assert values == sorted(value["values"]["mrr"] for value in everything["queries"] if value["values"]["mrr"] < 1)
    assert all(row["thumb"] and row["id"] for row in failed["queries"])
    page = client.get(f"runs/{runs[0]}/queries?limit=10").json
    rest = client.get(f"runs/{runs[0]}/queries?limit=10&cursor={page['next']}").json
    assert [row["name"] for row in page["queries"] + rest["queries"]] == [row["name"] for row in everything["queries"]]


def test_values_colour_the_map_in_id_order(client, runs):
    values = np.frombuffer(client.get(f"runs/{runs[0]}/values?metric=recall@1").content, "<f4")
    recall = client.get(f"runs/{runs[0]}").json["report"]["metrics"]["recall@1"]
    assert (len(values), float(values.mean())) == (18, pytest.approx(recall))


def test_two_runs_of_one_protocol_are_compared_and_others_refused(client, runs):
    answer = client.post("runs/compare", {"a": runs[0], "b": runs[1]}).json
    row = answer["metrics"]["recall@1"]
    assert row["difference"] == pytest.approx(row["b"] - row["a"])
    assert row["won"] + row["lost"] + row["tied"] == 18
    refused = client.post("runs/compare", {"a": runs[0], "b": runs[2]})
    assert (refused.status, refused.json["title"]) == (409, "ProtocolError")


@pytest.mark.parametrize(
    "path", ["runs/0000", "runs/..%2f..%2fetc", "runs/0000/queries", "runs/0000/values", "trained/0000"]
)
def test_a_run_is_found_by_its_id_and_never_by_a_path(client, path):
    assert client.get(path).status == 404


def test_an_unknown_metric_is_named(client, runs):
    assert "recall@1" in client.get(f"runs/{runs[0]}/queries?metric=recal@1").json["hint"]


def test_a_training_run_is_listed_from_its_files(client, shop):
    folder = shop / "trained" / "head-1"
    folder.mkdir(parents=True)
    (folder / "epochs.jsonl").write_text('{"epoch": 1, "loss": 0.5}\n{"epoch": 2, "loss": 0.25}\n{"epo')
    (folder / "README.md").write_text("# A head\n")
    [row] = client.get("trained").json["runs"]
    assert (row["name"], row["epochs"], row["finished"]) == ("head-1", 2, False)
    detail = client.get(f"trained/{row['id']}").json
    assert [epoch["loss"] for epoch in detail["epochs"]] == [0.5, 0.25]
    assert detail["card"] == "# A head\n"
