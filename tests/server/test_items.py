"""Items, their pictures, and what is told of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card
from lookalike.server.settings import Settings

from .shops import CLASSES, EACH, make_catalogue


def test_the_catalogue_says_what_can_be_asked_of_it(client):
    info = client.get("catalogue").json
    assert (info["items"], info["metric"], info["label"], info["failures"]) == (18, "cosine", "label", 1)
    [encoder] = info["encoders"]
    assert not encoder["supports_text"]
    assert encoder["name"] in encoder["text_refusal"]
    assert "open_clip:" in encoder["text_refusal"]


def test_pages_cover_every_item_once_in_id_order(client):
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"items?limit=7{cursor}").json
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert seen == list(range(1, 19))


def test_a_filter_counts_what_passes_it(client):
    page = client.get("items?where=label%20=%20'red'&limit=2").json
    assert page["total"] == EACH
    assert {item["columns"]["label"] for item in page["items"]} == {"red"}


def test_a_filter_that_is_not_understood_is_a_sentence_with_the_place(client):
    answer = client.get("items?where=label%20=%20'red'%20or%20'")
    assert answer.status == 422
    assert "character" in answer.json["detail"]
    assert client.get("items?where=1;drop%20table%20items").status == 422
    assert client.get("items").json["total"] == 18


def test_an_item_that_is_not_there_fails_alone(client):
    results = client.post("items", {"ids": [3, 999, 1]}).json["results"]
    assert [(row["id"], row["status"]) for row in results] == [(3, "ok"), (999, "failed"), (1, "ok")]
    assert results[1]["problem"]["status"] == 404
    assert client.get("items/999").status == 404
    assert client.get("items/-1").status == 422


def test_a_file_that_could_not_be_read_is_listed_with_its_reason_in_words(client):
    answer = client.get("failures").json
    assert answer["by_reason"] == {"unknown-format": 1}
    assert answer["failures"][0]["path"] == "broken.png"
    assert answer["failures"][0]["meaning"]


def test_a_thumbnail_is_small_cached_and_kept_for_ever_under_the_name_of_its_bytes(client, shop):
    address = client.get("items/1").json["thumb"]
    answer = client.get(f"{address}&size=64")
    assert Image.open(io.BytesIO(answer.content)).size == (64, 48)
    assert "immutable" in answer.headers["cache-control"]
    assert "immutable" not in client.get("items/1/thumb?v=other&size=64").headers["cache-control"]
    again = client.get(f"{address}&size=64", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.content) == (304, b"")
    assert len(list(shop.glob("thumbnails/*/*-64.webp"))) >= 1


@pytest.mark.parametrize(("asked", "made"), [(16, 64), (65, 96), (2048, 2048)])
def test_only_a_few_sizes_are_ever_made(client, shop, asked, made):
    assert client.get(f"items/2/thumb?size={asked}").status == 200
    sizes = {path.stem.rpartition("-")[2] for path in shop.glob("thumbnails/*/*.webp")}
    assert str(made) in sizes
    assert sizes <= {"64", "96", "160", "256", "384", "640", "1024", "2048"}
    assert client.get("items/2/thumb?size=4000").status == 422


def test_the_original_comes_as_an_attachment_byte_for_byte(client, shop):
    answer = client.get("items/1/image?as=original")
    assert answer.content == (shop.parent / "photos" / "blue" / "0.png").read_bytes()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "image/png"


def test_a_file_that_changed_since_the_sync_is_not_kept_under_its_old_name(tmp_path, serve, catalogue):
    client = serve(Settings(catalogue=catalogue, port=0, threads=1))
    item = client.get("items/1").json
    Image.new("RGB", (64, 64), "yellow").save(catalogue.parent / "photos" / item["path"])
    answer = client.get(f"{item['thumb']}&size=96")
    assert "immutable" not in answer.headers["cache-control"]
    assert Image.open(io.BytesIO(answer.content)).convert("RGB").getpixel((5, 5))[2] < 40
    (catalogue.parent / "photos" / item["path"]).unlink()
    gone = client.get(f"{item['thumb']}&size=160")
    assert (gone.status, gone.json["hint"]) == (404, "Run: lookalike sync")


def test_a_file_that_became_something_else_is_not_handed_out(serve, catalogue):
    client = serve(Settings(catalogue=catalogue, port=0, threads=1))
    (catalogue.parent / "photos" / client.get("items/1").json["path"]).write_text("<script>alert(1)</script>")
    assert client.get("items/1/image?as=original").status == 415
    assert client.get("items/1/image").status == 422


def test_a_path_that_leaves_the_folder_is_never_read(tmp_path, serve):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    card = Card(name="toy", weights="1", dim=2, pooling="none")
    with Catalogue.create(tmp_path / "shop.la", root=tmp_path / "photos", encoder=card) as made:
        made.upsert(["../secret.png", str(tmp_path / "secret.png")], np.eye(2))
    client = serve(Settings(catalogue=tmp_path / "shop.la", port=0, threads=1))
    for number in (1, 2):
        for path in (f"items/{number}/thumb", f"items/{number}/image?as=original"):
            assert client.get(path).status == 409


def test_a_catalogue_of_ready_vectors_says_that_it_has_no_pictures(tmp_path, serve):
    card = Card(name="toy", weights="1", dim=2, pooling="none", normalised=False)
    with Catalogue.create(tmp_path / "v.la", encoder=card, metric="ip") as made:
        made.upsert(["a", "b", "c"], np.array([[1, 0], [0, 1], [3, 3.5]]))
    client = serve(Settings(catalogue=tmp_path / "v.la", port=0, threads=1))
    assert client.get("items/1/thumb").status == 404
    assert client.get("items").json["items"][0]["thumb"].endswith("v=0")
    lists = client.get("items/1/neighbours?k=2").json
    assert [row["id"] for row in lists["by_cosine"]] == [3, 2]
    assert lists["by_dot"][0]["dot"] == 3.0
    space = client.get("labs/space").json
    assert (space["n"], space["norm_low"]) == (3, 1.0)
    assert space["differ"] == 0
    assert sum(space["norms"]["counts"]) == 3


def test_the_two_orders_differ_where_a_long_vector_is_in_the_way(tmp_path, serve):
    card = Card(name="toy", weights="1", dim=2, pooling="none", normalised=False)
    with Catalogue.create(tmp_path / "v.la", encoder=card, metric="ip") as made:
        made.upsert(["a", "b", "long"], np.array([[1, 0], [0.9, 0.1], [5, 5]]))
    client = serve(Settings(catalogue=tmp_path / "v.la", port=0, threads=1))
    lists = client.get("items/1/neighbours?k=2").json
    assert ([row["id"] for row in lists["by_cosine"]], [row["id"] for row in lists["by_dot"]]) == ([2, 3], [3, 2])
    assert lists["differ"]
    assert client.get("labs/space").json["differ"] == 3


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    return make_catalogue(tmp_path)


def test_labels_are_those_of_the_folders(client):
    legend = client.get("columns/label").json
    assert {entry["value"]: entry["count"] for entry in legend["legend"]} == dict.fromkeys(CLASSES, EACH)
