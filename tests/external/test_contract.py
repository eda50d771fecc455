"""One contract, every store: the same ids, order, filters, deletions and errors in memory, on disk and in an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.external.editing import delete
from lookalike.catalogue.external.opening import create_external
from lookalike.catalogue.external.push import push
from lookalike.catalogue.memory import MemoryStore
from lookalike.catalogue.store import Store
from lookalike.errors import CutOffError, InputError, NonFiniteError, ShapeError
from lookalike.index.neighbours import pair_scores
from lookalike.rank.kreciprocal import KReciprocalReranker

from .conftest import CARD, ENGINES, MilvusServer, Postgres, columns, needs, paths

STORES = ("memory", "catalogue", *ENGINES)
METRICS = ("cosine", "ip", "l2")

FILTERS = [
    "label = 'mug'",
    "label != 'mug'",
    "not label = 'mug'",
    "label is null",
    "label is not null",
    "not (label is null)",
    "label in ('mug', 'Cup')",
    "not label in ('mug', 'Cup')",
    "not (label not in ('mug') or year < 2030)",
    "label < 'it'",
    "label like 'CUP'",
    "label like '%\\%'",
    "label like '_u_'",
    "label not like 'm%'",
    "label contains '100%_É'",
    "label contains '100%_é'",
    "label contains '_'",
    "label contains 'b\"\n'",
    "label = 'it''s \\ 100%_é'",
    "year < 2010.5",
    "not (year >= 2010.5)",
    "year = 2010.5",
    "year != 2010.5",
    "not year != 2010.0",
    "year in (2001, 2002.5, 2004.0)",
    "year not in (2002.5)",
    "year < 1e30",
    "year > 1e30",
    "price <= 2",
    "price in (0.25, 0.5, 7)",
    "sold = true",
    "not sold = true",
    "sold in (true, false)",
    "sold is null",
    "big = 9007199254740993",
    "big > 9007199254740993 and big < 9007199254740996",
    "id in (1, 2, 59, 1000)",
    "id > 30 and not (id > 40)",
    "path like 'mugs/%' and year is not null",
    "path contains 'Ü0'",
    "path < 'D'",
    "(label = 'mug' or price > 10) and not (sold = false and year > 2020)",
    "width is null",
]


@pytest.fixture
def catalogue(tmp_path: Path, vectors: np.ndarray) -> Iterator[Catalogue]:
    with Catalogue.create(tmp_path / "shop.la", encoder=CARD) as shop:
        shop.upsert(paths(60), vectors, columns=columns(60))
        yield shop


@pytest.fixture
def build(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> Iterator[Callable[..., Any]]:
    """Make a store of a kind that holds these vectors under `paths(n)`."""
    opened: list[Any] = []

    def make(kind: str, vectors: np.ndarray, *, metric: str = "cosine", with_columns: bool = True) -> Any:
        names = paths(len(vectors))
        if kind == "memory":
            return MemoryStore(names, vectors, metric=metric)  # type: ignore[arg-type]
        shop = Catalogue.create(tmp_path / f"{kind}-{metric}.la", encoder=CARD, metric=metric)
        opened.append(shop)
        shop.upsert(names, vectors, columns=columns(len(vectors)) if with_columns else None)
        if kind == "catalogue":
            return shop
        store = create_external(address(kind), card=CARD, metric=metric, columns=shop.columns())
        opened.append(store)
        push(store, shop)
        return store

    def address(kind: str) -> str:
        if kind == "pgvector":
            server: Postgres = request.getfixturevalue("postgres")
            return f"{server.uri}?table={name}"
        needs("pymilvus", "milvus_lite")
        if kind == "milvus":
            return f"milvus:{tmp_path}/shop.db?collection={name}"
        other: MilvusServer = request.getfixturevalue("milvus")
        return f"{other.uri}?collection={name}"

    yield make
    for store in opened:
        store.close()


def named(store: Any, found: Any) -> list[list[str]]:
    return [store.paths(ids) for ids, _ in found]


@pytest.mark.parametrize("kind", STORES)
def test_every_store_follows_the_protocol(build, vectors, kind):
    store = build(kind, vectors)
    assert isinstance(store, Store)
    assert len(store) == 60
    assert store.dim == 8
    assert store.metric == "cosine"
    assert (np.diff(store.ids()) > 0).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", STORES)
def test_order_and_scores_are_those_of_comparing_every_pair(build, vectors, kind, metric):
    store = build(kind, vectors, metric=metric)
    queries = vectors[::13] + np.float32(0.01)
    found = store.neighbours(queries, 11)
    ids = store.ids()
    for query, (got, scores) in zip(queries, found, strict=True):
        every = pair_scores(query, vectors, metric)
        order = np.lexsort((ids, every if metric == "l2" else -every))[:11]
        assert got.tolist() == ids[order].tolist()
        assert np.array_equal(scores, every[order])


@pytest.mark.parametrize("kind", STORES)
def test_equal_scores_come_back_in_id_order_also_where_k_cuts_through_them(build, vectors, kind):
    many = np.concatenate([vectors[:5], np.repeat(vectors[5:6], 50, axis=0), vectors[6:10]])
    store = build(kind, many)
    ids = store.ids()
    for k in (1, 7, 30, 50):
        [(got, _)] = store.neighbours(vectors[5:6], k)
        assert got.tolist() == ids[5 : 5 + k].tolist()


@pytest.mark.parametrize("kind", STORES)
def test_fewer_items_than_k_come_back_as_fewer(build, vectors, kind):
    store = build(kind, vectors[:4])
    [(ids, scores)] = store.neighbours(vectors[:1], 100)
    assert sorted(ids.tolist()) == store.ids().tolist()
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("kind", STORES)
def test_vectors_and_paths_come_back_in_the_order_asked(build, vectors, kind):
    store = build(kind, vectors)
    ids = store.ids()
    wanted = ids[[5, 0, 59, 5]]
    assert np.array_equal(store.vectors(wanted), vectors[[5, 0, 59, 5]])
    assert store.paths(wanted) == [paths(60)[i] for i in (5, 0, 59, 5)]
    assert store.ids_of([paths(60)[59], paths(60)[2]]).tolist() == ids[[59, 2]].tolist()


@pytest.mark.parametrize("kind", STORES)
def test_what_is_not_there_is_refused_by_name(build, vectors, kind):
    store = build(kind, vectors)
    with pytest.raises(InputError, match="9999"):
        store.vectors(np.array([1, 9999]))
    with pytest.raises(InputError, match="9999"):
        store.paths(np.array([9999]))
    with pytest.raises(InputError, match=r"nothing\.jpg"):
        store.ids_of(["nothing.jpg"])


@pytest.mark.parametrize("kind", STORES)
def test_bad_questions_are_refused_alike(build, vectors, kind):
    store = build(kind, vectors)
    with pytest.raises(CutOffError):
        store.neighbours(vectors[:1], 0)
    with pytest.raises(ShapeError):
        store.neighbours(vectors[:1, :5], 3)
    with pytest.raises(NonFiniteError):
        store.neighbours(np.full((1, 8), np.nan, np.float32), 3)
    with pytest.raises(NonFiniteError):
        store.neighbours(np.zeros((1, 8), np.float32), 3)
    with pytest.raises(InputError):
        store.ids(where="colour = 'red'")


@pytest.mark.parametrize("kind", ENGINES)
def test_every_filter_passes_the_rows_it_passes_in_a_catalogue(build, vectors, kind):
    store, shop = build(kind, vectors), build("catalogue", vectors)
    for text in FILTERS:
        assert store.ids(where=text).tolist() == shop.ids(where=text).tolist(), text
        for k in (1, 5, 60):
            mine, theirs = store.neighbours(vectors[:2], k, where=text), shop.neighbours(vectors[:2], k, where=text)
            assert mine.ids.tolist() == theirs.ids.tolist(), text
            assert np.array_equal(mine.scores, theirs.scores), text


@pytest.mark.parametrize("kind", ENGINES)
def test_a_filter_nobody_could_run_is_refused_with_its_place(build, vectors, kind):
    store, shop = build(kind, vectors), build("catalogue", vectors)
    for text in ("label = ", "labl = 'mug'", "year = 'soon'", "label = mug"):
        with pytest.raises(InputError) as mine:
            store.ids(where=text)
        with pytest.raises(InputError) as theirs:
            shop.ids(where=text)
        assert mine.value.message == theirs.value.message
    with pytest.raises(InputError, match="text"):
        store.ids(where="year like '2%'")


@pytest.mark.parametrize("kind", ENGINES)
def test_columns_come_back_as_they_are_in_the_catalogue(build, vectors, kind):
    store, shop = build(kind, vectors), build("catalogue", vectors)
    ids = shop.ids()[::-1]
    for name in ("label", "year", "price", "sold", "big", "id", "width"):
        assert store.column(name, ids) == shop.column(name, ids), name
    assert [(c.name, c.type) for c in store.columns()] == [(c.name, c.type) for c in shop.columns()]


@pytest.mark.parametrize("kind", ["catalogue", *ENGINES])
def test_a_deleted_item_is_never_found_again(build, vectors, kind):
    store = build(kind, vectors)
    remove = store.delete if kind == "catalogue" else lambda **named: delete(store, **named)
    assert remove(ids=[3, 4]) == 2
    assert remove(paths=[paths(60)[9]]) == 1
    assert len(store) == 57
    assert not {3, 4, 10} & set(store.ids().tolist())
    for row in store.neighbours(vectors[[2, 3, 9]], 60):
        assert not {3, 4, 10} & set(row[0].tolist())
        assert len(row[0]) == 57
    with pytest.raises(InputError, match="3"):
        remove(ids=[3])


@pytest.mark.parametrize("kind", STORES)
def test_k_reciprocal_orders_alike_over_every_store(build, vectors, kind):
    store, memory = build(kind, vectors), build("memory", vectors)
    probe = vectors[17] + np.float32(0.05)
    mine, theirs = store.search(probe, k=20)[0], memory.search(probe, k=20)[0]
    best = KReciprocalReranker(store, k1=6, k2=3).rerank(list(mine), top_k=10)
    expected = KReciprocalReranker(memory, k1=6, k2=3).rerank(list(theirs), top_k=10)
    assert [row.path for row in best] == [row.path for row in expected]
    assert np.allclose([row.score for row in best], [row.score for row in expected], atol=1e-9)
