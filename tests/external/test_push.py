"""A catalogue into an engine: what differs is written, once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.editing import upsert
from lookalike.catalogue.external.milvus import MilvusStore
from lookalike.catalogue.external.milvus_schema import STATES
from lookalike.catalogue.external.milvus_turn import STALE_S
from lookalike.catalogue.external.opening import create_external, open_external
from lookalike.catalogue.external.patience import Patience
from lookalike.catalogue.external.pgindex import HnswIndex
from lookalike.catalogue.external.pgvector import PgvectorStore
from lookalike.catalogue.external.push import measure_overlap, push
from lookalike.embed.encoder import Card
from lookalike.errors import CatalogueError, EncoderMismatchError, InputError, NonFiniteError, NotFoundError

from .conftest import CARD, columns, free_port, paths

HASTY = Patience(connect_s=2, answer_s=3, attempts=2, first_wait_s=0.05)


@pytest.fixture
def shop(tmp_path: Path, vectors: np.ndarray) -> Iterator[Catalogue]:
    with Catalogue.create(tmp_path / "shop.la", encoder=CARD) as made:
        made.upsert(paths(60), vectors, columns=columns(60))
        yield made


def same(store, shop) -> None:
    """Row for row: ids, paths, vectors, columns, answers."""
    ids = shop.ids()
    assert store.ids().tolist() == ids.tolist()
    assert store.paths(ids) == shop.paths(ids)
    assert np.array_equal(store.vectors(ids), shop.vectors(ids))
    for column in shop.columns():
        assert store.column(column.name, ids) == shop.column(column.name, ids)
    queries = shop.vectors(ids[:3])
    assert store.neighbours(queries, 9).ids.tolist() == shop.neighbours(queries, 9).ids.tolist()


def counts(result) -> tuple[int, int, int, int]:
    return result.added, result.updated, result.removed, result.unchanged


def test_a_second_push_of_the_same_revision_writes_nothing(uri, shop):
    with create_external(uri, card=CARD, columns=shop.columns()) as store:
        assert counts(push(store, shop)) == (60, 0, 0, 0)
        assert store.revision == shop.revision
        assert counts(push(store, shop)) == (0, 0, 0, 60)
        same(store, shop)


def test_a_push_brings_every_kind_of_change_and_nothing_else(uri, shop, vectors):
    with create_external(uri, card=CARD, columns=shop.columns()) as store:
        push(store, shop)
        shop.delete(ids=[3, 4])
        shop.upsert([paths(60)[10]], -vectors[:1])
        shop.upsert(["new.jpg"], 2 * vectors[:1])
        shop.set_columns({"label": ["other"]}, ids=[20])
        assert counts(push(store, shop)) == (1, 2, 2, 56)
        same(store, shop)


def test_a_new_column_reaches_the_engine(uri, shop):
    with create_external(uri, card=CARD, columns=shop.columns()) as store:
        push(store, shop)
        shop.set_columns({"colour": ["red", "blue"]}, ids=[1, 2])
        shop.drop_column("price")
        push(store, shop)
        same(store, shop)
        assert store.ids(where="colour = 'red'").tolist() == [1]
        with pytest.raises(InputError, match="price"):
            store.ids(where="price > 1")
    with open_external(uri) as store:
        same(store, shop)


def test_a_store_opened_again_is_the_same_store(uri, shop):
    with create_external(uri, card=CARD, columns=shop.columns()) as store:
        push(store, shop)
        measured = measure_overlap(store, exact=shop, queries=20)
    with open_external(uri) as store:
        same(store, shop)
        assert (store.card, store.metric, store.revision) == (CARD, "cosine", shop.revision)
        assert store.state.overlap is not None
        assert store.state.overlap["value"] == measured.value == 1.0


def test_another_encoder_or_metric_is_refused_by_name(uri, shop, tmp_path):
    with create_external(uri, card=CARD, metric="l2") as store:
        with pytest.raises(EncoderMismatchError, match=r"'l2', not 'cosine'"):
            push(store, shop)
        other = Card(name="test:toy", weights="2", dim=8, pooling="none", normalised=False)
        with (
            Catalogue.create(tmp_path / "o.la", encoder=other, metric="l2") as wrong,
            pytest.raises(EncoderMismatchError, match=r"weights: '1' != '2'"),
        ):
            push(store, wrong)
        assert len(store) == 0


def test_a_store_is_made_once_and_one_that_is_not_there_is_said_so(uri):
    with pytest.raises(NotFoundError):
        open_external(uri)
    create_external(uri, card=CARD).close()
    with pytest.raises(CatalogueError, match="already"):
        create_external(uri, card=CARD)


def test_an_upsert_replaces_by_id_and_keeps_the_columns_it_does_not_name(uri, shop, vectors):
    with create_external(uri, card=CARD, columns=shop.columns()) as store:
        push(store, shop)
        upsert(store, [5, 70], [paths(60)[4], "by hand.jpg"], vectors[:2], columns={"label": ["a", "b"]})
        assert len(store) == 61
        assert store.column("label", np.array([5, 70])) == ["a", "b"]
        assert store.column("year", np.array([5, 70])) == [2004, None]
        assert np.array_equal(store.vectors(np.array([70, 5])), vectors[[1, 0]])
        with pytest.raises(InputError, match="belongs to item 5"):
            upsert(store, [71], [paths(60)[4]], vectors[:1])
        with pytest.raises(NonFiniteError):
            upsert(store, [72], ["zero.jpg"], np.zeros((1, 8)))
        assert store.revision is None
        assert counts(push(store, shop)) == (0, 1, 1, 59)  # the catalogue is the truth
        same(store, shop)


def test_a_sample_is_the_same_for_a_seed_and_lists_no_ids(uri, shop):
    with create_external(uri, card=CARD) as store:
        push(store, shop)
        store.ids = None  # what a store of a thousand million rows had better not be asked
        first = store.sample(5, seed=1)
        assert len(set(first.tolist())) == 5
        assert first.tolist() == store.sample(5, seed=1).tolist() != store.sample(5, seed=2).tolist()
        assert set(first.tolist()) <= set(shop.ids().tolist())


def test_a_cancelled_push_is_not_called_complete_and_goes_on(uri, shop):
    with create_external(uri, card=CARD, columns=shop.columns()) as store:
        assert push(store, shop, cancel=lambda: True).cancelled
        assert store.revision is None
        assert counts(push(store, shop))[1:3] == (0, 0)
        same(store, shop)


@pytest.mark.parametrize("index", ["hnsw", "ivfflat", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_pgvector_answers_by_every_index_and_precision(postgres, name, shop, vectors, index, dtype):
    uri = f"{postgres.uri}?table={name}"
    with create_external(uri, card=CARD, index=index, dtype=dtype) as store:
        push(store, shop)
        kept = vectors.astype(dtype).astype(np.float32)
        assert np.array_equal(store.vectors(store.ids()), kept)
        measured = measure_overlap(store, queries=60)
        assert measured.value == 1.0
        [(ids, _)] = store.neighbours(vectors[:1], 60, where="label = 'mug'")
        assert sorted(ids.tolist()) == store.ids(where="label = 'mug'").tolist()


def test_a_selective_filter_finds_k_rows_though_the_graph_gives_up_first(postgres, name, tmp_path):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3_000, 8)).astype(np.float32)
    rows[-20:] = -50 - rng.random((20, 8))  # those that pass are the farthest from the query
    with Catalogue.create(tmp_path / "far.la", encoder=CARD) as shop:
        shop.upsert([f"{i}.jpg" for i in range(3_000)], rows, columns={"rare": [i >= 2_980 for i in range(3_000)]})
        index = HnswIndex(m=4, ef_construction=16, ef_search=10, max_scan_tuples=50)
        address = Address.parse(f"{postgres.uri}?table={name}")
        with PgvectorStore.create(address, card=CARD, index=index) as store:
            push(store, shop)
            query = np.ones((1, 8), np.float32)
            for k in (1, 20, 100):
                mine, theirs = (
                    store.neighbours(query, k, where="rare = true"),
                    shop.neighbours(query, k, where="rare = true"),
                )
                assert mine.ids.tolist() == theirs.ids.tolist()
            [(everything, _)] = store.neighbours(query, 3_000)
            assert len(everything) == 3_000


def test_too_many_dimensions_are_refused_with_the_way_out(postgres, name):
    card = Card(name="test:wide", weights="1", dim=2_048, pooling="none")
    uri = f"{postgres.uri}?table={name}"
    with pytest.raises(InputError, match="half precision"):
        create_external(uri, card=card)
    create_external(uri, card=card, dtype="float16").close()


def test_half_precision_is_refused_where_the_embedded_file_has_none(tmp_path, milvus):
    with pytest.raises(CatalogueError, match="Float16Vector"):
        create_external(f"milvus:{tmp_path}/half.db", card=CARD, dtype="float16")


def test_two_pushes_at_once_are_told_of_one_another(postgres, name, shop):
    uri = f"{postgres.uri}?table={name}"
    with create_external(uri, card=CARD) as store, open_external(uri) as other:
        with store.alone("push"), pytest.raises(CatalogueError, match="Somebody else"):
            push(other, shop)
        push(other, shop)


def test_an_engine_that_is_away_is_one_clear_sentence(tmp_path, milvus):
    started = time.monotonic()
    for address in (f"postgresql://ann:s3cret@127.0.0.1:{free_port()}/db", f"milvus:http://127.0.0.1:{free_port()}"):
        with pytest.raises(CatalogueError, match="cannot be reached") as caught:
            open_external(address, patience=HASTY)
        assert "s3cret" not in str(caught.value)
        assert caught.value.hint
    assert time.monotonic() - started < 60


def test_no_password_is_ever_shown(postgres, monkeypatch):
    for text in (
        f"postgresql://nobody:s3cret%21@127.0.0.1:{postgres.port}/postgres",
        f"postgresql://nobody@127.0.0.1:{postgres.port}/postgres?password=s3cret%21",
        f"postgresql://nobody:s3cret%21@127.0.0.1:{postgres.port}/postgres?nonsense=s3cret%21",
        "postgresql://nobody:s3cret%21@127.0.0.1:port/postgres",
    ):
        monkeypatch.setenv("SHOP", text)
        with pytest.raises((CatalogueError, InputError)) as caught:
            open_external("env:SHOP", patience=HASTY)
        shown = f"{caught.value} {caught.value!r} {caught.value.__cause__}"
        assert "s3cret" not in shown, shown


@pytest.mark.slow
def test_a_server_that_goes_away_in_the_middle_loses_and_doubles_nothing(make_postgres, shop):
    server = make_postgres()
    uri = f"{server.uri}?table=shop"
    with create_external(uri, card=CARD, columns=shop.columns(), patience=HASTY) as store:
        write = store.write

        def failing(rows) -> None:
            write(rows.select(np.arange(25)))
            server.stop("QUIT")
            write(rows)

        store.write = failing
        with pytest.raises(CatalogueError, match="cannot be reached"):
            push(store, shop)
        with pytest.raises(CatalogueError, match="cannot be reached"):
            store.neighbours(np.ones((1, 8), np.float32), 3)
        server.start()
        store.write = write
        assert store.revision is None
        assert len(store) == 25
        assert counts(push(store, shop)) == (35, 0, 0, 25)
        same(store, shop)


@pytest.mark.slow
def test_a_server_that_comes_back_soon_is_waited_for(make_postgres, shop):
    server = make_postgres()
    patience = Patience(attempts=8, first_wait_s=0.2)
    with create_external(f"{server.uri}?table=shop", card=CARD, patience=patience) as store:
        push(store, shop)
        server.stop("QUIT")
        back = threading.Timer(1.0, server.start)
        back.start()
        assert store.neighbours(np.ones((1, 8), np.float32), 3).ids.size == 3
        back.join()


@pytest.mark.slow
def test_a_killed_milvus_loses_and_doubles_nothing(make_milvus, shop):
    server = make_milvus()
    patience = Patience(connect_s=5, answer_s=10)  # a gRPC channel looks for its server once a second
    with create_external(
        f"{server.uri}?collection=shop", card=CARD, columns=shop.columns(), patience=patience
    ) as store:
        write = store.write

        def failing(rows) -> None:
            write(rows.select(np.arange(25)))
            server.stop("KILL")
            write(rows)

        store.write = failing
        with pytest.raises(CatalogueError, match="cannot be reached"):
            push(store, shop)
        server.start()
        store.write = write
        for _ in range(10):  # the same command, until the engine answers: on a busy machine it takes its time
            try:
                push(store, shop)
                break
            except CatalogueError as error:
                assert "cannot be reached" in str(error)
        same(store, shop)


PUSH = """
import sys, time
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.external import push as pushing
from lookalike.catalogue.external.opening import open_external
pushing._CHUNK_BYTES = 4_000
with Catalogue.open(sys.argv[1], readonly=True) as shop, open_external(sys.argv[2]) as store:
    write = store.write
    def slow(rows):
        write(rows)
        sys.stdout.write("chunk\\n"); sys.stdout.flush()
        time.sleep(0.2)
    store.write = slow
    pushing.push(store, shop)
