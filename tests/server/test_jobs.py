"""Long work: the command line's numbers, events as they come, one of a kind, and a clean end."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lookalike.server.jobs import Jobs
from lookalike.server.problems import RefusedError
from lookalike.server.settings import Settings

from .shops import Client, make_catalogue, write_picture

VARYING = {"timings", "run", "versions", "command", "trec"}
"""What depends on the clock, and on whether and by whom a run is saved."""


def by_command(*words: object) -> dict:
    command = [sys.executable, "-m", "lookalike", *map(str, words), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def own(tmp_path, serve) -> tuple[Path, Client]:
    """A catalogue that may be changed, and a server over it."""
    shop = make_catalogue(tmp_path)
    return shop, serve(Settings(catalogue=shop, port=0, threads=1))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"relevance": "label"}, ()),
        (
            {"relevance": "identity", "ks": [1, 2], "holdout": 0.5, "seed": 3},
            ("--relevance", "identity", "--ks", "1,2", "--holdout", 0.5, "--seed", 3),
        ),
        (
            {"relevance": "identity", "query_where": "price < 9", "gallery_where": "price > 3", "self_match": True},
            ("--relevance", "identity", "--query-where", "price < 9", "--gallery-where", "price > 3", "--self-match"),
        ),
        (
            {"relevance": "label", "rerank": "k-reciprocal:k1=4,k2=2", "pool": 9, "expand": {"n": 2, "alpha": 1}},
            ("--rerank", "k-reciprocal:k1=4,k2=2", "--pool", 9, "--expand", "alpha:n=2,alpha=1"),
        ),
    ],
)
def test_an_evaluation_is_that_of_the_command_line(client, shop, body, words):
    job = client.finished("evaluate", body)
    assert job["state"] == "done", job["problem"]
    mine, theirs = job["result"]["report"], by_command("eval", shop, *words)
    drop = lambda report: {k: drop(v) if k == "plain" and v else v for k, v in report.items() if k not in VARYING}  # noqa: E731
    assert drop(mine) == drop(theirs)


def test_the_command_an_evaluation_names_gives_its_numbers(own):
    import shlex

    client = own[1]
    job = client.finished("evaluate", {"relevance": "identity", "holdout": 0.5, "ks": [1, 3]})
    words = shlex.split(job["command"])
    where = words.index("--save")
    assert by_command(*words[1:where])["metrics"] == job["result"]["report"]["metrics"]
    assert Path(words[where + 1]).is_dir()


def test_a_misspelt_column_is_an_answer_and_not_a_failed_job(client):
    answer = client.post("evaluate", {"relevance": "lable"})
    assert (answer.status, "'label'" in answer.json["hint"]) == (422, True)
    assert client.post("evaluate", {"rerank": "nothing"}).status == 422
    assert client.post("evaluate", {"holdout": 0.2, "query_where": "price < 3"}).status == 422
    assert client.post("evaluate", {"save": "../../etc"}).status == 422
    assert client.post("tune", {"recall": 2}).status == 422
    assert client.post("labs/index", {"kind": "ivff"}).status == 422


def test_a_job_that_fails_says_why_as_a_problem(client):
    job = client.finished("evaluate", {"relevance": "label", "query_where": "price < 0"})
    assert (job["state"], job["problem"]["status"]) == ("failed", 422)
    assert job["problem"]["detail"]


def read_events(client: Client, url: str, last: str | None = None) -> list[tuple[int, str, dict]]:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    connection.request("GET", url, headers={"Last-Event-ID": last} if last else {})
    got = connection.getresponse()
    assert got.getheader("Content-Type").startswith("text/event-stream")
    blocks = got.read().decode().split("\n\n")
    connection.close()
    events = []
    for block in filter(None, blocks):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return events


def test_events_are_numbered_end_with_the_result_and_go_on_where_a_watcher_left(client):
    started = client.post("evaluate", {"relevance": "label"}).json
    events = read_events(client, started["events"])
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert [event for _, event, _ in events][-1] == "done"
    assert events[-1][2]["data"]["report"]["num_queries"] == 18
    assert read_events(client, started["events"], last="2")[0][0] == 3
    assert client.get("jobs").json["jobs"][0]["id"] == started["job"]


def test_a_sync_stores_what_is_new_and_names_what_failed(own):
    shop, client = own
    write_picture(shop.parent / "photos" / "red" / "new.png", 2, seed=77)
    (shop.parent / "photos" / "blue" / "0.png").unlink()
    job = client.finished("sync", {})
    assert (job["result"]["added"], job["result"]["removed"], job["result"]["unchanged"]) == (1, 1, 17)
    assert [row["reason"] for row in job["result"]["failed"]] == ["unknown-format"]
    page = client.get("items?where=path%20=%20'red/new.png'").json
    assert page["items"][0]["columns"]["label"] == "red"


def test_a_sync_sets_the_columns_of_the_table_the_catalogue_was_made_with(own):
    shop, client = own
    write_picture(shop.parent / "photos" / "red" / "new.png", 2, seed=77)
    table = shop.parent / "labels.csv"
    table.write_text("path,label,price\nred/new.png,vermilion,99.5\nblue/0.png,navy,1.5\n")
    (shop / "lookalike.toml").write_text(f'[sync]\nlabels = "{table}"\n')
    client.finished("sync", {})
    found = client.get("items?where=price%20%3E%2090").json["items"]
    assert [(item["path"], item["columns"]["label"]) for item in found] == [("red/new.png", "vermilion")]
    assert client.get("items/1").json["columns"]["label"] == "navy"


def test_small_pictures_of_bytes_that_are_gone_are_deleted_by_a_sync(own):
    shop, client = own
    client.get("items/1/thumb?size=64")
    client.get("items/2/thumb?size=64")
    (shop.parent / "photos" / client.get("items/1").json["path"]).unlink()
    client.finished("sync", {})
    assert len(list(shop.glob("thumbnails/*/*.webp"))) == 1


def test_tune_measures_flat_as_exact_and_says_what_it_chose(client):
    job = client.finished("tune", {"kinds": ["flat", "ivf"]})
    assert job["state"] == "failed"  # 18 vectors are too few, and the reason says so
    assert "20" in job["problem"]["detail"]


def test_one_job_of_a_kind_at_a_time_and_a_cancelled_one_makes_room():
    jobs, go = Jobs(), threading.Event()

    def work(job):
        job.progress(1, 2, "half")
        while not go.wait(0.01):
            job.check()
        return {}

    first = jobs.start("tune", {}, "", work)
    with pytest.raises(RefusedError) as caught:
        jobs.start("tune", {}, "", work)
    assert (caught.value.status, caught.value.job) == (409, first.id)
    second = jobs.start("sync", {}, "", work)
    assert jobs.cancel(first.id).state in ("cancelling", "cancelled")
    assert first.thread is not None
    first.thread.join(10)
    assert first.show().state == "cancelled"
    third = jobs.start("tune", {}, "", work)
    go.set()
    for job in (second, third):
        assert job.thread is not None
        job.thread.join(10)
        assert job.show().state == "done"
    jobs.close(1)
    with pytest.raises(RefusedError, match="stopping"):
        jobs.start("tune", {}, "", work)


def test_a_fault_in_a_job_is_told_without_a_stack_trace():
    jobs = Jobs()
    job = jobs.start("map", {}, "", lambda work: {}["nothing"])
    assert job.thread is not None
    job.thread.join(10)
    shown = job.show()
    assert (shown.state, shown.problem.status) == ("failed", 500)
    assert "Traceback" not in shown.problem.detail


def test_a_job_that_is_not_there_is_404(client):
    assert client.get("jobs/0000").status == 404
    assert client.ask("DELETE", "/api/v1/jobs/0000").status == 404
    assert client.get("jobs/0000/events").status == 404


def test_a_sync_that_is_cancelled_keeps_what_it_committed(tmp_path, serve):
    shop = make_catalogue(tmp_path)
    for number in range(60):
        write_picture(shop.parent / "photos" / "more" / f"{number}.png", number % 3, seed=500 + number)
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    started = client.post("sync", {}).json
    time.sleep(0.2)
    client.ask("DELETE", started["url"])
    events = read_events(client, started["events"])
    assert events[-1][1] in ("cancelled", "done")
    items = client.get("items").json["total"]
    assert items >= 18
    job = client.finished("sync", {})
    assert client.get("items").json["total"] == 78
    assert job["result"]["added"] == 78 - items


def test_a_map_job_makes_the_map_the_page_draws(client):
    job = client.finished("map", {"method": "pca"})
    assert job["result"]["n"] == 18
    assert job["result"]["trust"] == client.get("map/info").json["trust"]
