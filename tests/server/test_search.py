"""Search over HTTP gives the candidates of the command line, number for number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.server.settings import Settings

SHARED = ("rank", "id", "path", "score", "metric", "higher_is_better", "lift", "first_rank", "columns")


def by_command(shop: Path, *words: object) -> list[dict]:
    command = [sys.executable, "-m", "lookalike", "search", str(shop), *map(str, words), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [{key: row[key] for key in SHARED} for row in json.loads(done.stdout)]


def over_http(answer) -> list[dict]:
    assert answer.status == 200, answer.content
    return [{key: row[key] for key in SHARED} for row in answer.json["candidates"]]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"terms": [{"item": 3}], "k": 4}, ("--item", 3, "-k", 4)),
        (
            {"terms": [{"item": 3}], "k": 50, "where": "label != 'red'"},
            ("--item", 3, "-k", 50, "--where", "label != 'red'"),
        ),
        (
            {"terms": [{"item": 9}], "k": 5, "rerank": "k-reciprocal:k1=4,k2=2", "pool": 12},
            ("--item", 9, "-k", 5, "--rerank", "k-reciprocal:k1=4,k2=2", "--pool", 12),
        ),
    ],
)
def test_an_item_finds_what_the_command_line_finds(client, shop, request_, words):
    answer = client.post("search", request_)
    assert over_http(answer) == by_command(shop, *words)


def test_the_command_a_search_names_gives_its_candidates(client, shop):
    answer = client.post("search", {"terms": [{"item": 5}], "k": 3, "where": "price < 12"})
    import shlex

    words = shlex.split(answer.json["command"])
    assert words[:3] == ["lookalike", "search", str(shop)]
    assert over_http(answer) == by_command(shop, *words[3:])


def test_an_uploaded_picture_finds_what_its_path_finds(client, shop):
    path = shop.parent / "photos" / "green" / "2.png"
    answer = client.upload("search", [path.read_bytes()], '{"k": 6}')
    assert over_http(answer) == by_command(shop, path, "-k", 6)
    assert answer.json["candidates"][0]["path"] == "green/2.png"


def test_a_weighted_sum_of_pictures_and_items_is_that_of_the_library(client, shop):
    from lookalike.rank.query import Term, query_vector
    from lookalike.rank.search import search

    path = shop.parent / "photos" / "red" / "0.png"
    terms = '[{"item": 2}, {"picture": 0, "weight": -0.5}]'
    answer = client.upload("search", [path.read_bytes()], f'{{"terms": {terms}, "k": 5}}')
    with Catalogue.open(shop, readonly=True, threads=1) as store:
        parts = [Term(kind="item", value=2), Term(kind="picture", value=str(path), weight=-0.5)]
        [found] = search(store, query_vector(parts, store, lambda: store.encoder)[None], k=5, exclude=[2])
    assert [row["id"] for row in answer.json["candidates"]] == found.ids.tolist()
    assert [row["score"] for row in answer.json["candidates"]] == found.scores.tolist()


def test_expansion_changes_the_query_and_not_the_scores_meaning(client):
    plain = client.post("search", {"terms": [{"item": 4}], "k": 17}).json
    wide = client.post("search", {"terms": [{"item": 4}], "k": 17, "expand": {"n": 3, "alpha": 0}}).json
    assert {row["id"] for row in plain["candidates"]} == {row["id"] for row in wide["candidates"]}
    assert wide["candidates"][0]["score"] != plain["candidates"][0]["score"]
    assert wide["command"] is None


def test_an_item_is_not_its_own_answer_and_fewer_than_k_comes_with_the_reason(client):
    answer = client.post("search", {"terms": [{"item": 1}], "k": 100, "where": "label = 'blue'"}).json
    assert 1 not in [row["id"] for row in answer["candidates"]]
    assert len(answer["candidates"]) == 5
    assert "6 items pass the filter" in answer["notes"][0]


def test_a_text_is_refused_with_the_encoders_that_could_read_it(client):
    answer = client.post("search", {"terms": [{"text": "red trainers on concrete"}]})
    assert answer.status == 422
    assert "builtin:effnet-lite0" in answer.json["detail"]
    assert "open_clip:" in answer.json["hint"]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"terms": []}, "An empty query finds nothing."),
        ({"terms": [{"item": 999}]}, "no item 999"),
        ({"terms": [{"vector": [1, 2]}]}, "1280"),
        ({"terms": [{"vector": [0] * 1280}]}, "length zero"),
        ({"terms": [{"item": 1, "weight": 0}]}, "says nothing"),
        ({"terms": [{"item": 1}, {"item": 1, "weight": -1}]}, "length zero"),
        ({"terms": [{"item": 1}], "rerank": "k-reciprocl"}, "k-reciprocl"),
        ({"terms": [{"item": 1}], "encoder": "builtin:other"}, "builtin:other"),
        ({"terms": [{"item": 1}], "where": "colour = 'red'"}, "colour"),
        ({"terms": [{"picture": 0}]}, "0 came with the request"),
        ({"terms": [{"item": 1}], "k": 10_000}, "k"),
        ({"terms": [{"item": 1}], "kk": 1}, "kk"),
        ({"terms": [{"item": 1.5}]}, "item"),
        ({"terms": "red"}, "terms"),
    ],
)
def test_bad_input_is_a_4xx_that_says_why(client, body, said):
    answer = client.post("search", body)
    assert answer.status in (404, 422)
    assert said in answer.json["detail"] + answer.json["hint"]


@pytest.mark.parametrize(
    "body", [b"{", b"", b"[]", b'{"terms": [{"item": NaN}]}', b"\xff\xfe", b'{"terms": ' + b"[" * 5_000]
)
def test_what_is_no_request_is_a_4xx(client, body):
    answer = client.post("search", body, headers={"Content-Type": "application/json"})
    assert answer.status == 422
    assert answer.json["detail"]


def test_a_picture_that_cannot_be_read_is_named_with_its_reason(client):
    answer = client.upload("search", [b"GIF89a"])
    assert (answer.status, answer.json["title"]) == (422, "ImageError")
    assert client.upload("search", [b"x"] * 9).status == 400
    assert client.post("search", b"--", headers={"Content-Type": "multipart/form-data"}).status == 400
    assert client.post("search", b"red", headers={"Content-Type": "text/plain"}).status == 415


def test_a_search_sees_what_a_sync_of_another_process_has_stored(tmp_path, serve):
    from .shops import make_catalogue, write_picture

    shop = make_catalogue(tmp_path)
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    before = client.post("search", {"terms": [{"item": 1}], "k": 100}).json
    write_picture(shop.parent / "photos" / "red" / "new.png", 2, seed=99)
    subprocess.run([sys.executable, "-m", "lookalike", "sync", str(shop), "-q"], check=False, capture_output=True)
    after = client.post("search", {"terms": [{"item": 1}], "k": 100}).json
    assert len(after["candidates"]) == len(before["candidates"]) + 1
    assert after["revision"] > before["revision"]
    assert client.get("ids").headers["x-count"] == "19"
