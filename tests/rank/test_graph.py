from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.catalogue.memory import MemoryStore
from lookalike.errors import CutOffError, InputError, NotFoundError, ShapeError
from lookalike.rank.graph import GalleryGraph
from lookalike.rank.graph_file import load_graph, save_graph
from lookalike.rank.kreciprocal import KReciprocal
from lookalike.rank.kreciprocal_gallery import rerank_gallery
from lookalike.rank.online import rerank_on_graph, rerank_with

METRICS = ["cosine", "l2", "ip"]
SMALL = KReciprocal(k1=8, k2=3)


def clustered(seed, n, dim=10, groups=8):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(groups, dim)) * 1.5
    return (centres[rng.integers(groups, size=n)] + rng.normal(size=(n, dim)) + 0.3).astype(np.float32)


def frozen_oracle(vectors, query, metric, chosen):
    """The documented definition with sets: gallery lists as they are, the query measured against them."""
    x, q = vectors.astype(float), query.astype(float)
    if metric == "cosine":
        x, q = x / np.linalg.norm(x, axis=1, keepdims=True), q / np.linalg.norm(q)
    largest = (x * x).sum(1).max()

    def distance(a, b):
        return max(0.0, 2 * (largest - a @ b)) if metric == "ip" else float(((a - b) ** 2).sum())

    n, k1 = len(x), min(chosen.k1, len(x) - 1)
    d = np.array([[distance(x[i], x[j]) if i != j else 0.0 for j in range(n)] for i in range(n)])
    order = [[p] + sorted((g for g in range(n) if g != p), key=lambda g, p=p: (d[p][g], g)) for p in range(n)]  # noqa: RUF005
    own = np.array([distance(q, row) for row in x])
    near = sorted(range(n), key=lambda g: (own[g], g))[: min(chosen.k1, n)]

    def reciprocal(p, k):
        return {g for g in order[p][: k + 1] if p in order[g][: k + 1]}

    def weights(members, row):
        raw = {g: np.exp(-row[g] / (row.max() or 1.0)) for g in sorted(members)}
        return {g: value / sum(raw.values()) for g, value in raw.items()}

    def feature(p):
        base = reciprocal(p, k1)
        halves = [reciprocal(r, round(k1 / 2)) for r in base]
        return weights(base.union(*(h for h in halves if 3 * len(base & h) >= 2 * len(h))), d[p])

    mine = {g for g in near if own[g] <= d[g][order[g][k1]]}
    halves = [reciprocal(r, round(k1 / 2)) for r in mine]
    raw = [feature(p) for p in range(n)]
    first = weights(mine.union(*(h for h in halves if 3 * len(mine & h) >= 2 * len(h))), own) if mine else {}

    def mean(rows):
        return {g: sum(row.get(g, 0) for row in rows) / len(rows) for g in set().union(*rows)}

    averaged = [mean([raw[g] for g in order[p][: min(chosen.k2, k1)]]) if k1 > 1 else raw[p] for p in range(n)]
    probe = mean([first, *(raw[g] for g in near[: chosen.k2 - 1])])
    out = []
    for g in range(n):
        names = set(probe) | set(averaged[g])
        low = sum(min(probe.get(c, 0), averaged[g].get(c, 0)) for c in names)
        high = sum(max(probe.get(c, 0), averaged[g].get(c, 0)) for c in names)
        out.append((1 - chosen.lambda_value) * (1 - low / high) + chosen.lambda_value * own[g] / (own.max() or 1.0))
    return np.array(out)


@pytest.mark.parametrize("metric", METRICS)
def test_a_query_equals_the_definition_written_with_sets(metric) -> None:
    gallery, queries = clustered(0, 70), clustered(1, 6)
    queries[5] *= 40  # a query nobody has in a list
    graph = GalleryGraph.build(gallery, metric=metric, settings=SMALL)
    for row, query in enumerate(queries):
        expected = frozen_oracle(gallery, query, metric, SMALL)
        np.testing.assert_allclose(graph.distances(queries)[row], expected, atol=2e-6)


def test_answers_do_not_depend_on_the_other_queries_or_on_k() -> None:
    graph = GalleryGraph.build(clustered(3, 150), settings=SMALL)
    queries = clustered(4, 130)
    found = graph.rerank(queries, 150)
    for row in (0, 64, 129):
        ids, scores = graph.rerank(queries[[row]], 7)[0]
        assert ids.tolist() == found[row][0][:7].tolist()
        np.testing.assert_allclose(scores, found[row][1][:7], atol=1e-6)


