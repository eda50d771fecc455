"""A query that is an item of the store stands in a set of queries and gallery once."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.catalogue.memory import MemoryStore
from lookalike.errors import InputError, ShapeError
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side
from lookalike.evaluate.staged import Stages
from lookalike.index.exact import topk
from lookalike.rank.kreciprocal import KReciprocal
from lookalike.rank.kreciprocal_gallery import rerank_gallery, rerank_within
from lookalike.rank.message_passing import MessagePassing, propagated
from lookalike.rank.rerankers import RERANKERS
from lookalike.rank.search import search
from lookalike.rank.stages import Chain, rerank_stage

SMALL = KReciprocal(k1=8, k2=3)


def clustered(seed, n, dim=10):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, dim)) * 1.5
    return (centres[rng.integers(8, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


def everything(x):
    """Every other row for every row of one set, as leave-one-out retrieves them."""
    return topk(x, x, len(x), metric="cosine", exclude=[np.array([row]) for row in range(len(x))])


@pytest.mark.parametrize("name", ["k-reciprocal-gallery", "k-reciprocal-graph"])
def test_items_that_ask_get_the_distances_of_one_set_and_not_of_the_set_twice(name) -> None:
    x = clustered(0, 70)
    store = MemoryStore([str(i) for i in range(70)], x)
    again = RERANKERS[name].rerank(store, x, everything(x), SMALL, np.arange(70))
    expected = rerank_within(x, 69, settings=SMALL)
    for (ids, scores), (_, right) in zip(again, expected, strict=True):
        np.testing.assert_allclose(scores, right, atol=2e-6 if name == "k-reciprocal-graph" else 1e-12)
        assert len(ids) == 69
    twice = RERANKERS[name].rerank(store, x, everything(x), SMALL)
    assert np.abs(np.concatenate([s for _, s in twice]) - np.concatenate([s for _, s in again])).max() > 0.01


def test_messages_of_items_that_ask_run_in_a_graph_of_the_items_alone() -> None:
    x, chosen = clustered(1, 60), MessagePassing(k1=8, k2=3)
    store = MemoryStore([str(i) for i in range(60)], x)
    again = RERANKERS["message-passing-gallery"].rerank(store, x, everything(x), chosen, np.arange(60))
    features = propagated(x, chosen)
    cosines = (features @ features.T).toarray()
    for row, (ids, scores) in enumerate(again):
        np.testing.assert_allclose(scores, cosines[row, ids].clip(0, 1), atol=1e-6)


@pytest.mark.parametrize("name", ["k-reciprocal-gallery", "message-passing-gallery"])
def test_items_and_guests_may_ask_together(name) -> None:
    x, guests = clustered(2, 50), clustered(3, 4)
    store = MemoryStore([str(i) for i in range(50)], x)
    queries = np.concatenate([guests[:2], x[[7, 30]], guests[2:]])
    own = np.array([-1, -1, 7, 30, -1, -1])
    found = store.neighbours(queries, 50)
    settings = RERANKERS[name].settings(k1=8, k2=3)
    mixed = RERANKERS[name].rerank(store, queries, found, settings, own)
    alone = RERANKERS[name].rerank(store, guests, store.neighbours(guests, 50), settings)
    for place, row in enumerate([0, 1, 4, 5]):  # the items that ask add nothing to the set
        assert mixed[row][0].tolist() == alone[place][0].tolist()
        np.testing.assert_allclose(mixed[row][1], alone[place][1], atol=1e-6)


@pytest.mark.parametrize("scope", ["gallery", "joint"])
def test_an_item_that_is_not_there_and_a_wrong_length_are_refused(scope) -> None:
    x = clustered(4, 20)
    store = MemoryStore([str(i) for i in range(20)], x)
    for method in (each for each in RERANKERS.values() if each.scope == scope):
        with pytest.raises(InputError, match="item 99"):
            method.rerank(store, x[:1], store.neighbours(x[:1], 5), None, np.array([99]))
        with pytest.raises(ShapeError, match="one item a query"):
            method.rerank(store, x[:1], store.neighbours(x[:1], 5), None, np.array([1, 2]))


def test_leave_one_out_is_scored_with_every_item_in_the_set_once() -> None:
    x = clustered(5, 60)
    labels = np.argmax(x[:, :3], axis=1).astype(str).tolist()
    side = Side(vectors=x, ids=np.arange(60) * 3 + 5, columns={"label": labels})  # ids are no rows
    stages = Stages(rerank=rerank_stage("k-reciprocal-gallery:k1=8,k2=3"), pool=60)
    report = measure(side, side, stages=stages, ks=(1,))
    expected = rerank_within(x, 1, settings=SMALL)
    hits = [labels[int(ids[0])] == labels[row] for row, (ids, _) in enumerate(expected)]
    assert report.metrics["recall@1"] == pytest.approx(np.mean(hits))


def test_separate_queries_are_scored_as_guests_of_the_set() -> None:
    x, q = clustered(6, 60), clustered(7, 12)
    labels = [np.argmax(rows[:, :3], axis=1).astype(str).tolist() for rows in (x, q)]
    gallery = Side(vectors=x, ids=np.arange(100, 160), columns={"label": labels[0]})
    queries = Side(vectors=q, ids=np.arange(12), columns={"label": labels[1]})
    stages = Stages(rerank=rerank_stage("k-reciprocal-gallery:k1=8,k2=3"), pool=60)
    report = measure(queries, gallery, stages=stages, ks=(1,))
    expected = rerank_gallery(q, x, 1, settings=SMALL)
    hits = [labels[0][int(ids[0])] == labels[1][row] for row, (ids, _) in enumerate(expected)]
    assert report.metrics["recall@1"] == pytest.approx(np.mean(hits))


def test_a_search_by_item_says_so_to_every_stage_of_a_chain() -> None:
    x = clustered(8, 40)
    store = MemoryStore([str(i) for i in range(40)], x)
    stage = Chain((rerank_stage("k-reciprocal-gallery:k1=8,k2=3"), lambda _store, _queries, found: found))
    [found] = search(store, x[[9]], k=5, pool=39, exclude=[9], stage=stage)
    assert found.ids.tolist() == rerank_within(x, 5, settings=SMALL)[9][0].tolist()
