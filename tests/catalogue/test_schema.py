"""The database: versions, connections, and what SQLite's errors become."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess

import numpy as np
import pytest

from lookalike.catalogue import schema
from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import CatalogueError, EncoderMismatchError, InputError, NotFoundError, UnknownNameError


def pragma(path, name):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


@pytest.fixture
def empty(tmp_path, grid):
    Catalogue.create(tmp_path / "shop.la", encoder=grid).close()
    return tmp_path / "shop.la"


def test_the_database_is_in_wal_mode_with_full_sync_and_foreign_keys(empty):
    assert pragma(empty / "catalogue.db", "journal_mode") == "wal"
    connection = schema.connect(empty / "catalogue.db", readonly=False)
    try:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
        assert connection.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION
    finally:
        connection.close()


def test_an_older_version_is_upgraded_and_keeps_its_rows(tmp_path, grid, monkeypatch):
    with monkeypatch.context() as past:
        past.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        past.setattr(schema, "VERSION", 1)
        with Catalogue.create(tmp_path / "old.la", encoder=grid) as made, made.database.reading() as connection:
            assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
        connection = sqlite3.connect(tmp_path / "old.la" / "catalogue.db")
        connection.execute("INSERT INTO items (root, path, revision) VALUES (1, 'kept.jpg', 1)")
        vector = np.eye(8, dtype="<f4")[0].tobytes()
        connection.execute("INSERT INTO vectors_1 VALUES (1, 1, ?)", (vector,))
        connection.commit()
        connection.close()
    with pytest.raises(CatalogueError, match=r"format 1, older than 2.*reading only"):
        Catalogue.open(tmp_path / "old.la", readonly=True)
    with Catalogue.open(tmp_path / "old.la") as shop:
        assert shop.search(np.eye(8)[0], k=1)[0].paths == ("kept.jpg",)
    assert pragma(tmp_path / "old.la" / "catalogue.db", "user_version") == schema.VERSION


def test_a_newer_version_is_refused_by_number(empty):
    connection = sqlite3.connect(empty / "catalogue.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(CatalogueError, match=rf"format 99.*up to {schema.VERSION}.*[Uu]pgrade"):
        Catalogue.open(empty)


def test_a_step_that_has_run_on_somebody_s_disk_is_never_edited():
    """To change the schema, add a step behind these and its digest here."""
    digests = [hashlib.sha256("\n".join(step).encode()).hexdigest()[:12] for step in schema.MIGRATIONS]
    assert digests == ["83f4433569f3", "4c01ba27f6cf"]


def test_an_sqlite_that_is_too_old_is_named(empty, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(CatalogueError, match=r"needs 3\.35"):
        Catalogue.open(empty)


def test_what_is_no_catalogue_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(NotFoundError, match="no catalogue"):
        Catalogue.open(tmp_path / "missing.la")
    folder = tmp_path / "text.la"
    folder.mkdir()
    (folder / "catalogue.db").write_text("this is not a database, but it is longer than its header" * 10)
    with pytest.raises(CatalogueError, match="not an SQLite database"):
        Catalogue.open(folder)
    (folder / "catalogue.db").unlink()
    connection = sqlite3.connect(folder / "catalogue.db")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(CatalogueError, match="not a lookalike catalogue"):
        Catalogue.open(folder)


def test_create_refuses_what_exists_and_what_it_does_not_know(tmp_path, grid, empty):
    with pytest.raises(CatalogueError, match="not empty"):
        Catalogue.create(empty, encoder=grid)
    with pytest.raises(UnknownNameError, match="cosine"):
        Catalogue.create(tmp_path / "a.la", encoder=grid, metric="cosin")
    with pytest.raises(UnknownNameError, match="float16"):
        Catalogue.create(tmp_path / "a.la", encoder=grid, dtype="float8")
    with pytest.raises(NotFoundError, match="no folder"):
        Catalogue.create(tmp_path / "a.la", encoder=grid, root=tmp_path / "nowhere")
    assert not (tmp_path / "a.la").exists()


def test_another_encoder_preprocessing_dimension_or_metric_is_refused_by_name(empty, grid, other_grid):
    from lookalike.embed.encoder import Card

    with pytest.raises(EncoderMismatchError, match="preprocessing: 'halves' != 'other halves'"):
        Catalogue.open(empty, encoder=other_grid)
    wider = Card(name="test:grid", weights="1", dim=9, pooling="none", preprocessing="halves")
    with pytest.raises(EncoderMismatchError, match="dim: 8 != 9"):
        Catalogue.open(empty, encoder=wider)
    with pytest.raises(EncoderMismatchError, match=r"test:grid, not of 'open_clip:ViT-B-32/openai'"):
        Catalogue.open(empty, encoder="open_clip:ViT-B-32/openai")
    with pytest.raises(EncoderMismatchError, match="'cosine', not 'l2'"):
        Catalogue.open(empty, metric="l2")
    with Catalogue.open(empty, encoder="test:grid", metric="cosine") as shop:
        assert shop.card == grid.card


def test_ids_are_never_given_out_twice(empty):
    with Catalogue.open(empty) as shop:
        first = shop.upsert(["a", "b"], np.eye(8)[:2])
        shop.delete(ids=first)
        assert shop.upsert(["c"], np.eye(8)[:1])[0] > first.max()


def test_a_read_only_folder_is_read_and_not_written(empty, tmp_path):
    with Catalogue.open(empty) as shop:
        shop.upsert(["a"], np.eye(8)[:1])
    mount = tmp_path / "mount"
    mount.mkdir()
    made = subprocess.run(["mount", "--bind", empty, mount], capture_output=True, check=False)
    if made.returncode or subprocess.run(["mount", "-o", "remount,bind,ro", mount], check=False).returncode:
        subprocess.run(["umount", mount], check=False, capture_output=True)
        pytest.skip("this user may not mount, and root passes over permissions")
    try:
        with Catalogue.open(mount) as shop:
            assert shop.readonly
            assert shop.search(np.eye(8)[0], k=1)[0].paths == ("a",)
            with pytest.raises(CatalogueError, match="reading only"):
                shop.upsert(["b"], np.eye(8)[:1])
            with pytest.raises(CatalogueError, match="reading only"):
                shop.delete(paths=["a"])
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def test_a_full_disk_is_one_sentence_and_the_old_state_still_answers(tmp_path, grid):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this user may not mount a small file system")
    try:
        with Catalogue.create(disk / "shop.la", encoder=grid) as shop:
            shop.upsert(["kept"], np.eye(8)[:1])
            random = np.random.default_rng(0).normal(size=(60_000, 8))
            rows = random / np.linalg.norm(random, axis=1, keepdims=True)
            with pytest.raises(CatalogueError, match=r"disk is full.*Free some space"):
                shop.upsert([f"item {i}" for i in range(len(rows))], rows)
            assert shop.search(np.eye(8)[0], k=5)[0].paths == ("kept",)
        with Catalogue.open(disk / "shop.la") as shop:
            assert shop.search(np.eye(8)[0], k=5)[0].paths == ("kept",)
            assert shop.upsert(["another"], np.eye(8)[1:2]).size == 1
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_closed_catalogue_says_so(empty):
    shop = Catalogue.open(empty)
    shop.close()
    with pytest.raises(CatalogueError, match="closed"):
        len(shop)


def test_rows_that_break_the_card_s_promise_are_refused(empty):
    with Catalogue.open(empty) as shop, pytest.raises(InputError, match=r"length 1; row 1 has 3"):
        shop.upsert(["a", "b"], np.eye(8)[:2] * [[1], [3]])
