"""A training job: epochs as events, a verdict at the end, an encoder beside the catalogue."""

from __future__ import annotations

import pytest

from lookalike.server.settings import Settings

from .shops import make_catalogue
from .test_jobs import read_events

pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
pytest.importorskip("pytorch_metric_learning", reason="pytorch-metric-learning is not installed", exc_type=ImportError)


def test_a_head_is_trained_epoch_by_epoch_and_kept_as_an_encoder(tmp_path, serve):
    shop = make_catalogue(tmp_path)
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    body = {"column": "identity", "dim": 8, "classes": 2, "per_class": 2, "epochs": 3, "save": "small"}
    started = client.post("train", body)
    assert started.status == 202, started.content
    events = read_events(client, started.json["events"])
    assert events[-1][1] == "done", events[-1]
    epochs = [event[2]["data"] for event in events if event[1] == "epoch"]
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, len(epochs) + 1))
    result = events[-1][2]["data"]
    [row] = client.get("trained").json["runs"]
    assert (row["id"], row["name"], row["finished"], row["loss"]) == (result["run_id"], "small", True, "triplet")
    assert row["held_out"] == result["held_out"]
    detail = client.get(f"trained/{row['id']}").json
    assert detail["epochs"] == epochs
    assert detail["card"].startswith("#")


def test_an_option_the_loss_does_not_have_is_an_answer_and_not_a_failed_job(tmp_path, serve):
    client = serve(Settings(catalogue=make_catalogue(tmp_path), port=0, threads=1))
    answer = client.post("train", {"loss": "triplet", "loss_options": {"margn": 0.1}})
    assert (answer.status, "margin" in answer.json["hint"]) == (422, True)
    assert client.post("train", {"loss": "tripel"}).status == 422
