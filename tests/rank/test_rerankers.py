from __future__ import annotations

import numpy as np
import pytest

from lookalike.catalogue.memory import MemoryStore
from lookalike.errors import InputError, ShapeError, UnknownNameError
from lookalike.index.neighbours import higher_is_better
from lookalike.rank.kreciprocal_gallery import rerank_gallery
from lookalike.rank.rerankers import RERANKERS, reranker


def clustered(seed, n, dim=10):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(8, dim)) * 1.5
    return (centres[rng.integers(8, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_every_re_ranker_reorders_what_was_retrieved_and_nothing_else(name, metric) -> None:
    x = clustered(0, 90)
    store = MemoryStore([str(i) for i in range(90)], x, metric=metric)
    queries = clustered(1, 7)
    found = store.neighbours(queries, 40)
    method = reranker(name)
    again = method.run(store, queries, found, method.settings(k1=9, k2=3))
    assert again.lengths.tolist() == [40] * 7
    for (ids, scores), (plain, _) in zip(again, found, strict=True):
        assert sorted(ids) == sorted(plain)
        assert np.isfinite(scores).all()
        assert ((scores >= 0) & (scores <= 1)).all()
        steps = np.diff(scores)
        assert (steps <= 0).all() if higher_is_better(again.metric) else (steps >= 0).all()
        place = {item: rank for rank, item in enumerate(plain.tolist())}
        assert all(place[a] < place[b] for a, b, step in zip(ids, ids[1:], steps, strict=False) if step == 0)


def test_the_joint_method_gives_the_distances_of_the_whole_gallery_form() -> None:
    x, queries = clustered(2, 120), clustered(3, 9)
    store = MemoryStore([str(i) for i in range(120)], x)
    again = RERANKERS["k-reciprocal-gallery"].run(store, queries, store.neighbours(queries, 120), None)
    whole = rerank_gallery(queries, x, 120)
    assert again.scores.tolist() == whole.scores.tolist()


@pytest.mark.parametrize("name", RERANKERS)
def test_neighbours_and_queries_that_do_not_belong_together_are_refused(name) -> None:
    store = MemoryStore([str(i) for i in range(30)], clustered(4, 30))
    queries = clustered(5, 3)
    elsewhere = MemoryStore([str(i) for i in range(99)], clustered(6, 99)).neighbours(queries, 99)
    with pytest.raises(InputError):
        RERANKERS[name].run(store, queries, elsewhere, None)
    if name != "k-reciprocal":  # it reads scores, not queries
        with pytest.raises(ShapeError, match="2 queries for 3"):
            RERANKERS[name].run(store, queries[:2], store.neighbours(queries, 5), None)


def test_a_misspelt_name_gets_the_right_one() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'k-reciprocal'"):
        reranker("kreciprocal")
