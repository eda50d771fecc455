"""One million vectors of 768 dimensions, 16 GB of memory, 50 ms a query: which index, before there is any data?

    python examples/million_in_16_gb.py                # arithmetic: a second
    python examples/million_in_16_gb.py --build 20000  # and a fiftieth of it built: predicted against written bytes

The same on the command line:

    lookalike plan --items 1e6 --dim 768 --ram 16GB --latency 50ms
    lookalike memory 1000000 768 --kind ivf-pq --m 96

Bytes are arithmetic, and exact where the format allows. Latency is an estimate from this machine's scan bandwidth. How
much of the exact answer an index finds depends on the vectors: `lookalike tune` measures that on yours.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from lookalike.index import saved
from lookalike.index.ann import build
from lookalike.index.generated import clustered
from lookalike.index.kinds import HnswSq8, IvfPq, IvfSq8
from lookalike.index.memory import MemoryTable, predict
from lookalike.index.plan import PlanRow, measure_bandwidth, plan

N, DIM = 1_000_000, 768
RAM, LATENCY_MS = 16 * 10**9, 50.0


def planned(bandwidth: float | None = None) -> tuple[PlanRow, ...]:
    """Return every kind with its bytes and estimated latency, fitting ones first."""
    return plan(N, DIM, ram=RAM, latency_ms=LATENCY_MS, bandwidth=bandwidth)


def by_hand() -> dict[str, int]:
    """Return the bytes of IVF-PQ with 96 codes a vector and 4·√n cells, added up as one would on paper."""
    nlist, m = 4_000, 96
    return {
        "codes": N * m,  # one byte a part
        "ids": N * 8,
        "centroids": nlist * DIM * 4,
        "codebooks": m * 256 * (DIM // m) * 4,
    }


def print_plan(rows: tuple[PlanRow, ...]) -> None:
    """Print the table; every row says which demand it misses."""
    print(f"{N:,} × {DIM}, at most {RAM / 1e9:.0f} GB and {LATENCY_MS:.0f} ms")
    print(f"{'kind':11}{'refine':9}{'resident':>16}{'while building':>17}{'latency':>11}  fits")
    for row in rows:
        refine = getattr(row.settings, "refine", "none")
        print(
            f"{row.kind:11}{refine:9}{row.table.resident:>14,} B{row.table.build_peak:>15,} B{row.latency_ms:>8.2f} ms"
            f"  {'yes' if row.fits else 'no: ' + ' '.join(row.misses)}"
        )


def print_by_hand(table: MemoryTable) -> None:
    """Print both sums, component by component."""
    print("\nIVF-PQ, m = 96, by hand and by `lookalike memory`:")
    for name, size in by_hand().items():
        print(f"  {name:10}{size:>14,}{table.components[name]:>14,}")
    print(f"  {'total':10}{sum(by_hand().values()):>14,}{table.total:>14,}")


def print_built(n: int) -> None:
    """Build three kinds over n vectors and print predicted beside written bytes, overlap and latency."""
    vectors = clustered(n + 100, DIM)
    items, queries = vectors[:n], vectors[n:]
    print(f"\nBuilt over {n:,} generated vectors, one query at a time:")
    for settings in (IvfPq(m=96, refine="vectors"), IvfSq8(), HnswSq8()):
        index = build(items, kind=settings)
        with tempfile.TemporaryDirectory() as place:
            saved.save(index, Path(place) / "index")
            written = max(file.stat().st_size for file in Path(place).rglob("*.faiss"))
        expected = predict(n, DIM, kind=index.settings, rotated=index.structure is not None and index.structure.rotated)
        took = []
        for query in queries:
            start = time.perf_counter()
            index.search(query[None], 10, threads=1)
            took.append(time.perf_counter() - start)
        print(
            f"  {settings.kind:9} predicted {expected.file:>12,} B, written {written:>12,} B, "
            f"median {1e3 * float(np.median(took)):.2f} ms, overlap {index.overlap}"
        )


def main() -> None:
    """Print the plan, the sum by hand, and what was built where that was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=int, metavar="N", help="also build three kinds over so many vectors")
    asked = parser.parse_args()
    print_plan(planned(measure_bandwidth()))
    print_by_hand(predict(N, DIM, kind=IvfPq(m=96, nlist=4_000)))
    if asked.build:
        print_built(asked.build)


if __name__ == "__main__":
    main()
