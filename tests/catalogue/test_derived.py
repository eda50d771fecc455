"""Derived files: stamped, deletable, switched whole; backup and verify."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from lookalike.catalogue import generations, view
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import CatalogueError


def rows(n, seed=0, dim=8):
    vectors = np.random.default_rng(seed).normal(size=(n, dim))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def names(n):
    return [f"i{i}" for i in range(n)]


@pytest.fixture
def shop(tmp_path, grid):
    with Catalogue.create(tmp_path / "shop.la", encoder=grid) as made:
        made.upsert(names(300), rows(300))
        made.refresh()
        yield made


def generation(shop):
    return generations.current(shop.database, shop.stored, view.KIND)


def answers(shop, **options):
    return [
        (hits.ids.tolist(), hits.scores.tolist(), hits.paths) for hits in shop.search(list(rows(5, 9)), k=7, **options)
    ]


def test_a_fresh_process_maps_the_file_and_answers_as_the_database_does(shop):
    with Catalogue.open(shop.folder) as again:
        assert again.view().made == again.view().stamp
        mapped = answers(again)
    shutil.rmtree(shop.folder / "derived")
    with Catalogue.open(shop.folder) as without:
        assert without.view().made is None
        assert answers(without) == mapped


def test_changes_after_the_file_are_found_and_deletions_are_not(shop):
    made = generation(shop).folder
    shop.upsert(["new"], rows(1, 77))
    shop.upsert(["i5"], rows(1, 78))
    shop.delete(paths=["i6"])
    with Catalogue.open(shop.folder) as again:
        assert generation(again).folder == made
        assert again.search(rows(1, 77)[0], k=1)[0].paths == ("new",)
        assert again.search(rows(1, 78)[0], k=1)[0].paths == ("i5",)
        everything = again.search(rows(1, 1)[0], k=1000)[0]
        assert len(everything) == 300
        assert len(set(everything.paths)) == 300
        assert "i6" not in everything.paths


def test_a_damaged_file_is_passed_over(shop):
    expected = answers(shop)
    file = generation(shop).folder / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-100])
    with Catalogue.open(shop.folder) as again:
        assert answers(again) == expected
        problems = again.verify(sample=0).problems
    assert [problem.check for problem in problems] == ["derived"]


def test_a_half_written_generation_is_never_used_and_is_cleared_away(shop):
    left = shop.folder / "derived" / "vectors-1-99-dead"
    left.mkdir()
    (left / "vectors.npy").write_bytes(b"half")
    expected = answers(shop)
    with Catalogue.open(shop.folder) as again:
        assert answers(again) == expected
        again.refresh()
        assert sorted(path.name for path in (shop.folder / "derived").iterdir()) == [generation(again).folder.name]


def test_a_full_disk_leaves_the_old_generation_answering(tmp_path, grid):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this user may not mount a small file system")
    try:
        with Catalogue.create(disk / "shop.la", encoder=grid) as shop:
            shop.upsert(names(900), rows(900))
            shop.refresh()
            old = generation(shop)
            shop.upsert(["late"], rows(1, 5))
            filler = disk / "filler"
            with pytest.raises(OSError, match="No space"):
                filler.write_bytes(bytes(8 << 20))
            with pytest.raises(CatalogueError, match=r"disk is full.*still answers"):
                shop.refresh()
            assert generation(shop) == old
            assert len(list((disk / "shop.la" / "derived").iterdir())) == 1
            assert shop.search(rows(1, 5)[0], k=1)[0].paths == ("late",)
            with pytest.raises(CatalogueError, match="full"):
                shop.backup(disk / "copy.la")
            assert sorted(path.name for path in disk.iterdir()) == ["filler", "shop.la"]
            filler.unlink()
            shop.refresh()
            assert generation(shop) != old
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_restored_backup_does_not_take_the_files_of_another_history(shop, tmp_path):
    """Both histories reach the same revision; only the token tells the newer file apart."""
    shop.backup(tmp_path / "copy.la")
    shop.upsert(["one"], rows(1, 50))
    shop.refresh()
    shop.close()
    for name in ("catalogue.db", "catalogue.db-wal", "catalogue.db-shm"):
        (shop.folder / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy.la" / "catalogue.db", shop.folder / "catalogue.db")
    with Catalogue.open(shop.folder) as restored:
        assert len(restored) == 300
        restored.upsert(["two"], rows(1, 60))
        assert restored.search(rows(1, 60)[0], k=1)[0].paths == ("two",)
        assert restored.search(rows(1, 50)[0], k=1)[0].paths != ("one",)
        assert len(restored.search(rows(1)[0], k=1000)[0]) == 301


def test_a_backup_taken_between_writes_is_one_commit_and_a_catalogue_of_its_own(shop, tmp_path):
    with Catalogue.open(shop.folder, readonly=True) as reader:
        shop.upsert(["during"], rows(1, 31))
        copy = reader.backup(tmp_path / "deep" / "copy.la")
        shop.upsert(["after"], rows(1, 32))
    with Catalogue.open(copy) as opened:
        assert len(opened) == 301
        assert opened.verify().ok
        opened.upsert(["own"], rows(1, 33))
        assert opened.search(rows(1, 31)[0], k=1)[0].paths == ("during",)
    assert len(shop) == 302
    with pytest.raises(CatalogueError, match="does not overwrite"):
        shop.backup(copy)


KILLED = """
import os, sys, time
from pathlib import Path
from lookalike.catalogue.aside import whole
with whole(Path(sys.argv[1])) as out:
    out.write_text("half")
    sys.stdout.write("writing\\n"); sys.stdout.flush()
    time.sleep(60)
