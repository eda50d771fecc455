"""Sync against folders that change in every way a folder can."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import CatalogueError, ImageError, InputError, NotFoundError

COUNTS = ("added", "updated", "moved", "removed", "unchanged")


@pytest.fixture
def shop(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as made:
        made.sync()
        yield made


def counts(result):
    return {name: getattr(result, name) for name in COUNTS if getattr(result, name)}


def age(root: Path, seconds: int = 60) -> None:
    """Make every file older than the resolution of any file system."""
    for path in root.rglob("*"):
        if path.is_file():
            when = time.time() - seconds
            os.utime(path, (when, when))


def test_a_first_sync_adds_every_picture_once(tmp_path, photos, grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        result = shop.sync()
        assert counts(result) == {"added": 5}
        assert (result.failed, result.items, len(shop)) == ((), 5, 5)
        assert sorted(shop.paths(shop.ids())) == ["cup/c.png", "cup/d.png", "e.png", "mug/a.png", "mug/b.png"]
        assert [(item.file.width, item.file.height, item.file.frames) for item in shop.items()] == [(6, 6, 1)] * 5


def test_a_stored_vector_is_the_encoder_s_own(shop, photos, grid):
    from lookalike.images.load import load

    [number] = shop.ids_of(["mug/a.png"])
    expected = grid.encode_images([load(str(photos / "mug/a.png")).pixels])
    assert np.array_equal(shop.vectors(np.array([number])), expected)


def test_a_second_sync_embeds_nothing_and_commits_nothing(tmp_path, photos, grid):
    age(photos)
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        first = shop.sync()
        embedded = grid.calls
        second = shop.sync()
        assert counts(second) == {"unchanged": 5}
        assert (grid.calls, second.revision) == (embedded, first.revision)


def test_a_touched_file_is_not_embedded_again(shop, photos, grid):
    embedded = grid.calls
    (photos / "e.png").touch()
    assert counts(shop.sync()) == {"unchanged": 5}
    assert grid.calls == embedded


def test_new_bytes_at_the_same_path_are_an_update_that_keeps_the_id(shop, photos, grid, picture):
    [before] = shop.ids_of(["e.png"])
    vector = shop.vectors(np.array([before]))
    picture(photos / "e.png", 99)
    assert counts(shop.sync()) == {"updated": 1, "unchanged": 4}
    assert shop.ids_of(["e.png"]).tolist() == [before]
    assert not np.array_equal(shop.vectors(np.array([before])), vector)


def test_new_bytes_of_the_same_size_at_the_same_time_are_seen(shop, photos, grid):
    """A second write within one tick of the clock leaves size and time as they were."""
    path = photos / "e.png"
    info = path.stat()
    other = (photos / "mug/a.png").read_bytes()
    assert len(other) == info.st_size
    path.write_bytes(other)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    result = shop.sync()
    assert result.updated == 1


def test_a_renamed_file_moves_with_its_id_columns_and_vector(shop, photos, grid):
    [before] = shop.ids_of(["mug/a.png"])
    shop.set_columns({"label": ["mug"]}, paths=["mug/a.png"])
    embedded = grid.calls
    (photos / "new").mkdir()
    (photos / "mug/a.png").rename(photos / "new/z.png")
    assert counts(shop.sync()) == {"moved": 1, "unchanged": 4}
    assert shop.ids_of(["new/z.png"]).tolist() == [before]
    assert shop.column("label", np.array([before])) == ["mug"]
    assert grid.calls == embedded


def test_a_moved_folder_moves_all_its_items(shop, photos):
    before = shop.ids_of(["mug/a.png", "mug/b.png"]).tolist()
    (photos / "mug").rename(photos / "mugs")
    assert counts(shop.sync()) == {"moved": 2, "unchanged": 3}
    assert shop.ids_of(["mugs/a.png", "mugs/b.png"]).tolist() == before


def test_a_copy_is_added_without_being_embedded(shop, photos, grid):
    embedded = grid.calls
    shutil.copy(photos / "mug/a.png", photos / "copy.png")
    assert counts(shop.sync()) == {"added": 1, "unchanged": 5}
    one, two = shop.vectors(shop.ids_of(["mug/a.png", "copy.png"]))
    assert np.array_equal(one, two)
    assert grid.calls == embedded


def test_two_files_that_swap_names_swap_vectors(shop, photos):
    a, b = shop.vectors(shop.ids_of(["mug/a.png", "mug/b.png"]))
    (photos / "mug/a.png").rename(photos / "mug/t.png")
    (photos / "mug/b.png").rename(photos / "mug/a.png")
    (photos / "mug/t.png").rename(photos / "mug/b.png")
    assert counts(shop.sync()) == {"updated": 2, "unchanged": 3}
    now_a, now_b = shop.vectors(shop.ids_of(["mug/a.png", "mug/b.png"]))
    assert np.array_equal(now_a, b)
    assert np.array_equal(now_b, a)


def test_a_removed_file_goes_and_its_id_is_never_given_out_again(shop, photos, picture):
    last = shop.ids().max()
    [path] = shop.paths(np.array([last]))
    (photos / path).unlink()
    assert counts(shop.sync()) == {"removed": 1, "unchanged": 4}
    picture(photos / "later.png", 123)
    shop.sync()
    assert shop.ids_of(["later.png"])[0] > last
    found = shop.search(shop.vectors(shop.ids()), k=100)
    assert all(last not in hits.ids for hits in found)


def test_a_bad_file_costs_one_line_and_no_row(shop, photos):
    (photos / "broken.png").write_bytes((photos / "e.png").read_bytes()[:40])
    (photos / "empty.jpg").touch()
    result = shop.sync()
    assert counts(result) == {"unchanged": 5}
    assert [(failure.path, failure.reason) for failure in result.failed] == [
        ("broken.png", "truncated"),
        ("empty.jpg", "empty"),
    ]
    assert shop.failures() == list(result.failed)
    revision = shop.revision
    assert shop.sync().failed == result.failed
    assert shop.revision == revision


def test_a_file_that_breaks_loses_its_vector_and_gets_its_id_back_when_it_heals(shop, photos):
    [number] = shop.ids_of(["e.png"])
    whole = (photos / "e.png").read_bytes()
    vector = shop.vectors(np.array([number]))
    (photos / "e.png").write_bytes(whole[:50])
    assert [failure.path for failure in shop.sync().failed] == ["e.png"]
    assert number not in shop.ids()
    assert len(shop) == 4
    (photos / "e.png").write_bytes(whole)
    result = shop.sync()
    assert (result.added, result.failed, shop.failures()) == (1, (), [])
    assert np.array_equal(shop.vectors(np.array([number])), vector)


def test_strict_stores_nothing_when_one_file_fails(tmp_path, photos, grid):
    (photos / "z-last.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        with pytest.raises(ImageError, match=r"z-last\.png"):
            shop.sync(strict=True, batch_size=1)
        assert (len(shop), shop.revision, shop.failures()) == (0, 0, [])
        (photos / "z-last.png").unlink()
        assert shop.sync(strict=True).added == 5


def test_cancelling_keeps_what_is_embedded_and_removes_nothing(tmp_path, photos, grid, picture):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        shop.sync()
        (photos / "e.png").unlink()
        for seed in range(100, 140):
            picture(photos / f"n{seed}.png", seed)
        asked = iter([False] * 8)
        result = shop.sync(batch_size=2, cancel=lambda: next(asked, True))
        assert result.cancelled
        assert 0 < result.added < 40
        assert result.removed == 0
        assert len(shop) == 5 + result.added
        rest = shop.sync()
        assert (rest.added, rest.removed) == (40 - result.added, 1)


def test_an_interrupt_leaves_a_catalogue_that_the_next_sync_completes(tmp_path, photos, grid, monkeypatch):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:

        def stop(progress):
            if progress.done >= 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            shop.sync(batch_size=1, progress=stop)
        assert not shop.database.lock.held
        assert len(shop) + shop.sync().added == 5


def test_progress_ends_at_the_number_of_files(tmp_path, photos, grid):
    seen = []
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        shop.sync(progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (5, 5)
    assert [step.done for step in seen] == sorted(step.done for step in seen)


def test_an_empty_folder_does_not_empty_the_catalogue_unless_it_is_meant(shop, photos):
    shutil.rmtree(photos)
    with pytest.raises(NotFoundError, match="is not there"):
        shop.sync()
    photos.mkdir()
    with pytest.raises(CatalogueError, match="unmounted"):
        shop.sync()
    assert len(shop) == 5
    assert shop.sync(allow_empty=True).removed == 5


def test_the_root_can_move_and_nothing_is_embedded_again(shop, photos, grid):
    embedded = grid.calls
    elsewhere = photos.with_name("elsewhere")
    photos.rename(elsewhere)
    shop.set_root(elsewhere)
    assert counts(shop.sync()) == {"unchanged": 5}
    assert grid.calls == embedded
    assert shop.files(shop.ids_of(["e.png"])) == [elsewhere / "e.png"]


def test_a_root_without_any_stored_picture_is_refused_unless_it_is_meant(shop, photos, picture):
    elsewhere = photos.with_name("elsewhere")
    picture(elsewhere / "holiday.png", 5)
    with pytest.raises(CatalogueError, match="None of the 5 pictures"):
        shop.set_root(elsewhere)
    assert shop.root == photos
    assert counts(shop.sync()) == {"unchanged": 5}
    shop.set_root(elsewhere, allow_empty=True)
    assert counts(shop.sync()) == {"added": 1, "removed": 5}


def test_a_stored_file_without_an_extension_that_may_not_be_opened_keeps_its_item(tmp_path, photos, grid):
    (photos / "e.png").rename(photos / "scan")
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        assert counts(shop.sync()) == {"added": 5}
        [before] = shop.ids_of(["scan"])
        shop.set_columns({"label": ["mug"]}, ids=[before])
    (photos / "scan").chmod(0)
    code = f"import lookalike, sys; print(lookalike.Catalogue.open({str(shop.folder)!r}).sync().to_dict())"
    done = subprocess.run([*_without_privileges(), sys.executable, "-c", code], capture_output=True, text=True)
    counted = ast.literal_eval(done.stdout)
    assert (counted["removed"], counted["unchanged"]) == (0, 4)
    assert [(each["path"], each["reason"]) for each in counted["failed"]] == [("scan", "permission")]
    (photos / "scan").chmod(0o600)
    with Catalogue.open(tmp_path / "shop.la", encoder=grid) as shop:
        assert counts(shop.sync()) == {"added": 1, "unchanged": 4}
        assert shop.ids_of(["scan"]).tolist() == [before]
        assert shop.column("label", np.array([before])) == ["mug"]


def _without_privileges():
    """Return what a command starts with, so that it may not open what its user may not."""
    if os.geteuid() != 0:
        return []
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
    if shutil.which("setpriv") is None or subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("this user may open every file, and setpriv cannot take that away")
    return drop


@pytest.mark.parametrize(
    "name",
    [b"-dash.png", b"new\nline.png", b'it\'s "quoted".png', "фото 写真 😀.png".encode(), b"\xff\xfe not utf-8.png"],
)
def test_any_path_survives(shop, photos, picture, name):
    path = os.fsdecode(name)
    try:
        picture(photos / path, 77)
    except OSError:
        pytest.skip("the file system does not take this name")
    assert counts(shop.sync()) == {"added": 1, "unchanged": 5}
    [number] = shop.ids_of([path])
    assert shop.paths(np.array([number])) == [path]
    assert os.fsencode(shop.search(int(number), k=1)[0][0].path) == name
    assert counts(shop.sync()) == {"unchanged": 6}


def test_a_catalogue_inside_its_own_folder_is_not_indexed(photos, grid, picture):
    with Catalogue.create(photos / "shop.la", root=photos, encoder=grid) as shop:
        picture(photos / "shop.la" / "derived" / "thumb.png", 5)
        (photos / "notes.txt").touch()
        done = shop.sync()
        assert (counts(done), done.skipped) == ({"added": 5}, {".txt": 1})


def test_two_encoders_lie_side_by_side_and_an_update_empties_the_other(tmp_path, photos, grid, other_grid, picture):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        shop.sync()
        shop.add_encoder(other_grid)
    with Catalogue.open(tmp_path / "shop.la", encoder=other_grid) as shop:
        assert len(shop) == 0
        assert counts(shop.sync()) == {"added": 5}
        picture(photos / "e.png", 99)
        assert counts(shop.sync()) == {"updated": 1, "unchanged": 4}
    with Catalogue.open(tmp_path / "shop.la", encoder=grid) as shop:
        assert len(shop) == 4
        assert counts(shop.sync()) == {"added": 1, "unchanged": 4}


def test_a_move_seen_first_by_another_encoder_keeps_id_columns_and_both_vectors(tmp_path, photos, grid, other_grid):
    with Catalogue.create(tmp_path / "shop.la", root=photos, encoder=grid) as shop:
        shop.sync()
        shop.set_columns({"label": ["mug"]}, paths=["mug/a.png"])
        [before] = shop.ids_of(["mug/a.png"])
        shop.add_encoder(other_grid)
    (photos / "mug/a.png").rename(photos / "z.png")
    with Catalogue.open(tmp_path / "shop.la", encoder=other_grid) as shop:
        assert counts(shop.sync()) == {"added": 5}
        assert shop.ids_of(["z.png"]).tolist() == [before]
        assert shop.column("label", np.array([before])) == ["mug"]
    with Catalogue.open(tmp_path / "shop.la", encoder=grid) as shop:
        assert len(shop) == 5
        assert counts(shop.sync()) == {"unchanged": 5}


def test_ready_vectors_without_a_folder_cannot_be_synced(tmp_path, grid):
    with Catalogue.create(tmp_path / "shop.la", encoder=grid) as shop, pytest.raises(InputError, match="no folder"):
        shop.sync()


def test_items_brought_as_ready_vectors_stay_when_their_folder_is_synced(shop):
    shop.upsert(["not/a/file"], np.eye(8)[:1])
    assert counts(shop.sync()) == {"unchanged": 5}
    assert "not/a/file" in shop.paths(shop.ids())
