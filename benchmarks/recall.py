"""Time and memory of the ranking, ours and pytorch-metric-learning's, each job alone in its own process.

    python benchmarks/recall.py            # a tenth of the size, about a minute
    python benchmarks/recall.py --full     # 60,502 x 60,502 x 128

CPU time is that of one thread (`time.process_time`), memory the growth of the peak resident set over what stood
before the call (vectors and imports). Peers (pytorch-metric-learning with faiss, open-metric-learning, torchmetrics,
ranx) are measured where they are installed; else their rows say so.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

FULL, SMALL = 60_502, 6_000
DIM = 128


@dataclass(frozen=True)
class Row:
    """One measured job; `value` is a number both sides must agree on."""

    job: str
    who: str
    cpu_s: float | None
    extra_mb: float | None
    value: float | None
    note: str = ""


def clustered(n: int, dim: int, sizes: tuple[int, int] = (2, 12), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors around class centres, class sizes uniform within `sizes`, rows shuffled."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(sizes[0], sizes[1] + 1, n)
    labels = np.repeat(np.arange(n), counts)[:n]
    centres = rng.standard_normal((int(labels[-1]) + 1, dim), dtype=np.float32)
    vectors = centres[labels] + np.float32(1.6) * rng.standard_normal((n, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = rng.permutation(n)
    return np.ascontiguousarray(vectors[order]), labels[order]


def ours_recall(n: int) -> tuple[Callable[[], object], Callable[[object], float]]:
    from lookalike.evaluate.recall import recall_at_k

    vectors, labels = clustered(n, DIM)
    ids = np.arange(n)
    return (
        lambda: recall_at_k(vectors, vectors, labels, labels, (1, 5, 10), ids, ids, threads=1),
        lambda scores: scores[1],
    )


EVERY = [
    *("recall@1", "recall@5", "recall@10", "mrr", "precision@10", "coverage@10", "r-precision", "map@r", "map"),
    *("map@10/all", "map@10/min", "map@10/hits", "ndcg@10", "minp"),
]


def ours_every(n: int) -> tuple[Callable[[], object], Callable[[object], float]]:
    from lookalike.evaluate.metrics import precision_recall_curve, summarise
    from lookalike.evaluate.ranks import relevant_ranks
    from lookalike.evaluate.relevance import SameLabel, build_truth

    vectors, labels = clustered(n, DIM)
    ids = np.arange(n)

    def work() -> dict[str, float]:
        truth = build_truth(SameLabel(labels, labels), num_queries=n, num_gallery=n, query_ids=ids, gallery_ids=ids)
        ranks = relevant_ranks(vectors, vectors, truth, threads=1)
        precision_recall_curve(ranks)
        return summarise(ranks, EVERY)

    return work, lambda scores: scores["map"]


def ours_market(n: int) -> tuple[Callable[[], object], Callable[[object], float]]:
    """Market-1501 in size: 3,368 queries, 15,913 gallery pictures, 750 identities, 6 cameras, some distractors."""
    from lookalike.evaluate.metrics import summarise
    from lookalike.evaluate.ranks import relevant_ranks
    from lookalike.evaluate.relevance import CameraRule, SameLabel, build_truth

    rng = np.random.default_rng(1)
    num_q, num_g, dim = (3_368, 15_913, 512) if n == FULL else (337, 1_592, 512)
    people = 750 if n == FULL else 75
    centres = rng.standard_normal((people, dim), dtype=np.float32)
    who_q, who_g = rng.integers(0, people, num_q), rng.integers(-people // 6, people, num_g)
    queries = centres[who_q] + 2 * rng.standard_normal((num_q, dim), dtype=np.float32)
    gallery = centres[np.maximum(who_g, 0)] * (who_g >= 0)[:, None] + 2 * rng.standard_normal(
        (num_g, dim), dtype=np.float32
    )
    seen_q, seen_g = rng.integers(0, 6, num_q), rng.integers(0, 6, num_g)
    identity_g = np.where(who_g < 0, -1, who_g)

    def work() -> dict[str, float]:
        truth = build_truth(
            SameLabel(who_q, identity_g, name="identity"),
            num_queries=num_q,
            num_gallery=num_g,
            camera=CameraRule(seen_q, seen_g),
        )
        return summarise(relevant_ranks(queries, gallery, truth, threads=1), ["map", "cmc@1", "cmc@10", "minp"])

    return work, lambda scores: scores["map"]


def peer(n: int, k: str | None, metric: str) -> tuple[Callable[[], object], Callable[[object], float]]:
    import faiss
    import torch
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    from pytorch_metric_learning.utils.inference import FaissKNN

    faiss.omp_set_num_threads(1)
    torch.set_num_threads(1)
    vectors, labels = clustered(n, DIM)
    calculator = AccuracyCalculator(
        include=("precision_at_1",) if k else ("precision_at_1", "mean_average_precision"),
        k=k,
        device=torch.device("cpu"),
        knn_func=FaissKNN(index_init_fn=faiss.IndexFlatIP),
    )
    tensors = torch.from_numpy(vectors), torch.from_numpy(labels)
    return lambda: calculator.get_accuracy(*tensors), lambda scores: scores[metric]


def open_metric_learning(n: int) -> tuple[Callable[[], object], Callable[[object], float]]:
    import torch
    from oml.functional.knn import batched_knn
    from oml.metrics.embeddings import calc_retrieval_metrics_rr
    from oml.retrieval.retrieval_results import RetrievalResults

    torch.set_num_threads(1)
    vectors, labels = (torch.from_numpy(array) for array in clustered(n, DIM))
    everyone = torch.arange(n)

    def work() -> dict[str, dict[int, object]]:
        found = batched_knn(vectors, ids_query=everyone, ids_gallery=everyone, top_n=10, labels_gt=labels)
        return calc_retrieval_metrics_rr(RetrievalResults(*found), cmc_top_k=(1, 5, 10))

    return work, lambda scores: float(scores["cmc"][1])


def torchmetrics(n: int) -> tuple[Callable[[], object], Callable[[object], float]]:
    import torch
    from torchmetrics.retrieval import RetrievalMAP

    torch.set_num_threads(1)
    vectors, labels = (torch.from_numpy(array) for array in clustered(n, DIM))

    def work() -> float:
        metric = RetrievalMAP(empty_target_action="skip")
        others = ~torch.eye(n, dtype=torch.bool)
        scores = (vectors @ vectors.T)[others] + 1  # scores below zero would be dropped
        metric.update(scores, (labels[:, None] == labels)[others], indexes=torch.arange(n).repeat_interleave(n - 1))
        return float(metric.compute())

    return work, lambda score: score


def ranx(n: int) -> tuple[Callable[[], object], Callable[[object], float]]:
    import numba
    import ranx as peer_ranx

    numba.set_num_threads(1)
    vectors, labels = clustered(n, DIM)
    names = [str(item) for item in range(n)]

    def work() -> float:
        qrels, run = {}, {}
        for query, row in enumerate(vectors @ vectors.T):
            relevant = {names[item]: 1 for item in np.flatnonzero(labels == labels[query]) if item != query}
            if relevant:
                qrels[names[query]] = relevant
                run[names[query]] = {names[item]: score for item, score in enumerate(row.tolist()) if item != query}
        return peer_ranx.evaluate(peer_ranx.Qrels(qrels), peer_ranx.Run(run), "map")

    return work, lambda score: float(score)


JOBS: Mapping[str, Callable[[int], tuple[Callable[[], object], Callable[[object], float]]]] = {
    "recall@1,5,10 / lookalike": ours_recall,
    "recall@1,5,10 / pytorch-metric-learning": lambda n: peer(n, "max_bin_count", "precision_at_1"),
    "every metric / lookalike": ours_every,
    "every metric, 10,000 / lookalike": lambda n: ours_every(10_000 if n == FULL else 2_000),
    "every metric, 10,000 / pytorch-metric-learning": lambda n: peer(
        10_000 if n == FULL else 2_000, None, "mean_average_precision"
    ),
    "recall@1,5,10, 10,000 / lookalike": lambda n: ours_recall(10_000 if n == FULL else 2_000),
    "recall@1,5,10, 10,000 / open-metric-learning": lambda n: open_metric_learning(10_000 if n == FULL else 2_000),
    "every metric, 2,000 / lookalike": lambda n: ours_every(2_000 if n == FULL else 500),
    "mAP alone, 2,000 / torchmetrics": lambda n: torchmetrics(2_000 if n == FULL else 500),
    "mAP alone, 2,000 / ranx": lambda n: ranx(2_000 if n == FULL else 500),
    "Market-1501 protocol / lookalike": ours_market,
}


def measure(name: str, n: int) -> Row:
    """Run one job in this process."""
    job, who = name.split(" / ")
    try:
        warm, _ = JOBS[name](600)  # kernels are compiled, or read from their cache, before the clock starts
        warm()
        work, value = JOBS[name](n)
    except ImportError as error:
        return Row(job, who, None, None, None, f"not installed: {error.name}")
    before = resident("VmRSS")
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak reached while the vectors were made
    start = time.process_time()
    result = work()
    cpu = time.process_time() - start
    return Row(job, who, cpu, (resident("VmHWM") - before) / 1024, value(result))


def resident(field: str) -> int:
    """Return kilobytes of memory this process holds (VmRSS) or held at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field + ":"))


def run(full: bool = False) -> list[Row]:
    """Measure every job in a process of its own, one after the other."""
    rows = []
    for name in JOBS:
        command = [sys.executable, __file__, "--job", name, *(["--full"] if full else [])]
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=False)
        if done.returncode:
            rows.append(Row(*name.split(" / "), None, None, None, done.stderr.strip().splitlines()[-1]))
        else:
            rows.append(Row(**json.loads(done.stdout.splitlines()[-1])))
    return rows


def main() -> None:
    full = "--full" in sys.argv
    if "--job" in sys.argv:
        print(json.dumps(asdict(measure(sys.argv[sys.argv.index("--job") + 1], FULL if full else SMALL))))
        return
    print(f"{'job':<28} {'who':<26} {'CPU s':>8} {'extra MB':>9} {'value':>9}")
    for row in run(full):
        numbers = [
            f"{n:.{d}f}" if n is not None else "-" for n, d in ((row.cpu_s, 2), (row.extra_mb, 0), (row.value, 5))
        ]
        print(f"{row.job:<28} {row.who:<26} {numbers[0]:>8} {numbers[1]:>9} {numbers[2]:>9} {row.note}".rstrip())


if __name__ == "__main__":
    main()
