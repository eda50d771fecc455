"""Approximate indexes over a catalogue: right answers through every change, and a switch that is whole."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from lookalike.catalogue import generations, indexes, view
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import CatalogueError, InputError, InputTypeError, UnknownNameError
from lookalike.index.kinds import KINDS, Hnsw

DIM = 8


def rows(n, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, DIM))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def shop(tmp_path, grid):
    with Catalogue.create(tmp_path / "shop.la", encoder=grid, threads=1) as made:
        made.upsert([f"i{i}" for i in range(2_000)], rows(2_000), columns={"n": list(range(2_000))})
        yield made


def overlap(shop, k=10):
    queries = rows(50, 99).astype(np.float32)
    found, exact = shop.neighbours(queries, k), shop.neighbours(queries, k, exact=True)
    assert all(len(ids) == k for ids, _ in found)
    return np.mean([len(set(a.tolist()) & set(b.tolist())) / k for (a, _), (b, _) in zip(found, exact, strict=True)])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "flat"])
def test_every_kind_answers_deletes_updates_and_filters(shop, kind):
    info = shop.build_index(kind)
    assert (info.kind, info.items) == (kind, 2_000)
    assert info.overlap is not None
    assert overlap(shop) > 0.3  # product quantisation alone has one byte for eight dimensions here
    shop.upsert(["new"], rows(1, 500))
    shop.upsert(["i7"], rows(1, 501))
    shop.delete(paths=["i8"])
    with Catalogue.open(shop.folder, threads=1) as again:
        for opened in (shop, again):
            assert opened.search(rows(1, 500)[0], k=1)[0].paths == ("new",)
            assert opened.search(rows(1, 501)[0], k=1)[0].paths == ("i7",)
            assert "i8" not in opened.search(rows(2_000)[8], k=50)[0].paths
            filtered = opened.search(rows(1, 3)[0], k=20, where="n < 30")[0]
            assert sorted(filtered.ids) == sorted(opened.search(rows(1, 3)[0], k=20, where="n < 30", exact=True)[0].ids)


def test_scores_through_an_index_are_true_scores(shop):
    shop.build_index("hnsw-sq8")
    [found] = shop.search(rows(1, 4)[0], k=5)
    exact = dict(zip(*(part.tolist() for part in shop.neighbours(rows(1, 4).astype(np.float32), 2_000, exact=True)[0]), strict=True))  # fmt: skip  # noqa: E501
    assert [exact[int(number)] for number in found.ids] == found.scores.tolist()


def test_an_index_shares_the_vector_file_and_outlives_its_next_generation(shop):
    shop.build_index("hnsw")
    folder = generations.current(shop.database, shop.stored, indexes.KIND).folder
    assert (folder / "vectors.npy").stat().st_nlink == 2
    shop.upsert(["late"], rows(1, 8))
    shop.refresh()
    with Catalogue.open(shop.folder, threads=1) as again:
        assert again.index_info().revision < again.revision
        assert again.search(rows(1, 8)[0], k=1)[0].paths == ("late",)
        assert overlap(again) > 0.9


def test_the_same_seed_gives_the_same_answers(shop):
    queries = rows(20, 5).astype(np.float32)
    answers = []
    for _ in range(2):
        shop.build_index("ivf-pq", seed=3)
        answers.append([ids.tolist() for ids, _ in shop.neighbours(queries, 10)])
    assert answers[0] == answers[1]


def test_going_back_to_flat_is_exact_and_leaves_no_files(shop):
    shop.build_index("ivf")
    assert shop.build_index("flat") is None
    assert shop.index_info() is None
    assert overlap(shop) == 1
    assert not [path for path in (shop.folder / "derived").iterdir() if path.name.startswith("index")]


def test_a_damaged_or_deleted_index_costs_speed_and_no_answer(shop, caplog):
    shop.build_index("hnsw")
    folder = generations.current(shop.database, shop.stored, indexes.KIND).folder
    [file] = folder.rglob("index.faiss")
    file.write_bytes(b"damaged")
    with Catalogue.open(shop.folder, threads=1) as again:
        assert overlap(again) == 1
        assert [problem.check for problem in again.verify(sample=0).problems] == ["indexes"]
    assert "Searching exactly" in caplog.text
    shutil.rmtree(folder)
    with Catalogue.open(shop.folder, threads=1) as again:
        assert again.index_info() is None
        assert overlap(again) == 1


def test_an_index_worn_by_changes_is_rebuilt_by_the_next_sync(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid, threads=1) as shop:
        shop.sync()
        shop.upsert([f"i{i}" for i in range(500)], rows(500))
        shop.build_index("hnsw")
        shop.upsert([f"j{i}" for i in range(400)], rows(400, 2))
        shop.sync()
        assert shop.index_info().items == 505
        shop.upsert([f"k{i}" for i in range(900)], rows(900, 3))
        shop.sync()
        assert shop.index_info().items == 1_805
        shop.delete(paths=[f"k{i}" for i in range(900)])
        shop.sync()
        assert shop.index_info().items == 905


def _deleted(folder):
    shutil.rmtree(folder / "derived")


def _cut_short(folder):
    for path in (folder / "derived").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize("harm", [_deleted, _cut_short])
def test_derived_files_that_were_deleted_or_cut_short_are_made_again_by_the_next_sync(tmp_path, photos, grid, harm):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid, threads=1) as shop:
        shop.sync()
        shop.upsert([f"i{i}" for i in range(500)], rows(500))
        shop.build_index("ivf-pq", seed=7)
        before = shop.index_info()
        revision = shop.revision
    harm(tmp_path / "shop.la")
    with Catalogue.open(tmp_path / "shop.la", encoder=grid, threads=1) as shop:
        assert overlap(shop) == 1  # exact meanwhile
        shop.sync()
        assert shop.index_info() == before
        assert generations.current(shop.database, shop.stored, view.KIND).details["items"] == 505
        assert not shop.verify(sample=0).problems
        assert shop.revision == revision


def test_a_full_disk_leaves_the_old_index_answering(tmp_path, grid):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this user may not mount a small file system")
    try:
        with Catalogue.create(disk / "shop.la", encoder=grid, threads=1) as shop:
            shop.upsert([f"i{i}" for i in range(2_000)], rows(2_000))
            shop.build_index("ivf-sq8")
            before = shop.index_info()
            free = shutil.disk_usage(disk).free
            (disk / "filler").write_bytes(bytes(free - (300 << 10)))
            with pytest.raises(CatalogueError, match=r"disk is full.*still answers"):
                shop.build_index(Hnsw(m=64))
            assert shop.index_info() == before
            assert overlap(shop) > 0.5
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_what_cannot_be_indexed_is_refused(tmp_path, grid, shop):
    with pytest.raises(UnknownNameError, match="Did you mean 'hnsw'"):
        shop.build_index("hsnw")
    with pytest.raises(InputTypeError, match=r"3 is no kind of index.*flat, ivf,"):
        shop.build_index(3)
    with (
        Catalogue.create(tmp_path / "empty.la", encoder=grid) as empty,
        pytest.raises(InputError, match="nothing to index"),
    ):
        empty.build_index("hnsw")
