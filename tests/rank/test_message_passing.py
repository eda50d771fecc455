from __future__ import annotations

import numpy as np
import pytest

from lookalike.catalogue.memory import MemoryStore
from lookalike.errors import CutOffError, InputError, ShapeError
from lookalike.rank.message_passing import (
    MessagePassing,
    propagated,
    rerank_gallery_messages,
    rerank_messages,
    rerank_messages_on_gallery,
)

SMALL = MessagePassing(k1=6, k2=3)


def clustered(seed, n, dim=8, groups=7):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(groups, dim)) * 1.5
    return (centres[rng.integers(groups, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


def dense(vectors, chosen):
    """Adjacency, symmetrising, weighted sums and scaling, written with full matrices and loops."""
    x = vectors.astype(float)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    s, n = x @ x.T, len(x)
    order = [[p] + sorted((g for g in range(n) if g != p), key=lambda g, p=p: (-s[p, g], g)) for p in range(n)]  # noqa: RUF005
    a = np.zeros((n, n))
    for p in range(n):
        a[p, order[p][: chosen.k1]] = 1
    for _ in range(chosen.layers):
        a = a + a.T
        a = np.array(
            [
                sum((1 if g == p else max(s[p, g], 0)) ** chosen.alpha * a[g] for g in order[p][: chosen.k2])
                for p in range(n)
            ]
        )
        a /= np.linalg.norm(a, axis=1, keepdims=True)
    return a


@pytest.mark.parametrize("chosen", [SMALL, MessagePassing(k1=50, k2=9, layers=1, alpha=1), MessagePassing()])
def test_features_equal_the_definition_in_full_matrices(chosen) -> None:
    x = clustered(0, 45)
    np.testing.assert_allclose(propagated(x, chosen).toarray(), dense(x, chosen), atol=2e-6)


def test_the_whole_gallery_is_ranked_by_the_cosine_of_features() -> None:
    x = clustered(1, 90)
    features = dense(x, SMALL)
    expected = features[:9] @ features[9:].T
    for row, (ids, scores) in enumerate(rerank_gallery_messages(x[:9], x[9:], 81, settings=SMALL)):
        assert sorted(ids) == list(range(81))
        np.testing.assert_allclose(scores, expected[row][ids], atol=2e-6)
        assert (np.diff(scores) <= 0).all()


def test_items_without_a_common_edge_follow_in_plain_order() -> None:
    x = clustered(2, 80)
    plain = MemoryStore([str(i) for i in range(76)], x[4:]).neighbours(x[:4], 76)
    for row, (ids, scores) in enumerate(rerank_gallery_messages(x[:4], x[4:], 76, settings=SMALL)):
        rest = ids[scores == 0]
        assert len(rest)
        assert rest.tolist() == [i for i in plain[row][0] if i in set(rest)]


def test_a_pool_and_the_gallery_as_the_pool_give_the_same_scores_for_one_query() -> None:
    x = clustered(3, 61)
    store = MemoryStore([str(i) for i in range(60)], x[1:])
    found = store.neighbours(x[:1], 60)
    pool = rerank_messages(store, x[:1], found, SMALL)
    whole = rerank_messages_on_gallery(store, x[:1], found, SMALL)
    assert pool.ids.tolist() == whole.ids.tolist()
    np.testing.assert_allclose(pool.scores, whole.scores, atol=1e-6)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_any_duplicates_give_finite_scores_in_zero_to_one(metric) -> None:
    x = clustered(4, 70)
    x[20:60] = x[3]
    store = MemoryStore([str(i) for i in range(70)], x, metric=metric)
    found = store.neighbours(x[:5], 70)
    for again in (rerank_messages(store, x[:5], found), rerank_messages_on_gallery(store, x[:5], found)):
        assert np.isfinite(again.scores).all()
        assert ((again.scores >= 0) & (again.scores <= 1)).all()
        assert [sorted(ids) for ids, _ in again] == [sorted(ids) for ids, _ in found]


def test_a_pool_of_one_and_an_empty_pool_are_answered() -> None:
    store = MemoryStore(["a"], np.eye(1, 3))
    found = store.neighbours(np.ones((1, 3), np.float32), 1)
    assert rerank_messages(store, np.ones((1, 3), np.float32), found).ids.tolist() == [0]


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(InputError, match="k2=9"):
        MessagePassing(k1=5, k2=9)
    with pytest.raises(InputError, match="layers"):
        MessagePassing(layers=0)
    with pytest.raises(CutOffError):
        rerank_gallery_messages(np.eye(3), np.eye(3), 0)
    store = MemoryStore(["a"], np.eye(1, 3))
    with pytest.raises(ShapeError):
        rerank_messages(store, np.ones((2, 3), np.float32), store.neighbours(np.ones((1, 3), np.float32), 1))
