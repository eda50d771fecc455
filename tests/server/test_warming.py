"""The encoder is made ready in the background: no query waits for it, and none is lost where it cannot be."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.builtin.effnet_lite0 import BuiltinEncoder
from lookalike.embed.encoder import Card
from lookalike.server.settings import Settings
from lookalike.server.shop import Shop
from lookalike.server.warming import warm


@pytest.fixture
def encoding(monkeypatch):
    """The real encoder, which tells that it is asked, goes on once it may, and tells that it has answered."""
    asked, allowed, answered = threading.Event(), threading.Event(), threading.Event()
    encode = BuiltinEncoder.encode_images

    def told(self, images):
        asked.set()
        assert allowed.wait(60)
        vectors = encode(self, images)
        answered.set()
        return vectors

    monkeypatch.setattr(BuiltinEncoder, "encode_images", told)
    yield asked, allowed, answered
    allowed.set()


def test_the_encoder_is_loaded_before_anybody_asks_and_answers_do_not_wait_for_it(shop, serve, encoding):
    asked, allowed, answered = encoding
    client = serve(Settings(catalogue=shop, port=0, threads=1))
    assert asked.wait(30)
    assert client.get("health").status == 200
    assert len(client.post("search", {"terms": [{"item": 1}], "k": 3}).json["candidates"]) == 3
    assert not answered.is_set()
    allowed.set()
    assert answered.wait(60)


def test_a_catalogue_whose_encoder_cannot_load_is_served_all_the_same(tmp_path, serve, caplog):
    card = Card(name="hf:nobody/nothing", weights="1", dim=2, pooling="none")
    with Catalogue.create(tmp_path / "far.la", encoder=card) as catalogue:
        catalogue.upsert(["a.jpg", "b.jpg"], np.array([[1, 0], [0, 1]]))
    settings = Settings(catalogue=tmp_path / "far.la", port=0, threads=1)
    with caplog.at_level(logging.INFO, logger="lookalike"):
        assert not warm(Shop(settings))
    assert "hf:nobody/nothing is not ready" in caplog.text
    client = serve(settings)
    [found] = client.post("search", {"terms": [{"item": 1}], "k": 3}).json["candidates"]
    assert (found["id"], found["score"]) == (2, 0.0)


def test_a_catalogue_loads_its_encoder_once_for_all_threads(shop):
    with Catalogue.open(shop, readonly=True, threads=1) as catalogue:
        start, seen = threading.Barrier(8), []

        def ask():
            start.wait(10)
            seen.append(id(catalogue.encoder))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == 8
    assert len(set(seen)) == 1