def test_it_agrees_with_the_joint_form_on_nearly_all_first_places() -> None:
    x = clustered(5, 440, dim=6)
    joint = rerank_gallery(x[:40], x[40:], 10, settings=SMALL)
    frozen = GalleryGraph.build(x[40:], settings=SMALL).rerank(x[:40], 10)
    shared = [len(set(a) & set(b)) / 10 for (a, _), (b, _) in zip(joint, frozen, strict=True)]
    assert np.mean(shared) > 0.8


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(0, 40), st.sampled_from(METRICS), st.booleans())
def test_an_updated_graph_equals_one_built_anew(seed, first, added, metric, ties) -> None:
    x = clustered(seed, first + added, dim=4)
    if ties:
        x = np.rint(x).astype(np.float32) + np.float32(0.5)
    grown = GalleryGraph.build(x[:first], metric=metric, settings=SMALL).add(x[first:], block=16)
    same(grown, GalleryGraph.build(x, metric=metric, settings=SMALL))
    rng = np.random.default_rng(seed)
    gone = rng.choice(len(x), size=rng.integers(0, len(x)), replace=False)
    same(grown.remove(gone), GalleryGraph.build(np.delete(x, gone, axis=0), metric=metric, settings=SMALL))


def same(one, two):
    assert one.lists.names.tolist() == two.lists.names.tolist()
    np.testing.assert_allclose(one.lists.distances, two.lists.distances, atol=1e-12)
    np.testing.assert_allclose(one.lists.scale, two.lists.scale, rtol=1e-6)
    query = np.full((1, one.points.vectors.shape[1]), 0.7, np.float32)
    np.testing.assert_allclose(one.distances(query), two.distances(query), atol=1e-5)


def test_a_saved_graph_answers_alike_and_refuses_other_vectors(tmp_path) -> None:
    x = clustered(6, 60)
    graph = GalleryGraph.build(x, settings=SMALL)
    save_graph(graph, tmp_path / "graph.npz", stamp="revision 4")
    back = load_graph(tmp_path / "graph.npz", x, stamp="revision 4")
    assert back.settings == SMALL
    np.testing.assert_array_equal(back.distances(x[:3]), graph.distances(x[:3]))
    with pytest.raises(InputError, match="revision 5"):
        load_graph(tmp_path / "graph.npz", x, stamp="revision 5")
    with pytest.raises(InputError, match="59"):
        load_graph(tmp_path / "graph.npz", x[1:], stamp="revision 4")
    with pytest.raises(NotFoundError):
        load_graph(tmp_path / "no.npz", x, stamp="")
    for damage in (b"", b"bad", b"PK\x03\x04 cut", (tmp_path / "graph.npz").read_bytes()[:200]):
        (tmp_path / "bad.npz").write_bytes(damage)
        with pytest.raises(InputError, match="no gallery graph"):
            load_graph(tmp_path / "bad.npz", x, stamp="")


def test_retrieved_neighbours_are_reordered_and_nothing_else_is_found() -> None:
    x = clustered(7, 90)
    store = MemoryStore([str(i) for i in range(90)], x)
    queries = clustered(8, 4)
    found = store.neighbours(queries, 30)
    again = rerank_on_graph(store, queries, found, SMALL)
    final = GalleryGraph.build(x, settings=SMALL).distances(queries)
    for row, (ids, scores) in enumerate(again):
        assert sorted(ids) == sorted(found[row][0])
        np.testing.assert_allclose(scores, np.sort(final[row][found[row][0]]), atol=1e-6)


def test_an_excluded_row_is_never_returned() -> None:
    graph = GalleryGraph.build(clustered(9, 30), settings=SMALL)
    found = graph.rerank(clustered(9, 30)[:3], 30, exclude=[0, 1, -1])
    assert [len(ids) for ids, _ in found] == [29, 29, 30]
    assert 0 not in found[0][0]


def test_a_gallery_of_one_answers() -> None:
    graph = GalleryGraph.build([[1.0, 0.0]])
    assert graph.rerank([[0.0, 1.0]], 3).ids.tolist() == [0]


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        GalleryGraph.build(np.empty((0, 3)))
    graph = GalleryGraph.build(clustered(0, 20), settings=SMALL)
    with pytest.raises(CutOffError):
        graph.rerank(clustered(1, 2), 0)
    with pytest.raises(ShapeError):
        graph.rerank(np.ones((2, 3)), 5)
    with pytest.raises(InputError, match=r"0\.\.19"):
        graph.remove([20])
    with pytest.raises(InputError, match="empty"):
        graph.remove(range(20))
    store = MemoryStore([str(i) for i in range(30)], clustered(2, 30))
    found = store.neighbours(clustered(1, 2), 30)
    with pytest.raises(ShapeError, match="1 queries for 2"):
        rerank_with(graph, np.arange(20), clustered(1, 1), found)
    with pytest.raises(InputError, match="lacks"):
        rerank_with(graph, np.arange(20), clustered(1, 2), found)