"""


@pytest.mark.slow
def test_a_killed_pusher_s_chunks_stay_and_the_next_push_writes_the_rest(request, name, shop, postgres, milvus):
    for number, uri in enumerate((f"{postgres.uri}?table={name}", f"{milvus.uri}?collection={name}")):
        create_external(uri, card=CARD, columns=shop.columns()).close()
        command = [sys.executable, "-c", PUSH, str(shop.folder), uri]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ})
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == b"chunk\n"
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        process.stdout.close()
        with open_external(uri) as store:
            there = len(store)
            assert 0 < there < 60, number
            assert store.revision is None
            result = push(store, shop)
            assert counts(result) == (60 - there, 0, 0, there)
            same(store, shop)


def test_an_embedded_file_held_by_another_process_is_said_so(tmp_path, milvus):
    path = tmp_path / "held.db"
    code = f"""
from lookalike.catalogue.external.opening import create_external
from lookalike.embed.encoder import Card
import sys
store = create_external("milvus:{path}", card=Card(name="t", weights="1", dim=2, pooling="none"))
sys.stdout.write("held\\n"); sys.stdout.flush(); sys.stdin.read()
store.close()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(CatalogueError, match="another process"):
        MilvusStore.open(Address.parse(f"milvus:{path}"))
    process.communicate(timeout=30)
    with MilvusStore.open(Address.parse(f"milvus:{path}")) as store:
        assert len(store) == 0


