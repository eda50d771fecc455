"""`push`, `index --on dask`, manifests and URIs from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lookalike.cli.opening import open_store
from lookalike.errors import EncoderMismatchError, NotFoundError
from lookalike.rank.search import search
from lookalike.rank.stages import rerank_stage

from .conftest import free_port, needs


@pytest.fixture
def shop(photos, run_here):
    assert run_here("index", "shop.la", photos).code == 0
    return "shop.la"


def test_push_makes_a_store_brings_what_changed_and_measures_the_overlap(shop, photos, run_here, uri):
    first = run_here("push", shop, uri, "--format", "json")
    assert first.code == 0, first.err
    told = json.loads(first.out)
    assert (told["added"], told["items"], told["overlap"]["value"]) == (12, 12, 1.0)
    (photos / "red" / "0.png").unlink()
    run_here("sync", shop)
    second = run_here("push", shop, uri)
    assert (second.code, second.out) == (0, "added 0 · updated 0 · removed 1 · unchanged 11\n")
    assert run_here("push", shop, uri, "--index", "none").code == 2
    assert run_here("push", shop, uri, "--index", "hnsw").code == 0
    assert run_here("push", shop, uri).out == "added 0 · updated 0 · removed 0 · unchanged 11\n"


def test_a_pushed_store_answers_as_its_catalogue_does_re_ranked_and_filtered(shop, run_here, uri, tmp_path):
    run_here("push", shop, uri)
    with open_store(tmp_path / shop) as catalogue, open_store(uri) as engine:
        queries = catalogue.vectors(catalogue.ids()[:3])
        for stage in (None, rerank_stage("k-reciprocal:k1=4,k2=2")):
            mine = search(engine, queries, k=5, where="label != 'red'", stage=stage)
            theirs = search(catalogue, queries, k=5, where="label != 'red'", stage=stage)
            for a, b in zip(mine, theirs, strict=True):
                assert a.ids.tolist() == b.ids.tolist()
                assert np.allclose(a.lifts, b.lifts)
        assert [str(path) for path in engine.files(engine.ids())] == [str(p) for p in catalogue.files(catalogue.ids())]
        assert engine.encoder.card == catalogue.card
    with pytest.raises(EncoderMismatchError):
        open_store(uri, encoder="timm:other")


def test_search_takes_the_address_of_a_store(shop, photos, run_here, uri):
    run_here("push", shop, uri)
    for extra in ((), ("--rerank", "k-reciprocal:k1=4,k2=2"), ("--where", "label = 'blue'")):
        query = (photos / "red" / "1.png", "-k", "4", "--format", "jsonl", *extra)
        mine, theirs = run_here("search", uri, *query), run_here("search", shop, *query)
        assert mine.code == 0, mine.err
        assert mine.out == theirs.out
    assert run_here("search", uri, photos / "red" / "1.png", "--encoder", "timm:other").code == 2


@pytest.mark.parametrize("extra", [(), ("--rerank", "k-reciprocal:k1=4,k2=2"), ("--query-where", "label = 'blue'")])
def test_a_store_on_an_engine_is_measured_as_its_catalogue_is(shop, run_here, uri, extra):
    run_here("push", shop, uri)
    mine, theirs = (run_here("eval", place, "--ks", "1,5", "--format", "json", *extra) for place in (uri, shop))
    assert mine.code == 0, mine.err
    engine, catalogue = json.loads(mine.out), json.loads(theirs.out)
    for field in ("num_queries", "num_gallery", "metrics", "intervals", "protocol", "encoder", "excluded", "leaks"):
        assert engine[field] == catalogue[field]
    assert run_here("eval", uri, "--relevance", "lable").code == 2


def test_what_cannot_be_reached_or_read_is_refused_without_a_stack(shop, run_here, tmp_path, milvus, monkeypatch):
    away = f"postgresql://ann:s3cret@127.0.0.1:{free_port()}/db"
    done = run_here("push", shop, away, "--timeout", "1")
    assert done.code == 2
    assert "cannot be reached" in done.err
    assert "s3cret" not in done.err + done.out
    assert "Traceback" not in done.err
    assert run_here("push", shop, "oracle://x").code == 2
    assert run_here("push", shop, "env:NOT_SET_ANYWHERE").code == 2
    with pytest.raises(NotFoundError):
        open_store(f"milvus:{tmp_path}/nothing.db")


@pytest.mark.slow
def test_index_on_dask_is_index(photos, lookalike, tmp_path):
    needs("distributed")
    (photos / "bad.png").write_bytes(b"")
    plain = lookalike("index", "plain.la", photos, "--format", "json")
    spread = lookalike("index", "spread.la", photos, "--on", "dask", "--workers", "2", "--format", "json")
    assert (plain.code, spread.code) == (3, 3), spread.err
    assert json.loads(plain.out) == json.loads(spread.out)
    assert "Dask: 2 task slots" in spread.err
    with open_store(tmp_path / "plain.la") as a, open_store(tmp_path / "spread.la") as b:
        assert np.array_equal(a.vectors(a.ids()), b.vectors(b.ids()))
        assert a.paths(a.ids()) == b.paths(b.ids())
        assert a.column("label", a.ids()) == b.column("label", b.ids())
    assert lookalike("sync", "spread.la", "--workers", "2").code == 2


def test_index_takes_a_manifest_and_keeps_its_columns(photos, run_here, tmp_path):
    needs("fsspec")
    rows = ["path,label,camera", f"{photos}/red/0.png,red,1", f"file://{photos}/blue/1.png,blue,2"]
    (tmp_path / "list.csv").write_text("\n".join(rows) + "\n")
    assert run_here("index", "shop.la", "list.csv").code == 0
    with open_store(tmp_path / "shop.la") as shop:
        assert len(shop) == 2
        assert sorted(zip(shop.column("label", shop.ids()), shop.column("camera", shop.ids()), strict=True)) == [
            ("blue", 2), ("red", 1),
        ]  # fmt: skip
    (tmp_path / "list.csv").write_text("\n".join(rows[:2]) + "\n")
    assert run_here("sync", "shop.la").out.startswith("added 0 · updated 0 · moved 0 · removed 1 · unchanged 1")


def test_index_takes_the_uri_of_a_folder_and_sync_remembers_it(photos, run_here, tmp_path):
    needs("fsspec")
    done = run_here("index", "shop.la", f"file://{photos}")
    assert (done.code, done.out.split(" · ")[0]) == (0, "added 12")
    (photos / "red" / "0.png").unlink()
    assert run_here("sync", "shop.la").out.startswith("added 0 · updated 0 · moved 0 · removed 1")
