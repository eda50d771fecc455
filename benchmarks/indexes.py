"""What an index costs: tune's choice beside its peers, our contract beside the raw FAISS call, and growth with n.

    python benchmarks/indexes.py            # 20,000 × 384, two to three minutes
    python benchmarks/indexes.py --full     # 100,000 × 384, and growth from 10,000 to 1,000,000 × 128
    ... [--autofaiss] [--json FILE]

Vectors are clustered and rotated (`lookalike.index.generated`); queries are held out. Latency is the median of single
queries on one thread, taken in turns so that every contender meets the same noise; CPU is processor time of one thread.
usearch is measured where it is installed, else its row says so. autofaiss's choice is the factory string that
`get_optimal_index_keys_v2` of autofaiss 2.18 names for these sizes (at 20 GB, and at the bytes of our own choice); its
packages do not install beside ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import faiss
import numpy as np
from figure import EXACT, Figure, add_option, write

from lookalike.index.ann import AnnIndex, build
from lookalike.index.chart import as_text
from lookalike.index.generated import clustered
from lookalike.index.kinds import settings_dict, settings_for
from lookalike.index.memory import predict
from lookalike.index.structure import effort_of
from lookalike.index.tune import tune

TARGET, K, QUERIES = 0.95, 10, 400
IP = faiss.METRIC_INNER_PRODUCT
# (bytes given to autofaiss, what it names): no limit to speak of, and about the bytes of an index of one-byte vectors
AUTOFAISS = {20_000: "OPQ256_512,IVF512,PQ256x8", 100_000: "OPQ256_512,IVF1024_HNSW32,PQ256x8"}
BEAMS = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512, 1024)


@dataclass(frozen=True)
class Row:
    """One measured line; a value that was not measured is None."""

    job: str
    who: str
    overlap: float | None = None
    p50_ms: float | None = None
    bytes: int | None = None
    build_cpu_s: float | None = None
    ratio: float | None = None
    note: str = ""
    on_pareto: bool | None = None
    """Tune's choice alone: no setting it measured beats it in overlap, latency and bytes at once."""
    peak_gb: float | None = None
    """Growth alone: peak resident memory of its process."""
    raw_ms: float | None = None
    """Overhead alone: the raw FAISS call."""


@dataclass
class Contender:
    """One index, how to ask it, and what it cost."""

    who: str
    search: Callable[[np.ndarray, int], np.ndarray]
    """Rows found for (q, d) queries at an effort."""
    efforts: Sequence[int]
    bytes: int
    build_cpu_s: float
    note: str = ""
    effort: int = 0
    overlap: float = 0.0
    on_pareto: bool | None = None


