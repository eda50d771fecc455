"""Every performance figure, ours beside the peers', in one run: `make bench`, or `python -m benchmarks [NAME…]`.

Each script runs in a process of its own, one after the other, so that nothing measured shares the machine with anything
else of ours. A script that needs a package which is not installed says so and is passed over.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent

# script -> (what it prints, arguments of the short run, arguments of the full run)
SCRIPTS: dict[str, tuple[str, list[str], list[str]]] = {
    "recall": ("recall@K and every metric, beside pytorch-metric-learning and others", [], ["--full"]),
    "rerank": ("k-reciprocal re-ranking, beside pyvisim and the classic algorithm", [], ["--full"]),
    "pipeline": ("pictures per second: the network alone, the decoder alone, the pipeline", ["--pictures", "120"], []),
    "indexes": ("indexes at one overlap: latency, bytes, build, beside FAISS and usearch", [], ["--full"]),
    "catalogue": ("process start to answer, syncs, growth", [], ["--full"]),
    "train": ("fine-tuned heads on held-out identities, semi-hard mining", [], ["--full"]),
    "encoders": ("pictures per second and recall@1 of each way to run an encoder", [], ["--full"]),
    "server": ("latency under load, memory", [], ["--full"]),
    "engines": ("Dask, pgvector and Milvus", [], ["--full"]),
}
VERSIONED = ("lookalike", "numpy", "faiss-cpu", "onnxruntime", "numba", "torch", "pytorch-metric-learning", "pyvisim")


def main() -> None:
    """Run the scripts that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(SCRIPTS)}")
    parser.add_argument("--full", action="store_true", help="the sizes the promises are made for")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - SCRIPTS.keys())
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(SCRIPTS)}")
    print(machine())
    for name in given.names or SCRIPTS:
        what, short, full = SCRIPTS[name]
        script = HERE / f"{name}.py"
        if not script.exists():
            continue
        print(f"\n## {name}: {what}\n", flush=True)
        started = time.perf_counter()
        done = subprocess.run([sys.executable, script, *(full if given.full else short)], check=False)
        state = "done" if done.returncode == 0 else f"left with {done.returncode}"
        print(f"\n({state} in {time.perf_counter() - started:.0f} s)", flush=True)


def machine() -> str:
    """Name the machine and the versions, one line each."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    versions = [f"{name} {version}" for name in VERSIONED if (version := _version(name))]
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{platform.system()} {platform.machine()}, {model}, {os.cpu_count()} processors{load}\n"
        f"Python {platform.python_version()}, {', '.join(versions)}"
    )


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