"""


def test_a_backup_keeps_the_settings_and_remembers_the_index(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid, threads=1) as shop:
        shop.upsert(names(300), rows(300))
        shop.build_index("ivf", seed=3)
        (shop.folder / "lookalike.toml").write_text('[sync]\nlabels = "labels.csv"\n')
        made = shop.index_info()
        copied = shop.backup(tmp_path / "copy.la")
        with pytest.raises(CatalogueError, match="lies in the catalogue itself"):
            shop.backup(shop.folder / "inner" / "copy.la")
    assert (copied / "lookalike.toml").read_text() == '[sync]\nlabels = "labels.csv"\n'
    with Catalogue.open(copied, encoder=grid, threads=1) as again:
        assert again.index_info() is None  # not copied: exact search answers
        assert again.search(rows(300)[7], k=1)[0].paths == ("i7",)
        again.sync()
        assert (again.index_info().kind, again.index_info().settings) == (made.kind, made.settings)
        assert not again.verify(sample=0).problems


def test_what_a_killed_copy_leaves_is_cleared_by_the_next_and_a_running_one_is_not(shop, tmp_path):
    target = tmp_path / "copy [1].la"
    others = [
        subprocess.Popen([sys.executable, "-c", KILLED, str(target)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
    others[0].kill()
    others[0].wait()
    shop.backup(target)
    assert len(list(tmp_path.glob(".copy*"))) == 1
    others[1].kill()
    others[1].wait()
    shop.backup(tmp_path / "other.la")
    assert len(list(tmp_path.glob(".copy*"))) == 1
    shutil.rmtree(target)
    shop.backup(target)
    assert list(tmp_path.glob(".copy*")) == []
    for other in others:
        other.stdout.close()


def test_many_small_changes_leave_files_and_rows_bounded(shop):
    size = sum(path.stat().st_size for path in shop.folder.rglob("*") if path.is_file())
    for step in range(100):
        shop.upsert(["i7"], rows(1, 1000 + step))
    with shop.writing("settle"):
        shop.database.settle()
    after = sum(path.stat().st_size for path in shop.folder.rglob("*") if path.is_file())
    assert after <= size + (64 << 10)
    assert len(list((shop.folder / "derived").iterdir())) == 1
    assert len(shop.view().tail.ids) == 1


def test_deleting_most_items_gives_the_space_back(shop):
    shop.upsert([f"big{i}" for i in range(20_000)], rows(20_000, 3))
    with shop.writing("settle"):
        shop.database.settle()
    before = (shop.folder / "catalogue.db").stat().st_size
    shop.delete(paths=[f"big{i}" for i in range(20_000)])
    with shop.writing("settle"):
        shop.database.settle()
    assert (shop.folder / "catalogue.db").stat().st_size < before / 3
    assert shop.verify().ok


def test_verify_finds_nothing_wrong_with_a_sound_catalogue(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "p.la", root=photos, encoder=grid) as shop:
        shop.sync()
        shop.refresh()
        found = shop.verify()
        assert found.ok
        assert found.checked["vectors"] == found.checked["hashes"] == found.checked["embedded again"] == 5
        (photos / "e.png").write_bytes(b"edited")
        edited = shop.verify()
        assert edited.ok
        assert "1 changed" in edited.notes[0]
        json.dumps(edited.to_dict())


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE vectors_1 SET data = zeroblob(32) WHERE item = 2", "vectors"),
        ("UPDATE vectors_1 SET data = x'00' WHERE item = 2", "vectors"),
        ("INSERT INTO vectors_1 VALUES (999999, 1, zeroblob(32))", "integrity"),
        ("UPDATE encoders SET revision = 999", "stamps"),
        ("UPDATE vectors_1 SET data = (SELECT data FROM vectors_1 WHERE item = 3) WHERE item = 2", "derived"),
    ],
)
def test_verify_names_what_was_tampered_with(shop, statement, check):
    connection = sqlite3.connect(shop.folder / "catalogue.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert check in [problem.check for problem in shop.verify().problems]


def test_verify_finds_a_vector_that_is_not_its_picture_s(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "p.la", root=photos, encoder=grid) as shop:
        shop.sync()
        with shop.writing("tamper"), shop.database.commit() as connection:
            one, two = (
                connection.execute("SELECT data FROM vectors_1 WHERE item = ?", (i,)).fetchone()[0] for i in (1, 2)
            )
            connection.execute("UPDATE vectors_1 SET data = ? WHERE item = 1", (two,))
            connection.execute("UPDATE vectors_1 SET data = ? WHERE item = 2", (one,))
            connection.execute("UPDATE encoders SET token = 'other'")
        problems = shop.verify().problems
        assert {problem.check for problem in problems} == {"embedded again"}
        assert len(problems) == 2
