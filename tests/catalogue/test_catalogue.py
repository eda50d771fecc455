"""The Store contract of a catalogue, and the changes made by hand."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lookalike.catalogue import view
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.store import Store
from lookalike.embed.encoder import Card
from lookalike.errors import (
    CutOffError,
    EncoderMismatchError,
    InputError,
    InputTypeError,
    NonFiniteError,
    NotFoundError,
    ShapeError,
)
from lookalike.index.neighbours import METRICS, higher_is_better, pair_scores

RAW = Card(name="raw", weights="1", dim=4, pooling="none", normalised=False)


def oracle(vectors, query, k, metric):
    """Score every (id, vector) pair alone and sort: what `neighbours` must return."""
    ids = sorted(vectors)
    scores = pair_scores(query, np.array([vectors[i] for i in ids], np.float32), metric)
    order = sorted(range(len(ids)), key=lambda i: (-scores[i] if higher_is_better(metric) else scores[i], ids[i]))
    return [ids[i] for i in order[:k]], [scores[i] for i in order[:k]]


@pytest.fixture
def raw(tmp_path):
    with Catalogue.create(tmp_path / "raw.la", encoder=RAW, metric="ip") as made:
        yield made


def test_a_catalogue_is_a_store(raw):
    assert isinstance(raw, Store)
    assert (raw.metric, raw.dim, raw.card, len(raw), raw.ids().tolist()) == ("ip", 4, RAW, 0, [])
    assert len(raw.search(np.ones(4), k=3)[0]) == 0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_neighbours_are_those_of_a_literal_scan(tmp_path, metric, dtype):
    generator = np.random.default_rng(4)
    with Catalogue.create(tmp_path / "s.la", encoder=RAW, metric=metric, dtype=dtype) as shop:
        ids = shop.upsert([f"i{i}" for i in range(50)], generator.normal(size=(50, 4)))
        vectors = dict(zip(ids.tolist(), shop.vectors(ids), strict=True))
        queries = generator.normal(size=(7, 4)).astype(np.float32)
        for query, (found, scores) in zip(queries, shop.neighbours(queries, 12), strict=True):
            assert (found.tolist(), scores.tolist()) == oracle(vectors, query, 12, metric)


def test_equal_scores_come_back_in_id_order(raw):
    raw.upsert([f"i{i}" for i in range(6)], np.ones((6, 4)))
    assert raw.search(np.ones(4), k=4)[0].ids.tolist() == [1, 2, 3, 4]


def test_an_upsert_replaces_and_keeps_the_id(raw):
    ids = raw.upsert(["a", "b"], np.eye(4)[:2])
    assert raw.upsert(["b"], [[0, 0, 0, 9]]).tolist() == [ids[1]]
    assert raw.vectors(ids[1:]).tolist() == [[0, 0, 0, 9]]
    assert len(raw) == 2


def test_a_deleted_item_is_never_returned(raw):
    ids = raw.upsert(["a", "b", "c"], np.ones((3, 4)))
    assert raw.delete(ids=[ids[0]]) == 1
    assert raw.delete(paths=["c"]) == 1
    assert raw.search(np.ones(4), k=9)[0].paths == ("b",)
    for call in (lambda: raw.vectors(ids[:1]), lambda: raw.paths(ids[:1]), lambda: raw.ids_of(["a"])):
        with pytest.raises(InputError, match="holds no item"):
            call()
    with pytest.raises(InputError, match="no item 1"):
        raw.delete(ids=[1, 2])
    assert len(raw) == 1


def test_a_filter_returns_k_whenever_k_pass(raw):
    raw.upsert([f"i{i}" for i in range(100)], np.arange(400).reshape(100, 4) + 1, columns={"n": list(range(100))})
    found = raw.neighbours(np.ones((1, 4), np.float32), 10, where="n < 10")
    assert found[0][0].tolist() == list(range(10, 0, -1))
    assert len(raw.neighbours(np.ones((1, 4), np.float32), 10, where="n < 3")[0][0]) == 3
    assert len(raw.neighbours(np.ones((1, 4), np.float32), 10, where="n > 100")[0][0]) == 0


def test_a_search_takes_a_picture_a_vector_an_item_or_a_list_of_them(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        shop.sync()
        path = photos / "cup/c.png"
        [number] = shop.ids_of([str(path)])
        pixels = np.asarray(Image.open(path).convert("RGB"))
        vector = shop.vectors(np.array([number]))[0]
        queries = [str(path), path, path.read_bytes(), pixels, Image.fromarray(pixels), vector, int(number)]
        hits = shop.search(queries, k=1)
        assert [hit[0].path for hit in hits] == ["cup/c.png"] * 7
        assert all(hit[0].score == pytest.approx(1, abs=1e-6) for hit in hits)
        with pytest.raises(NotFoundError, match="no picture"):
            shop.search("nowhere.png")


def test_queries_that_have_no_answer_are_refused(raw):
    raw.upsert(["a"], np.ones((1, 4)))
    with pytest.raises(ShapeError, match="3 columns where 4"):
        raw.neighbours(np.ones((1, 3), np.float32), 1)
    with pytest.raises(CutOffError):
        raw.neighbours(np.ones((1, 4), np.float32), 0)
    with pytest.raises(InputTypeError):
        raw.neighbours(np.ones((1, 4), np.float32), 1.5)
    with pytest.raises(NonFiniteError):
        raw.search(np.full(4, np.nan), k=1)
    with pytest.raises(InputTypeError):
        raw.search(True, k=1)
    with pytest.raises(InputTypeError):
        raw.search(object(), k=1)


def test_vectors_that_are_no_direction_never_enter(raw, tmp_path):
    for bad in ([[0, 0, 0, 0]], [[np.nan, 0, 0, 1]], [[np.inf, 0, 0, 1]]):
        with pytest.raises(NonFiniteError):
            raw.upsert(["a"], bad)
    with Catalogue.create(tmp_path / "half.la", encoder=RAW, dtype="float16") as half:
        with pytest.raises(NonFiniteError, match="float16"):
            half.upsert(["a"], [[1e5, 0, 0, 0]])
        with pytest.raises(NonFiniteError, match="float16"):
            half.upsert(["a"], [[1e-9, 0, 0, 0]])
    with pytest.raises(InputError, match="stands twice"):
        raw.upsert(["a", "a"], np.ones((2, 4)))
    with pytest.raises(ShapeError):
        raw.upsert(["a"], np.ones((2, 4)))
    with pytest.raises(InputError, match="not a path"):
        raw.upsert([""], np.ones((1, 4)))
    assert len(raw) == 0


def test_every_commit_bumps_the_revision_once(raw):
    start = raw.revision
    raw.upsert(["a", "b"], np.ones((2, 4)), columns={"x": [1, 2]})
    assert raw.revision == start + 1
    raw.set_columns({"x": [3]}, paths=["a"])
    raw.delete(paths=["a"])
    assert raw.revision == start + 3


def test_a_failed_change_leaves_nothing_behind(raw):
    raw.upsert(["a"], np.ones((1, 4)), columns={"x": [1]})
    before = raw.revision
    with pytest.raises(InputError):
        raw.upsert(["b"], np.ones((1, 4)), columns={"x": ["no number"]})
    assert (raw.revision, len(raw)) == (before, 1)


def test_an_encoder_can_be_removed_but_not_the_one_in_use(raw):
    other = Card(name="other", weights="2", dim=2, pooling="none")
    raw.add_encoder(other)
    raw.add_encoder(other)
    assert [card.name for card in raw.cards()] == ["raw", "other"]
    with pytest.raises(InputError, match="in use"):
        raw.remove_encoder("raw")
    raw.remove_encoder(other)
    assert [card.name for card in raw.cards()] == ["raw"]


def test_an_encoder_that_changed_under_its_name_is_refused_when_it_loads(tmp_path):
    from lookalike.embed.registry import encoder

    real = encoder("builtin:effnet-lite0").card
    changed = Card(
        name=real.name, weights="0" * 32, dim=real.dim, pooling=real.pooling, preprocessing=real.preprocessing,
        image_size=real.image_size, normalised=True,
    )  # fmt: skip
    with (
        Catalogue.create(tmp_path / "s.la", encoder=changed) as shop,
        pytest.raises(EncoderMismatchError, match="weigh"),
    ):
        shop.search(np.zeros((8, 8, 3), np.uint8))


def test_paths_may_be_given_absolute_or_with_a_dot(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        shop.sync()
        spellings = ["cup/c.png", "./cup/c.png", str(photos / "cup/c.png")]
        assert len(set(shop.ids_of(spellings).tolist())) == 1
        shop.set_columns({"label": ["a", "b"]}, paths=[str(photos / "cup/c.png"), "./e.png"])
        assert shop.paths(shop.ids(where="label is not null")) == ["cup/c.png", "e.png"]
        assert shop.delete(paths=[str(photos / "e.png")]) == 1


def test_threads_may_search_while_one_writes(raw):
    raw.upsert([f"i{i}" for i in range(50)], np.random.default_rng(0).normal(size=(50, 4)))
    stop = threading.Event()
    counts, errors = set(), []

    def search():
        while not stop.is_set():
            try:
                [hits] = raw.search(np.ones(4), k=500)
                counts.add((len(hits), len(set(hits.paths))))
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for step in range(30):
        raw.upsert([f"j{step}", f"k{step}"], np.ones((2, 4)) * (step + 1))
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all(found == different and (found - 50) % 2 == 0 for found, different in counts)


operations = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(st.integers(0, 11), min_size=1, max_size=4, unique=True)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 11), min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("remake"), st.just([])),
        st.tuples(st.just("reopen"), st.just([])),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(operations=operations, seed=st.integers(0, 99))
def test_any_history_gives_the_answers_of_a_dictionary(tmp_path_factory, operations, seed):
    """With the vector file written at any point of it, deleted, or never."""
    generator = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("history") / "s.la"
    shop = Catalogue.create(folder, encoder=RAW, metric="l2")
    model = {}
    try:
        for verb, keys in operations:
            names = [f"i{key}" for key in keys]
            if verb == "upsert":
                rows = generator.integers(-3, 4, (len(keys), 4)).astype(np.float32) + 0.5
                for name, number, row in zip(names, shop.upsert(names, rows), rows, strict=True):
                    assert model.setdefault(name, [number, row])[0] == number
                    model[name] = [number, row]
            elif verb == "delete":
                known = [name for name in names if name in model]
                if known:
                    shop.delete(paths=known)
                for name in known:
                    del model[name]
            elif verb == "remake":
                with shop.writing("remake"):
                    view.remake(shop.database, shop.stored)
            else:
                shop.close()
                shop = Catalogue.open(folder)
            vectors = {int(number): row for number, row in model.values()}
            query = generator.integers(-3, 4, 4).astype(np.float32)
            [(ids, scores)] = shop.neighbours(query[None], 5)
            assert (ids.tolist(), scores.tolist()) == oracle(vectors, query, 5, "l2") if vectors else ids.size == 0
            assert shop.ids().tolist() == sorted(vectors)
            assert len(shop) == len(vectors)
    finally:
        shop.close()


def test_an_id_or_a_path_that_is_none_is_refused_and_nothing_is_changed(raw):
    before, revision = raw.ids().tolist(), raw.revision
    for wrong in ([1.5], ["1"], [True], [None]):
        for ask in (raw.vectors, raw.paths, lambda ids: raw.delete(ids=ids)):
            with pytest.raises(InputTypeError, match="whole numbers"):
                ask(wrong)
    for huge in (10**30, 2**64 - 1, 2**63):
        with pytest.raises(InputError, match="no item has such an id"):
            raw.search(huge)
        with pytest.raises(InputError, match="no item has such an id"):
            raw.delete(ids=[huge])
    one = rows_like(raw, 1)
    with pytest.raises(InputTypeError, match="not the single 'ab'"):
        raw.upsert("ab", np.vstack([one, one]))
    with pytest.raises(InputTypeError, match="must hold text, not int"):
        raw.upsert([7], one)
    with pytest.raises(InputTypeError, match="not the single 'a'"):
        raw.delete(paths="a")
    with pytest.raises(InputTypeError, match="A filter is a text"):
        raw.ids(where=5)
    assert (raw.ids().tolist(), raw.revision) == (before, revision)


def rows_like(shop, n):
    return np.ones((n, shop.dim), np.float32) / np.float32(shop.dim) ** 0.5
