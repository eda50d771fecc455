from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.arrays import unit
from lookalike.catalogue.memory import MemoryStore
from lookalike.catalogue.store import Store
from lookalike.errors import (
    CutOffError,
    InputError,
    InputTypeError,
    NonFiniteError,
    ShapeError,
    UnknownNameError,
)


def mean_colour(images):
    return np.array([image.reshape(-1, 3).mean(axis=0) + 1 for image in images], dtype=np.float32)


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    """Red, green, blue, a broken file and dark red."""
    paths = []
    for name, colour in {"red": (250, 0, 0), "green": (0, 250, 0), "blue": (0, 0, 250), "dark": (90, 0, 0)}.items():
        path = tmp_path / f"{name}.png"
        Image.new("RGB", (20, 16), colour).save(path)
        paths.append(str(path))
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    return [*paths[:3], str(broken), paths[3]]


def test_it_keeps_the_contract_of_a_store(pictures) -> None:
    assert isinstance(MemoryStore(pictures, mean_colour), Store)


def test_a_picture_that_cannot_be_read_has_no_row_and_is_named(pictures) -> None:
    store = MemoryStore(pictures, mean_colour)
    assert len(store) == 4
    assert store.ids().tolist() == [0, 1, 2, 4]
    assert [(failure.path, failure.reason) for failure in store.failures] == [(pictures[3], "unknown-format")]
    assert store.paths(np.array([4])) == [pictures[4]]
    with pytest.raises(InputError, match="broken"):
        store.ids_of([pictures[3]])
    with pytest.raises(InputError, match="id 3"):
        store.vectors(np.array([0, 3]))


def test_every_form_of_one_picture_finds_itself_first(pictures) -> None:
    store = MemoryStore(pictures, mean_colour)
    image = Image.open(pictures[1])
    for query in (pictures[1], Path(pictures[1]), Path(pictures[1]).read_bytes(), image, np.asarray(image)):
        [hits] = store.search(query, k=2)
        assert hits[0].path == pictures[1]
        assert hits[0].score == pytest.approx(1, abs=1e-6)
    assert store.search(pictures[0], k=9)[0].paths[:2] == (pictures[0], pictures[4])


def test_pictures_and_vectors_may_be_mixed_and_keep_their_order(pictures) -> None:
    store = MemoryStore(pictures, mean_colour)
    found = store.search([pictures[2], np.array([0.0, 1.0, 0.0]), pictures[0]], k=1)
    assert [hits[0].path for hits in found] == [pictures[2], pictures[1], pictures[0]]
    assert store.search([], k=3) == []


def test_cosine_of_3_4_and_4_3_is_0_96_and_the_squared_distance_is_2() -> None:
    vectors = np.array([[3, 4], [4, 3]], dtype=np.float32)
    for metric, expected in [("cosine", 0.96), ("ip", 24.0), ("l2", 2.0)]:
        [hits] = MemoryStore(["a", "b"], vectors, metric=metric).search(vectors[0], k=2)
        scores = {candidate.path: candidate.score for candidate in hits}
        assert scores["b"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_the_order_is_that_of_a_full_sort_with_ties_by_id(metric) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20, 3)).astype(np.float32)[rng.integers(20, size=60)]  # most stand more than once
    queries = rng.normal(size=(5, 3)).astype(np.float32)
    x, q = vectors.astype(float), queries.astype(float)
    if metric == "cosine":
        scores = -(q @ x.T) / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(x, axis=1)
    else:
        scores = -(q @ x.T) if metric == "ip" else ((q[:, None] - x[None]) ** 2).sum(-1)
    found = MemoryStore(map(str, range(60)), vectors, metric=metric).neighbours(queries, 60)
    for row, (ids, _) in enumerate(found):
        assert ids.tolist() == np.lexsort((np.arange(60), scores[row].round(12))).tolist()


def test_more_than_there_is_comes_back_as_fewer_never_as_padding() -> None:
    [hits] = MemoryStore(["a", "b"], np.eye(2)).search(np.ones(2), k=50)
    assert hits.ids.tolist() == [0, 1]


def test_vectors_come_back_as_they_were_given() -> None:
    vectors = np.array([[3, 4], [30, 40]], dtype=np.float32)
    store = MemoryStore(["a", "b"], vectors)
    assert store.vectors(store.ids_of(["b", "a"])).tolist() == [[30, 40], [3, 4]]
    assert store.card is None


def test_a_repeated_path_counts_once(pictures) -> None:
    assert len(MemoryStore([pictures[0], pictures[1], pictures[0]], mean_colour)) == 2
    with pytest.raises(InputError, match="twice"):
        MemoryStore(["a", "a"], np.eye(2))


def test_unit_rows_are_what_an_encoder_gives(pictures) -> None:
    store = MemoryStore(pictures, mean_colour)
    rows = store.vectors(store.ids())
    np.testing.assert_allclose(rows, unit(rows), atol=1e-6)
    assert store.card is not None
    assert store.card.dim == store.dim == 3


def test_what_cannot_be_stored_or_asked_is_refused_by_name(pictures) -> None:
    with pytest.raises(InputError, match="broken"):
        MemoryStore([pictures[3]], mean_colour)
    with pytest.raises(ShapeError, match="2 ready vectors for 3"):
        MemoryStore(["a", "b", "c"], np.eye(2))
    with pytest.raises(NonFiniteError, match="row 1"):
        MemoryStore(["a", "b"], np.array([[1, 0], [0, 0]]))
    with pytest.raises(UnknownNameError, match="cosine"):
        MemoryStore(["a", "b"], np.eye(2), metric="cosin")
    with pytest.raises(UnknownNameError, match="flat"):
        MemoryStore(["a", "b"], np.eye(2), index="flta")
    with pytest.raises(InputTypeError, match="list"):
        MemoryStore("a.png", mean_colour)
    store = MemoryStore(["a", "b"], np.eye(2))
    with pytest.raises(CutOffError):
        store.search(np.ones(2), k=0)
    with pytest.raises(ShapeError, match="query vector"):
        store.search(np.ones((2, 2)))
    with pytest.raises(ShapeError, match="3 columns"):
        store.search(np.ones(3))
    with pytest.raises(InputError, match="ready vectors"):
        store.search(pictures[0])
    with pytest.raises(InputError, match="no columns"):
        store.ids(where="label = 'x'")
    with pytest.raises(NonFiniteError, match="queries"):
        store.search(np.zeros(2))


def test_an_approximate_kind_answers_by_the_same_contract() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    names = [str(i) for i in range(300)]
    exact = MemoryStore(names, vectors).neighbours(vectors[:20], 10)
    found = MemoryStore(names, vectors, index="hnsw").neighbours(vectors[:20], 10)
    assert (found.lengths == 10).all()
    assert np.mean([len(set(a) & set(b)) / 10 for (a, _), (b, _) in zip(exact, found, strict=True)]) > 0.95
    assert MemoryStore(names, vectors, index="hnsw").index == "hnsw"