def test_of_two_pushes_into_one_store_the_second_is_not_begun(uri, shop):
    with create_external(uri, card=CARD, columns=shop.columns()) as store, open_external(uri) as other:
        with store.alone("push"):
            with pytest.raises(CatalogueError, match=r"writing to .* so this push was not begun"):
                push(other, shop)
            assert len(store) == 0
        assert counts(push(other, shop)) == (60, 0, 0, 0)


def test_pushes_into_two_stores_of_one_milvus_do_not_meet(milvus, shop, name):
    first, second = (f"{milvus.uri}?collection={name}{end}" for end in ("_a", "xa"))
    with create_external(first, card=CARD) as store, create_external(second, card=CARD) as other, store.alone("push"):
        assert push(other, shop).added == 60


@pytest.mark.parametrize(("age", "passes"), [(10, False), (STALE_S + 60, True)])
def test_a_writer_on_another_machine_is_taken_for_dead_by_its_last_sign(milvus, shop, name, age, passes):
    with create_external(f"{milvus.uri}?collection={name}", card=CARD) as store:
        then = time.time() - age
        row = {"host": "elsewhere", "pid": 7, "since": then, "sign": then}
        store._calls("upsert", STATES, data=[{"name": f"{name}/7", "state": json.dumps(row), "v": [0.0, 1.0]}])
        if passes:
            assert push(store, shop).added == 60
        else:
            with pytest.raises(CatalogueError, match="Process 7 of elsewhere is writing"):
                push(store, shop)