def cpu(job: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the job returns, and its processor seconds."""
    start = time.process_time()
    return job(), time.process_time() - start


def ours(items: np.ndarray, n: int) -> tuple[Contender, str]:
    """Let tune choose, then build its choice."""
    report, spent = cpu(lambda: tune(items, recall=TARGET))
    chosen = report.chosen
    index, built = cpu(lambda: build(items, kind=chosen.settings, sample=0))
    table = predict(len(items), items.shape[1], kind=chosen.settings)
    knob = "ef_search" if "hnsw" in chosen.kind else "nprobe"
    start = getattr(chosen.settings, knob)

    def search(queries: np.ndarray, effort: int) -> np.ndarray:
        found = index.search(queries, K, settings=replace(chosen.settings, **{knob: effort}), threads=1)
        return found.ids.reshape(len(queries), -1)

    on_pareto = chosen in report.pareto
    note = f"{chosen.kind} {settings_dict(chosen.settings)}; on the Pareto: {on_pareto}; "
    note += f"tune measured {len(report.measured)} settings in {spent:.0f} s"
    efforts = sorted({start, *(e for e in BEAMS if e >= start)})
    found = Contender("lookalike tune", search, efforts, table.resident, built, note, on_pareto=on_pareto)
    return found, as_text(report)


def plain_faiss(items: np.ndarray, factory: str, who: str, note: str = "") -> Contender:
    """Build a factory string on one thread, searched by its own call."""
    index = faiss.index_factory(items.shape[1], factory, IP)

    def fill() -> None:
        index.train(items)
        index.add(items)

    _, built = cpu(fill)
    graph = factory.startswith("HNSW")

    def search(queries: np.ndarray, effort: int) -> np.ndarray:
        kind = faiss.SearchParametersHNSW(efSearch=effort) if graph else faiss.SearchParametersIVF(nprobe=effort)
        return index.search(queries, K, params=kind)[1]

    size = int(faiss.serialize_index(index).size)
    return Contender(who, search, BEAMS, size, built, f"{factory}{note}")


def usearch_i8(items: np.ndarray) -> Contender | Row:
    """Return usearch's graph over one-byte vectors, its defaults otherwise."""
    if importlib.util.find_spec("usearch") is None:
        return Row("target", "usearch i8", note="not installed")
    from usearch.index import Index

    index = Index(ndim=items.shape[1], metric="cos", dtype="i8")
    _, built = cpu(lambda: index.add(np.arange(len(items)), items, threads=1))

    def search(queries: np.ndarray, effort: int) -> np.ndarray:
        index.expansion_search = effort
        return np.asarray(index.search(queries, K, threads=1).keys).reshape(len(queries), -1)

    return Contender("usearch i8", search, BEAMS, int(index.serialized_length), built)


def share(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.mean([np.isin(right, row).mean() for row, right in zip(found, exact, strict=True)]))


def compare(n: int, d: int, *, autofaiss: bool = False) -> tuple[list[Row], str]:
    """Every contender at the least effort that reaches the target, timed in turns."""
    every = clustered(n + QUERIES, d, seed=1)
    items, queries = every[:n], every[n:]
    exact = build(items, kind="flat").search(queries, K).ids.reshape(QUERIES, K)
    chosen, plot = ours(items, n)
    contenders: list[Contender | Row] = [
        chosen,
        plain_faiss(items, "HNSW32", "FAISS HNSW32", " (also autofaiss's choice at 20 GB)"),
        usearch_i8(items),
        plain_faiss(items, AUTOFAISS[n], "autofaiss, our bytes")
        if autofaiss
        else Row("target", "autofaiss, our bytes", note=f"{AUTOFAISS[n]}: minutes of training; add --autofaiss"),
    ]
    live = [c for c in contenders if isinstance(c, Contender)]
    for c in live:
        for effort in c.efforts:
            c.effort, c.overlap = effort, share(c.search(queries, effort), exact)
            if c.overlap >= TARGET:
                break
    times: dict[str, list[float]] = {c.who: [] for c in live}
    for i in range(QUERIES):
        turn = i % len(live)
        for c in live[turn:] + live[:turn]:
            laps = []
            for _ in range(2):  # the faster one counts, for everybody
                start = time.perf_counter()
                c.search(queries[i : i + 1], c.effort)
                laps.append(time.perf_counter() - start)
            times[c.who].append(min(laps))
    rows = [
        Row(
            "target",
            c.who,
            c.overlap,
            1e3 * float(np.median(times[c.who])),
            c.bytes,
            c.build_cpu_s,
            None,
            told(c),
            on_pareto=c.on_pareto,
        )
        for c in live
    ]
    return rows + [c for c in contenders if isinstance(c, Row)], plot


def told(c: Contender) -> str:
    missed = "" if c.overlap >= TARGET else f"never reaches {TARGET}; "
    return f"{missed}effort {c.effort}; {c.note}".rstrip("; ")


def overhead(n: int, d: int) -> list[Row]:
    """Our contract beside the raw FAISS call on the same structure, in processor time, in turns."""
    every = clustered(n + 1_000, d, seed=1)
    items, queries = every[:n], every[n:]
    rows = []
    for kind, values in (
        ("flat", {}),
        ("ivf-sq8", {}),
        ("ivf-pqfs", {}),
        ("hnsw", {"ef_search": 64}),
        ("hnsw-sq8", {"ef_search": 64}),
    ):
        index = build(items, kind=settings_for(kind, values), sample=0)
        raw, parameters = raw_of(index, items)
        calls = 20 if kind == "flat" else 200
        for job, blocks in (
            ("overhead, one query", [queries[i : i + 1] for i in range(calls)]),
            ("overhead, 1,000 queries", [queries]),
        ):
            theirs, mine = in_turns(
                blocks,
                lambda q, raw=raw, parameters=parameters: raw.search(q, K, params=parameters),
                lambda q, index=index: index.search(q, K, threads=1),
            )
            each = 1e3 / sum(len(block) for block in blocks)
            note = f"raw {theirs * each:.4f} ms, ours {mine * each:.4f} ms of CPU a query"
            rows.append(Row(job, kind, p50_ms=mine * each, ratio=mine / theirs, note=note, raw_ms=theirs * each))
    return rows


def raw_of(index: AnnIndex, items: np.ndarray) -> tuple[Any, Any]:
    """Return the FAISS index inside ours and its search parameters."""
    if index.structure is None:
        flat = faiss.IndexFlatIP(items.shape[1])
        flat.add(items)
        return flat, None
    return index.structure.index, index.structure.parameters(effort_of(index.settings))


def in_turns(blocks: list[np.ndarray], first: Callable[..., Any], second: Callable[..., Any]) -> tuple[float, float]:
    """Return the least processor seconds of five passes of each, every pass of one followed by one of the other."""
    least = [float("inf"), float("inf")]
    for _ in range(5):
        for side, call in enumerate((first, second)):
            _, spent = cpu(lambda call=call: [call(block) for block in blocks])
            least[side] = min(least[side], spent)
    return least[0], least[1]


def growth(n: int, d: int) -> Row:
    """Build, search, update and search again, in a process of its own; the note has its peak memory."""
    command = [sys.executable, __file__, "--growth", str(n), str(d)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    if done.returncode:
        return Row(f"growth {n:,} × {d}", "ivf-pqfs", note=done.stderr.strip().splitlines()[-1])
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def grown(n: int, d: int) -> Row:
    every = clustered(n + 200, d, seed=1)
    items, queries = every[:n], every[n:]
    kind = settings_for("ivf-pqfs", {"k_factor": 40})
    index, built = cpu(lambda: build(items, kind=kind, sample=0))
    exact = index.search(queries, K, exact=True, threads=1).ids.reshape(-1, K)
    found = index.search(queries, K, threads=1).ids.reshape(-1, K)

    def lap(query: np.ndarray) -> float:
        start = time.perf_counter()
        index.search(query, K, threads=1)
        return time.perf_counter() - start

    before = np.median([lap(queries[i : i + 1]) for i in range(len(queries))])
    _, updating = cpu(lambda: (index.remove(np.arange(500)), index.add(-items[:1_000], np.arange(1_000))))
    after = np.median([lap(queries[i : i + 1]) for i in range(len(queries))])
    status = open("/proc/self/status").read()  # noqa: SIM115, PTH123
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1e6
    table = predict(n, d, kind=index.settings)
    note = f"1,000 updates and deletes {updating:.2f} s, then {1e3 * after:.3f} ms; peak resident {peak:.2f} GB"
    return Row(
        f"growth {n:,} × {d}", "ivf-pqfs", share(found, exact), 1e3 * float(before), table.resident, built, None, note,
        peak_gb=peak,
    )  # fmt: skip


def run(full: bool = False, *, autofaiss: bool = False) -> list[Row]:
    """Measure everything; the plot of tune's measurements goes to stderr."""
    faiss.omp_set_num_threads(1)
    n = 100_000 if full else 20_000
    rows, plot = compare(n, 384, autofaiss=autofaiss)
    print(plot, file=sys.stderr)
    rows += overhead(n, 384)
    sizes = (10_000, 100_000, 1_000_000) if full else (10_000, 40_000)
    return rows + [growth(size, 128) for size in sizes]


def figures(rows: Sequence[Row], *, full: bool) -> Iterator[Figure]:
    """Yield the choice beside its peers, the contract beside the raw call, and the growth."""
    size = "100,000 × 384" if full else "20,000 × 384"
    choice = f"{size} clustered, one thread, least effort that reaches an overlap@{K} of {TARGET}"
    for row in (row for row in rows if row.job == "target"):
        who = row.who.removesuffix(" tune")
        if row.overlap is not None and row.overlap < TARGET:
            who += f" (stops at {row.overlap:.3f})"
        for end, what, value, unit in (
            ("overlap", f"overlap@{K} with exact search: {size}, tune's choice", row.overlap, ""),
            ("latency", f"median latency: {choice}", row.p50_ms, "ms"),
            ("bytes", f"bytes: {choice}", row.bytes, "B"),
            ("build", f"build: {choice}", row.build_cpu_s, "s of CPU"),
        ):
            yield Figure(
                key=f"indexes.{end}", what=what, value=value, unit=unit, who=who, small=not full, note=row.note
            )
        if row.on_pareto is not None:
            what = f"tune's choice is on the Pareto front it measured (1 = yes): {size}"
            value = float(row.on_pareto)
            yield Figure(key="indexes.pareto", what=what, value=value, unit="", kind=EXACT, small=not full)
    for row in (row for row in rows if row.job.startswith("overhead")):
        key = f"indexes.contract-{'one' if 'one' in row.job else 'many'}.{row.who}"
        what = f"search through our contract, {row.job.removeprefix('overhead, ')} a call: {row.who}, {size}"
        pairs = (("lookalike", row.p50_ms), ("raw FAISS call", row.raw_ms))
        for who, value in pairs:
            yield Figure(key=key, what=what, value=value, unit="ms of CPU a query", who=who, small=not full)
    grown_rows = [row for row in rows if row.job.startswith("growth")]
    for row in grown_rows:
        size = row.job.removeprefix("growth ")
        key = "indexes.million" if row is grown_rows[-1] else f"indexes.growth.{size.split(' ')[0]}"
        for end, what, value, unit in (
            ("build", "build", row.build_cpu_s, "s of CPU"),
            ("bytes", "bytes", row.bytes, "B"),
            ("latency", "median latency of one query", row.p50_ms, "ms"),
            ("overlap", f"overlap@{K} with exact search", row.overlap, ""),
            ("peak", "built, searched, updated: peak resident memory", row.peak_gb, "GB"),
        ):
            named = f"{row.who} over {size}: {what}"
            yield Figure(key=f"{key}.{end}", what=named, value=value, unit=unit, small=not full, note=row.note)


def main() -> None:
    parser = argparse.ArgumentParser(description="What an index costs.")
    parser.add_argument("--full", action="store_true", help="100,000 × 384, and growth to 1,000,000 × 128")
    parser.add_argument("--autofaiss", action="store_true", help="train autofaiss's compressed choice too: minutes")
    add_option(parser)
    parser.add_argument("--growth", nargs=2, type=int, metavar=("N", "D"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.growth:
        faiss.omp_set_num_threads(1)
        print(json.dumps(asdict(grown(*given.growth))))
        return
    print(f"{'job':<24} {'who':<22} {'overlap':>7} {'p50 ms':>8} {'bytes':>13} {'build CPU s':>11} {'ratio':>6}  note")
    rows = run(given.full, autofaiss=given.autofaiss)
    for row in rows:
        cells = [
            "-" if value is None else form.format(value)
            for value, form in (
                (row.overlap, "{:.3f}"),
                (row.p50_ms, "{:.3f}"),
                (row.bytes, "{:,}"),
                (row.build_cpu_s, "{:.1f}"),
                (row.ratio, "{:.2f}"),
            )
        ]
        print(
            f"{row.job:<24} {row.who:<22} {cells[0]:>7} {cells[1]:>8} {cells[2]:>13} {cells[3]:>11} {cells[4]:>6}  "
            f"{row.note}".rstrip()
        )
    write(given.json, figures(rows, full=given.full))


if __name__ == "__main__":
    main()
