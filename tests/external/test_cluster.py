"""The same sync on two worker processes: row for row what one process does, whatever dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.sources import files_of, folder_at
from lookalike.catalogue.work import OnCluster
from lookalike.embed.cluster import Cluster, ClusterError
from lookalike.errors import ImageError, InputError, NotFoundError

from .conftest import needs


def draw(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="PNG")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needs("distributed", "fsspec")
    with Cluster.connect(workers=2) as found:
        yield found


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """150 pictures, three of them twice, and two files that are none."""
    root = tmp_path / "photos"
    for number in range(150):
        draw(root / f"{number % 7}" / f"ü{number:03}.png", number if number not in (20, 21, 22) else number - 10)
    (root / "empty.png").write_bytes(b"")
    (root / "cut.png").write_bytes((root / "0" / "ü000.png").read_bytes()[:300])
    return root


def rows(shop: Catalogue) -> dict[str, tuple[object, ...]]:
    return {
        item.path: (item.file.content, item.file.size, item.file.width, shop.vectors(np.array([item.id])).tobytes())
        for item in shop.items()
    }


def plain(tmp_path: Path, photos: Path) -> Catalogue:
    shop = Catalogue.create(tmp_path / "plain.la", root=photos)
    shop.sync()
    return shop


def test_two_workers_store_row_for_row_what_one_process_stores(tmp_path, photos, cluster):
    expected = plain(tmp_path, photos)
    with Catalogue.create(tmp_path / "spread.la", root=photos) as shop:
        result = shop.sync(work=OnCluster(cluster, lambda: shop.encoder))
        assert (result.added, len(result.failed)) == (150, 2)
        assert rows(shop) == rows(expected)
        assert shop.ids().tolist() == expected.ids().tolist()
        assert shop.paths(shop.ids()) == expected.paths(expected.ids())
        assert shop.failures() == expected.failures()
    expected.close()


def test_a_later_sync_finds_the_same_changes(tmp_path, photos, cluster):
    expected = plain(tmp_path, photos)
    with Catalogue.create(tmp_path / "spread.la", root=photos) as shop:
        work = OnCluster(cluster, lambda: shop.encoder)
        shop.sync(work=work)
        draw(photos / "new.png", 900)
        draw(photos / "0" / "ü000.png", 901)
        (photos / "1" / "ü001.png").rename(photos / "moved.png")
        (photos / "2" / "ü002.png").unlink()
        (photos / "more.png").write_bytes(b"no picture")
        mine, theirs = shop.sync(work=work), expected.sync()
        assert mine.to_dict() | {"revision": 0} == theirs.to_dict() | {"revision": 0}
        assert (mine.added, mine.updated, mine.moved, mine.removed) == (1, 1, 1, 1)
        assert rows(shop) == rows(expected)
        again = shop.sync(work=work)
        assert (again.unchanged, again.revision) == (150, mine.revision)
    expected.close()


def test_strict_stores_nothing_on_a_cluster_either(tmp_path, photos, cluster):
    with Catalogue.create(tmp_path / "spread.la", root=photos) as shop:
        with pytest.raises(ImageError):
            shop.sync(strict=True, work=OnCluster(cluster, lambda: shop.encoder))
        assert len(shop) == 0


def test_pictures_behind_uris_are_those_of_the_folder(tmp_path, photos, cluster):
    expected = plain(tmp_path, photos)
    with Catalogue.create(tmp_path / "uri.la") as shop:
        source, work = folder_at(f"file://{photos}"), OnCluster(cluster, lambda: shop.encoder)
        result = shop.sync(source=source, work=work)
        assert (result.added, len(result.failed)) == (150, 2)
        assert rows(shop) == rows(expected)
        assert shop.sync(source=source, work=work).unchanged == 150
        draw(photos / "0" / "ü000.png", 901)
        (photos / "2" / "ü002.png").unlink()
        changed = shop.sync(source=source)
        assert (changed.updated, changed.removed) == (1, 1)
    expected.close()


def test_an_object_store_in_memory_is_indexed_and_followed(tmp_path, photos):
    needs("fsspec")
    import fsspec

    system = fsspec.filesystem("memory")
    for path in sorted(photos.rglob("*.png"))[:12]:
        system.pipe_file(f"/bucket/pics/{path.name}", path.read_bytes())
    system.pipe_file("/bucket/pics/notes.txt", b"notes")
    with Catalogue.create(tmp_path / "uri.la") as shop:
        source = folder_at("memory://bucket/pics")
        result = shop.sync(source=source)
        assert (result.added + len(result.failed), result.skipped) == (12, {".txt": 1})
        system.rm("/bucket/pics/ü000.png")
        assert shop.sync(source=source).removed == 1
    with pytest.raises(NotFoundError):
        folder_at("memory://bucket/nothing")()


def test_a_manifest_names_paths_and_uris_side_by_side(tmp_path, photos):
    needs("fsspec")
    names = ["a.png", "b.png", "gone.png"]
    paths = [str(photos / "0" / "ü000.png"), f"file://{photos}/1/ü001.png", str(photos / "gone.png")]
    with Catalogue.create(tmp_path / "listed.la") as shop:
        result = shop.sync(source=files_of(str(photos), names, paths))
        assert result.added == 2
        assert [(failure.path, failure.reason) for failure in result.failed] == [("gone.png", "missing")]
        assert shop.paths(shop.ids()) == ["a.png", "b.png"]


def test_workers_of_this_machine_keep_freed_pages_for_the_next_picture(cluster):
    found = cluster.client.run(os.environ.get, "MALLOC_TRIM_THRESHOLD_")
    assert list(found.values()) == [None, None]


@pytest.mark.slow
def test_a_killed_worker_costs_time_and_nothing_else(tmp_path, photos):
    needs("distributed")
    expected = plain(tmp_path, photos)
    for number in range(150, 420):
        draw(photos / "more" / f"{number}.png", number)
    expected.sync()
    with Cluster.connect(workers=2) as cluster, Catalogue.create(tmp_path / "spread.la", root=photos) as shop:
        doomed = list(cluster.client.run(os.getpid).values())[0]  # noqa: RUF015
        killer = threading.Timer(0.8, os.kill, (doomed, signal.SIGKILL))
        killer.start()
        result = shop.sync(work=OnCluster(cluster, lambda: shop.encoder))
        killer.join()
        assert result.added == 420
        assert rows(shop) == rows(expected)
    expected.close()


DRIVER = """
import sys
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.work import OnCluster
from lookalike.catalogue import sync, work
from lookalike.embed.cluster import Cluster
if __name__ == "__main__":
    sync.COMMIT_ROWS = work.BLOCK = 16
    with Cluster.connect(workers=2) as cluster, Catalogue.open(sys.argv[1]) as shop:
        sys.stdout.write(" ".join(map(str, cluster.client.run(__import__("os").getpid).values())) + "\\n")
        def report(step):
            sys.stdout.write(f"{len(shop)}\\n"); sys.stdout.flush()
        shop.sync(work=OnCluster(cluster, lambda: shop.encoder), progress=report)
