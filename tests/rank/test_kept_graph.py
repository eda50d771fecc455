"""The gallery graph of a catalogue is made once, follows its items, and answers as one built anew."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card
from lookalike.rank.graph import GalleryGraph
from lookalike.rank.kept_graph import kept_graph
from lookalike.rank.kreciprocal import KReciprocal
from lookalike.rank.online import rerank_on_graph, rerank_with

SMALL = KReciprocal(k1=8, k2=3)
CARD = Card(name="toy", weights="1", dim=10, pooling="none", normalised=False)


def clustered(seed, n):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(8, 10)) * 1.5
    return (centres[rng.integers(8, size=n)] + rng.normal(size=(n, 10))).astype(np.float32)


@pytest.fixture
def shop(tmp_path):
    with Catalogue.create(tmp_path / "shop.la", encoder=CARD) as catalogue:
        catalogue.upsert([f"{i}.jpg" for i in range(60)], clustered(1, 60))
        yield catalogue


def equals_one_built_anew(catalogue, settings=SMALL):
    graph, ids = kept_graph(catalogue, settings)
    assert ids.tolist() == catalogue.ids().tolist()
    anew = GalleryGraph.build(catalogue.vectors(ids), metric=catalogue.metric, settings=settings)
    assert graph.lists.names.tolist() == anew.lists.names.tolist()
    queries = clustered(9, 3)
    np.testing.assert_allclose(graph.distances(queries), anew.distances(queries), atol=1e-6)


def built(caplog):
    return sum("building" in record.message for record in caplog.records)


def folders(catalogue):
    return sorted(path.name for path in (Path(catalogue.folder) / "derived").glob("graph-*"))


def test_a_second_process_reads_what_the_first_one_made(shop, caplog):
    caplog.set_level(logging.INFO, logger="lookalike")
    kept_graph(shop, SMALL)
    made = folders(shop)
    assert len(made) == 1
    with Catalogue.open(shop.folder) as other:
        equals_one_built_anew(other)
    assert built(caplog) == 1
    assert folders(shop) == made


def test_items_that_come_and_go_update_the_graph_without_building_it(shop, caplog):
    caplog.set_level(logging.INFO, logger="lookalike")
    kept_graph(shop, SMALL)
    shop.upsert(["x.jpg", "y.jpg"], clustered(2, 2))
    equals_one_built_anew(shop)
    shop.delete(paths=["3.jpg", "x.jpg"])
    equals_one_built_anew(shop)
    shop.delete(paths=["4.jpg"])
    shop.upsert(["z.jpg"], clustered(3, 1))
    equals_one_built_anew(shop)
    assert built(caplog) == 1
    assert len(folders(shop)) == 1


def test_a_changed_picture_or_many_new_ones_build_it_anew(shop, caplog):
    caplog.set_level(logging.INFO, logger="lookalike")
    kept_graph(shop, SMALL)
    shop.upsert(["7.jpg"], clustered(4, 1))
    equals_one_built_anew(shop)
    assert built(caplog) == 2
    shop.upsert([f"n{i}.jpg" for i in range(30)], clustered(5, 30))
    equals_one_built_anew(shop)
    assert built(caplog) == 3


def test_long_lists_serve_short_ones_and_short_ones_do_not_serve_long_ones(shop, caplog):
    caplog.set_level(logging.INFO, logger="lookalike")
    equals_one_built_anew(shop, KReciprocal(k1=12, k2=4))
    equals_one_built_anew(shop, KReciprocal(k1=5, k2=2, lambda_value=0.1))
    assert built(caplog) == 1
    with Catalogue.open(shop.folder) as other:
        equals_one_built_anew(other, KReciprocal(k1=20, k2=4))
    assert built(caplog) == 2


def test_a_damaged_file_is_made_again_and_a_reader_keeps_nothing(shop, caplog):
    caplog.set_level(logging.INFO, logger="lookalike")
    with Catalogue.open(shop.folder, readonly=True) as reader:
        equals_one_built_anew(reader)
    assert folders(shop) == []
    kept_graph(shop, SMALL)
    (Path(shop.folder) / "derived" / folders(shop)[0] / "graph.npz").write_bytes(b"PK\x03\x04")
    with Catalogue.open(shop.folder) as other:
        equals_one_built_anew(other)
    assert built(caplog) == 3


def test_the_stage_uses_the_kept_graph_with_the_same_answer(shop):
    queries = clustered(6, 4)
    found = shop.neighbours(queries, 30)
    again = rerank_on_graph(shop, queries, found, SMALL)
    ids = shop.ids()
    expected = rerank_with(GalleryGraph.build(shop.vectors(ids), settings=SMALL), ids, queries, found)
    np.testing.assert_allclose(again.scores, expected.scores, atol=1e-6)
    assert len(folders(shop)) == 1
