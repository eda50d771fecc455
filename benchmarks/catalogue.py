"""What a catalogue costs: start to answer, a sync without news, many small syncs, growth of disk and latency.

    python benchmarks/catalogue.py [--full]

- `start to answer`: a new process imports the package, opens a catalogue of n ready 1280-d vectors, encodes a picture
  with the built-in encoder and prints its ten neighbours; wall-clock of the whole process, median of five. The files
  are in the page cache, as they are for every process but the first after a boot.
- `no-op sync`: sync of a folder of small pictures in which nothing has changed.
- `200 syncs`: one changed file each; bytes on disk, resident memory and search latency before and after.

Quick: n = 20,000 items, 2,000 files. Full: 100,000 items, 10,000 files, the figures the project promises.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from lookalike.arrays import Rgb, Vectors
from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card

DIM = 1280
_BATCH = 10_000
START = """
import sys, time
from lookalike.catalogue.catalogue import Catalogue
with Catalogue.open(sys.argv[1], readonly=True, threads=1) as shop:
    for hit in shop.search(sys.argv[2], k=10)[0]:
        sys.stdout.write(f"{hit.score:.4f} {hit.path}\\n")
"""


class Row(NamedTuple):
    """One printed figure."""

    what: str
    value: float
    unit: str
    promise: str = ""


class Mean:
    """A quick encoder: the catalogue is measured, not the network."""

    card = Card(name="benchmark:mean", weights="1", dim=DIM, pooling="none")

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """Take the pixels as they come."""
        rows = np.array([np.resize(image.ravel(), DIM) for image in images], dtype=np.float32) + 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def draw(path: Path, seed: int) -> None:
    """Write a small picture that only this seed has."""
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="PNG", compress_level=1)


def disk(folder: Path) -> int:
    """Bytes of all files, each counted once however many names it has."""
    found = {(info.st_dev, info.st_ino): info.st_size for path in folder.rglob("*") if (info := path.stat())}
    return sum(found.values())


def start_to_answer(place: Path, items: int) -> list[Row]:
    """Fill a catalogue of the built-in encoder with ready vectors and time whole processes that search it."""
    folder, query = place / "large.la", place / "query.png"
    draw(query, 1)
    generator = np.random.default_rng(0)
    begun = time.process_time()
    with Catalogue.create(folder, encoder="builtin:effnet-lite0", threads=1) as shop:
        for start in range(0, items, _BATCH):
            rows = generator.standard_normal((min(_BATCH, items - start), DIM), dtype=np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            shop.upsert([f"{start + i}.jpg" for i in range(len(rows))], rows)
        if shop.view().made != shop.view().stamp:
            shop.refresh()
    filled = time.process_time() - begun
    runs = [_process(folder, query) for _ in range(6)][1:]
    size = disk(folder) / items
    return [
        Row(f"insert {items:,} × {DIM} and write the vector file", filled, "s of CPU"),
        Row(f"bytes on disk an item ({4 * DIM:,} are the vector itself)", size, "B"),
        Row(f"process start to answer over {items:,} × {DIM}", statistics.median(wall for wall, _ in runs), "s", "1.5"),
        Row("the same process, processor time (all threads)", statistics.median(cpu for _, cpu in runs), "s of CPU"),
    ]


def _process(folder: Path, query: Path) -> tuple[float, float]:
    """Wall-clock and processor seconds of one process."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", START, str(folder), str(query)], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def syncs(place: Path, files: int, times: int) -> list[Row]:
    """Time a sync without news, then many of one changed file each."""
    root = place / "photos"
    root.mkdir()
    for number in range(files):
        draw(root / f"{number}.png", number)
    time.sleep(2.1)  # files younger than the clock of a coarse file system are hashed again, once
    with Catalogue.create(place / "folder.la", root=root, encoder=Mean(), threads=1) as shop:
        begun = time.process_time()
        shop.sync()
        first = time.process_time() - begun
        quiet = statistics.median(_timed(shop.sync) for _ in range(5))
        before = disk(shop.folder), _resident(), _search(shop)
        changed = []
        for step in range(times):
            draw(root / f"{step % files}.png", 1_000_000 + step)
            changed.append(_timed(shop.sync))
        after = disk(shop.folder), _resident(), _search(shop)
        fifth = times // 5
    return [
        Row(f"first sync of {files:,} files (quick encoder)", first, "s of CPU"),
        Row(f"no-op sync of {files:,} files", quiet, "s", "3"),
        Row(f"sync of one changed file among {files:,}, first fifth", statistics.median(changed[:fifth]), "s"),
        Row(f"sync of one changed file among {files:,}, last fifth", statistics.median(changed[-fifth:]), "s"),
        Row(f"disk after {times} such syncs, relative", after[0] / before[0], "×", "bounded"),
        Row(f"resident memory after {times} such syncs, relative", after[1] / before[1], "×", "bounded"),
        Row(f"search latency after {times} such syncs, relative", after[2] / before[2], "×", "bounded"),
    ]


def _timed(call: object) -> float:
    begun = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - begun


def _resident() -> float:
    """Resident memory now where the system says so, else its peak."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return float(statm.read_text().split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _search(shop: Catalogue) -> float:
    query = np.ones((1, DIM), dtype=np.float32)
    shop.neighbours(query, 10)
    seconds = []
    for _ in range(15):
        begun = time.process_time()
        shop.neighbours(query, 10)
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds)


def run(full: bool = False) -> list[Row]:
    """Measure everything; about a minute in full on two cores."""
    with tempfile.TemporaryDirectory(prefix="lookalike-bench-") as place:
        rows = start_to_answer(Path(place), 100_000 if full else 20_000)
        return rows + syncs(Path(place), 10_000 if full else 2_000, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a catalogue costs.")
    parser.add_argument("--full", action="store_true")
    for row in run(full=parser.parse_args().full):
        promise = f"  (promised: under {row.promise} {row.unit})" if row.promise[:1].isdigit() else ""
        print(f"{row.what:75} {row.value:10,.3f} {row.unit}{promise}")


if __name__ == "__main__":
    main()