"""


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_driver_loses_nothing_committed_and_leaves_no_worker_behind(tmp_path, photos, cluster):
    expected = plain(tmp_path, photos)
    Catalogue.create(tmp_path / "spread.la", root=photos).close()
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    process = subprocess.Popen([sys.executable, str(script), str(tmp_path / "spread.la")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    for line in process.stdout:
        if int(line) > 30:
            break
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    process.stdout.close()
    end = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not any(map(alive, workers))
    with Catalogue.open(tmp_path / "spread.la") as shop:
        there = len(shop)
        assert 30 < there <= 150
        result = shop.sync(work=OnCluster(cluster, lambda: shop.encoder))
        assert result.added == 150 - there
        assert result.added + result.unchanged == 150
        assert rows(shop) == rows(expected)
    expected.close()


def test_a_scheduler_that_is_not_there_is_said_so(monkeypatch):
    needs("distributed")
    from lookalike.embed import cluster as module

    monkeypatch.setattr(module, "CONNECT_S", 1)
    with pytest.raises(ClusterError, match="No Dask scheduler answers"):
        Cluster.connect("tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="no place to work on"):
        Cluster.parse("spark:somewhere")


def test_a_function_without_a_name_travels_to_the_workers(tmp_path, photos, cluster):
    mean = lambda images: [image.mean(axis=(0, 1)) + 1 for image in images]  # noqa: E731
    with Catalogue.create(tmp_path / "spread.la", root=photos, encoder=mean) as shop:
        assert shop.sync(work=OnCluster(cluster, lambda: shop.encoder)).added == 150
    with (
        Catalogue.create(tmp_path / "plain.la", root=photos, encoder=mean) as other,
        Catalogue.open(tmp_path / "spread.la", encoder=mean) as shop,
    ):
        other.sync()
        assert rows(other) == rows(shop)
