"""Re-ranking: CPU time and memory, ours and the peers', each job alone in its own process on one thread.

    python benchmarks/rerank.py            # small sizes, about a minute
    python benchmarks/rerank.py --full     # 19,281 x 512, 93,820 x 512 and 200,000 x 128 as well, several minutes

CPU time is `time.process_time`; memory is the growth of the peak resident set over what stood before the call (vectors
and imports). "pool" rows are medians a query, the candidates' vectors read from the store included, ours and pyvisim's
in turns of 20 queries in one process. "classic" is the dense algorithm of equations 1 to 12 of Zhong et al. with full
(n, n) matrices, written here. Compilation is measured apart, with an empty cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

QUERIES_SHARE = 3_368 / 19_281  # as in Market-1501 with 15,913 gallery pictures
GROWTH = ((2_000, 512), (4_000, 512), (8_000, 512))
GROWTH_FULL = ((19_281, 512), (93_820, 512), (200_000, 128))
CLASSIC = 2_000
CLASSIC_FULL = 8_000


@dataclass(frozen=True)
class Row:
    """One figure; `value` is what both sides must agree on, explained by `note`."""

    job: str
    who: str
    cpu_s: float | None
    extra_mb: float | None = None
    value: float | None = None
    note: str = ""


def clustered(n: int, dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of about 13 pictures an identity, as in re-identification sets, and the identities."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(max(1, n // 13), size=n)
    centres = rng.standard_normal((labels.max() + 1, dim), dtype=np.float32)
    vectors = centres[labels] + np.float32(1.7) * rng.standard_normal((n, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, labels


def pool(size: int) -> list[Row]:
    """One query's candidates, k1 = 20, k2 = 6, d = 512."""
    from lookalike.catalogue.memory import MemoryStore
    from lookalike.rank.kreciprocal import KReciprocalReranker

    vectors, _ = clustered(2_000, 512)
    queries = vectors[:20] + np.float32(0.02) * np.random.default_rng(1).standard_normal((20, 512), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{row:04d}.png") for row in range(len(vectors))]
        store = MemoryStore(paths, vectors, metric="l2")
        hits = [list(row) for row in store.search(list(queries), k=size)]
        ours = KReciprocalReranker(store)
        contenders: dict[str, Callable[[int], list[float]]] = {
            "lookalike": lambda query: [candidate.score for candidate in ours.rerank(hits[query], size)]
        }
        note = ""
        try:
            contenders["pyvisim 1.0.0"] = peer(paths, vectors, hits, size)
        except ImportError as error:
            note = f"pyvisim not installed: {error.name}"
        times: dict[str, list[float]] = {name: [] for name in contenders}
        answers: dict[str, list[list[float]]] = {name: [] for name in contenders}
        for _ in range(3):
            for name, work in contenders.items():
                work(0)  # the turn's first call warms the caches the other one left cold
                for query in range(len(queries)):
                    start = time.process_time()
                    answer = work(query)
                    times[name].append(time.process_time() - start)
                    answers[name].append(answer)
        reference = np.array(answers["lookalike"])
        apart = max(float(np.abs(np.array(each) - reference).max()) for each in answers.values())
    medians = {name: statistics.median(values) for name, values in times.items()}
    peers = [value for name, value in medians.items() if name != "lookalike"]
    ratio = f"1/{peers[0] / medians['lookalike']:.0f} of the peer's time" if peers else note
    return [
        Row(f"pool of {size}", name, value, value=apart, note=ratio if name == "lookalike" else "largest difference")
        for name, value in medians.items()
    ]


def peer(paths: list[str], vectors: np.ndarray, hits: list[list], size: int) -> Callable[[int], list[float]]:
    """Build pyvisim's store over the same vectors through its public constructor: tiny pictures, ready embeddings."""
    from PIL import Image
    from pyvisim.retrieval.data import Candidate
    from pyvisim.retrieval.image_store import InMemoryImageEmbeddingStore
    from pyvisim.retrieval.reranking import KReciprocalReranker

    for path in paths:
        Image.new("RGB", (2, 2)).save(path)

    class Ready:
        batch_size = -1

        def embed(self, images: object, **_: object) -> np.ndarray:
            return vectors

    store = InMemoryImageEmbeddingStore(paths, Ready(), space="l2", lazy_build=False)
    reranker = KReciprocalReranker(store)
    pools = [[Candidate(candidate.path, candidate.score) for candidate in row] for row in hits]
    return lambda query: [candidate.score for candidate in reranker.rerank(pools[query], size)]


def compilation() -> list[Row]:
    """The first call with an empty cache, and with the cache it left; in processes of their own."""
    call = (
        "import time, numpy as np; from lookalike.rank.kreciprocal import pool_distances as f; "
        "d = np.abs(np.subtract.outer(np.arange(30.), np.arange(30.))); t = time.process_time(); f(d); "
        "print(time.process_time() - t)"
    )
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for note in ("empty cache, once per installation", "from the cache"):
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            done = subprocess.run(
                [sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=True
            )
            rows.append(Row("first call, numba's import included", "lookalike", float(done.stdout), note=note))
    return rows


def gallery(n: int, dim: int) -> list[Row]:
    """Queries and gallery together, top 100 of each query."""
    from lookalike.rank.kreciprocal_gallery import rerank_gallery

    vectors, labels = clustered(n, dim)
    q = round(n * QUERIES_SHARE)
    rerank_gallery(vectors[:40], vectors[40:400], 100)
    with measured() as cost:
        found = rerank_gallery(vectors[:q], vectors[q:], 100)
    first = found.ids[found.offsets[:-1]]
    hit = float((labels[q:][first] == labels[:q]).mean())
    return [Row(f"gallery {n:,} x {dim}", "lookalike", *cost, value=hit, note="recall@1")]


def against_classic(n: int, dim: int = 512) -> list[Row]:
    """The full matrix both ways, and the largest difference."""
    from lookalike.rank.kreciprocal_gallery import gallery_distances, rerank_gallery

    vectors, _ = clustered(n, dim)
    q = round(n * QUERIES_SHARE)
    rerank_gallery(vectors[:40], vectors[40:400], 100)
    with tempfile.TemporaryDirectory() as folder:
        with measured() as ours:
            final = gallery_distances(vectors[:q], vectors[q:], Path(folder) / "final.npy")
        with measured() as theirs:
            dense = classic(vectors, q, k1=20, k2=6, lambda_value=0.3)
        apart = float(np.abs(dense - final).max())
        del final
    name = f"full matrix {n:,} x {dim}"
    return [
        Row(name, "lookalike", *ours, value=apart, note="largest difference"),
        Row(name, "classic dense", *theirs, value=apart, note="largest difference"),
    ]


def classic(vectors: np.ndarray, queries: int, *, k1: int, k2: int, lambda_value: float) -> np.ndarray:
    """Equations 1 to 12 with (n, n) arrays, one row after another; `≥` in Eq. 4."""
    n = len(vectors)
    distances = np.maximum(2 - 2 * vectors @ vectors.T, 0)
    np.fill_diagonal(distances, 0)
    distances /= distances.max(axis=1, keepdims=True)
    shown = distances.copy()
    np.fill_diagonal(shown, -1)
    ranking = np.argsort(shown, axis=1, kind="stable").astype(np.int32)
    half_count = round(k1 / 2) + 1

    def reciprocal(p: int, count: int) -> np.ndarray:
        near = ranking[p, :count]
        return near[(ranking[near, :count] == p).any(axis=1)]

    features = np.zeros((n, n), np.float32)
    for p in range(n):
        own = reciprocal(p, k1 + 1)
        members = own
        for r in own:
            half = reciprocal(int(r), half_count)
            if 3 * len(np.intersect1d(half, own)) >= 2 * len(half):
                members = np.append(members, half)
        members = np.unique(members)
        weights = np.exp(-distances[p, members])
        features[p, members] = weights / weights.sum()
    features = np.stack([features[ranking[p, :k2]].mean(axis=0) for p in range(n)])
    holders = [np.flatnonzero(features[:, column]) for column in range(n)]
    final = np.empty((queries, n - queries), np.float32)
    for p in range(queries):
        shared = np.zeros(n, np.float32)
        for column in np.flatnonzero(features[p]):
            rows = holders[column]
            shared[rows] += np.minimum(features[p, column], features[rows, column])
        jaccard = 1 - shared / (2 - shared)
        final[p] = ((1 - lambda_value) * jaccard + lambda_value * distances[p])[queries:]
    return final


def online(n: int, dim: int = 512) -> list[Row]:
    """A gallery graph: built once, grown by 1 %, asked by one query at a time."""
    from lookalike.rank.graph import GalleryGraph

    vectors, _ = clustered(n + n // 100, dim)
    queries = vectors[:30] + np.float32(0.02) * np.random.default_rng(1).standard_normal((30, dim), dtype=np.float32)
    GalleryGraph.build(vectors[:300]).add(vectors[300:320]).rerank(queries[:1], 10)
    with measured() as built:
        graph = GalleryGraph.build(vectors[:n])
        graph.rerank(queries[:1], 10)
    times = []
    for query in queries:
        start = time.process_time()
        graph.rerank(query[None], 100)
        times.append(time.process_time() - start)
    with measured() as grown:
        graph.add(vectors[n:]).rerank(queries[:1], 10)
    name = f"graph {n:,} x {dim}"
    return [
        Row(f"{name}: build", "lookalike", *built),
        Row(f"{name}: add 1 %", "lookalike", *grown),
        Row(f"{name}: one query, whole gallery", "lookalike", statistics.median(times)),
    ]


def messages(n: int, dim: int = 512) -> list[Row]:
    """Graph neural re-ranking of queries and gallery together."""
    from lookalike.rank.message_passing import rerank_gallery_messages

    vectors, labels = clustered(n, dim)
    q = round(n * QUERIES_SHARE)
    rerank_gallery_messages(vectors[:40], vectors[40:400], 100)
    with measured() as cost:
        found = rerank_gallery_messages(vectors[:q], vectors[q:], 100)
    hit = float((labels[q:][found.ids[found.offsets[:-1]]] == labels[:q]).mean())
    return [Row(f"message passing {n:,} x {dim}", "lookalike", *cost, value=hit, note="recall@1")]


def geometry() -> list[Row]:
    """Pairs of pictures of 800 keypoints each, features in the cache on disk."""
    try:
        from PIL import Image

        from lookalike.rank.geometric import GeometricVerifier, match

        rng = np.random.default_rng(0)
        times = []
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for row in range(12):
                coarse = rng.integers(0, 255, (40, 40, 3)).repeat(20, 0).repeat(20, 1)
                paths.append(str(Path(folder) / f"{row}.png"))
                noisy = np.clip(coarse + rng.normal(0, 12, coarse.shape), 0, 255).astype(np.uint8)
                Image.fromarray(noisy).save(paths[-1])
            verifier = GeometricVerifier(cache=folder, held=1)  # every candidate's features are read from disk
            for path in paths:
                verifier.features.get(path)
            for query in paths:
                for other in paths:
                    features = verifier.features.get(query)
                    start = time.process_time()
                    match(features, verifier.features.get(other))
                    times.append(time.process_time() - start)
    except ImportError as error:
        return [Row("geometric pair", "lookalike", None, note=f"{error}")]
    return [
        Row("geometric pair, 800 x 800 keypoints", "lookalike", statistics.median(times), note="features from disk")
    ]


@contextlib.contextmanager
def measured() -> Iterator[list[float]]:
    """Give a list that holds CPU seconds and extra megabytes once the block ends."""
    before = resident("VmRSS")
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak reached before
    start = time.process_time()
    cost: list[float] = []
    yield cost
    cost.extend([time.process_time() - start, (resident("VmHWM") - before) / 1024])


def resident(field: str) -> int:
    """Return kilobytes of memory this process holds (VmRSS) or held at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field + ":"))


JOBS: dict[str, Callable[[], list[Row]]] = {
    "compilation": compilation,
    "pool 200": lambda: pool(200),
    "pool 500": lambda: pool(500),
    "classic": lambda: against_classic(CLASSIC),
    **{f"gallery {n} {dim}": lambda n=n, dim=dim: gallery(n, dim) for n, dim in GROWTH},
    "graph": lambda: online(8_000),
    "messages": lambda: messages(4_000),
    "geometry": geometry,
}
FULL_JOBS: dict[str, Callable[[], list[Row]]] = {
    "classic full": lambda: against_classic(CLASSIC_FULL),
    **{f"gallery {n} {dim}": lambda n=n, dim=dim: gallery(n, dim) for n, dim in GROWTH_FULL},
    "graph full": lambda: online(15_913),
    "messages full": lambda: messages(19_281),
}


def run(full: bool = False) -> list[Row]:
    """Measure every job in a process of its own, one after the other."""
    rows = []
    for name in [*JOBS, *(FULL_JOBS if full else [])]:
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        done = subprocess.run(
            [sys.executable, __file__, "--job", name],
            env=os.environ | threads,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            rows.append(Row(name, "lookalike", None, note=done.stderr.strip().splitlines()[-1]))
        else:
            rows.extend(Row(**row) for row in json.loads(done.stdout.splitlines()[-1]))
    return rows


def main() -> None:
    if "--job" in sys.argv:
        work = (JOBS | FULL_JOBS)[sys.argv[sys.argv.index("--job") + 1]]
        print(json.dumps([asdict(row) for row in work()]))
        return
    print(f"{'job':<44} {'who':<14} {'CPU ms':>11} {'extra MB':>9} {'value':>10}")
    for row in run("--full" in sys.argv):
        cpu = "-" if row.cpu_s is None else f"{1e3 * row.cpu_s:,.2f}"
        extra = "-" if row.extra_mb is None else f"{row.extra_mb:,.0f}"
        value = "-" if row.value is None else f"{row.value:.3g}"
        print(f"{row.job:<44} {row.who:<14} {cpu:>11} {extra:>9} {value:>10} {row.note}".rstrip())


if __name__ == "__main__":
    main()
