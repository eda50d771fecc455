"""A catalogue whose encoder reads: text queries, texts added and taken, and the query board."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.server.settings import Settings

from .shops import Client, make_photos, running

MODULE = """
import numpy as np
from lookalike.embed.encoder import Card

WORDS = {"red": [1, 0, 0], "green": [0, 1, 0], "blue": [0, 0, 1]}


class Colours:
    card = Card(name="python:colours_that_read:ENCODER", weights="1", dim=3, pooling="none", supports_text=True)

    def encode_images(self, images):
        return unit([image.mean(axis=(0, 1)) for image in images])

    def encode_texts(self, texts):
        return unit([np.sum([WORDS.get(word, [0.1] * 3) for word in text.split()], axis=0) for text in texts])


def unit(rows):
    rows = np.array(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


ENCODER = Colours()
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "colours_that_read.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        photos: Path = make_photos(folder)
        with Catalogue.create(folder / "t.la", root=photos, encoder="python:colours_that_read:ENCODER") as made:
            made.sync()
        with running(Settings(catalogue=folder / "t.la", port=0, threads=1)) as client:
            yield client


def folders(answer) -> list[str]:
    return [row["path"].split("/")[0] for row in answer.json["candidates"]]


def test_a_text_finds_what_it_names(client):
    answer = client.post("search", {"terms": [{"text": "green"}], "k": 6})
    assert folders(answer) == ["green"] * 6
    assert answer.json["command"].endswith("search") is False
    assert " green " in answer.json["command"]


def test_a_text_that_is_taken_away_pushes_its_pictures_down(client):
    both = client.post("search", {"terms": [{"text": "red"}, {"text": "blue"}], "k": 12})
    without = client.post("search", {"terms": [{"text": "red blue"}, {"text": "blue", "weight": -0.7}], "k": 6})
    assert set(folders(both)) == {"red", "blue"}
    assert set(folders(without)) == {"red"}
    assert "--minus" in without.json["command"]


def test_a_board_draws_each_prompt_over_its_own_histogram(client):
    cells = client.post("labs/board", {"prompts": ["red", "blue"], "items": [1], "k": 2}).json["cells"]
    assert [cell["status"] for cell in cells] == ["ok"] * 3
    for cell, name in zip(cells, ("red", "blue"), strict=False):
        assert {row["path"].split("/")[0] for row in cell["candidates"]} == {name}
        edges = cell["scores"]["edges"]
        assert edges[0] - 1e-6 <= cell["median"] <= edges[-1] + 1e-6
        top = cell["candidates"][0]
        assert top["lift"] == pytest.approx((top["score"] - cell["median"]) / cell["sigma"])
    assert np.isclose(sum(cells[0]["scores"]["counts"]), 18)


def test_the_catalogue_says_that_texts_may_be_asked(client):
    [encoder] = client.get("catalogue").json["encoders"]
    assert (encoder["supports_text"], encoder["text_refusal"]) == (True, None)
