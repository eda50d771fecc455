"""The server under load: latency of 50 clients, memory, and the time to a first result.

    python benchmarks/server.py            # 50 clients for 8 s over 10,000 items
    python benchmarks/server.py --full     # 50 clients for 30 s, and a map of 100,000 points

The server runs as a user runs it (`lookalike serve`), in a process of its own, over a generated catalogue of vectors
with the built-in encoder's card; clients are threads of this process and share the machine with it. Latency is measured
around the whole request, a kept-alive connection a client. Memory is the resident set of the server.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CLIENTS, ITEMS, POINTS = 50, 10_000, 100_000
SECONDS, SECONDS_FULL = 8.0, 30.0
SEARCHES = "search by item, k = 20, filtered, 10,000 × 1,280 exact"
PATHS = ("/api/v1/items?limit=50&where=price%20%3C%20500", "/api/v1/columns/label", "/api/v1/map")


@dataclass
class Load:
    """What the clients saw."""

    took_ms: dict[str, list[float]] = field(default_factory=lambda: {"search": [], "other": []})
    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    guard: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Figures:
    """One run."""

    items: int
    clients: int
    seconds: float
    requests: int
    errors: int
    requests_per_s: float
    search_p50_ms: float
    search_p95_ms: float
    search_p99_ms: float
    other_p95_ms: float
    alone_p50_ms: float
    """One client, the same search."""
    start_s: float
    """From the command to the first answer."""
    first_picture_s: float
    """First picture dropped on a server that has just started: the encoder is loaded for it."""
    next_picture_s: float
    rss_start_mb: float
    rss_quarter_mb: float
    rss_end_mb: float
    stop_s: float
    map_points: int
    map_make_s: float
    map_again_ms: float


def run(full: bool = False) -> Figures:
    """Make the catalogue, serve it, load it, and return what was measured."""
    with tempfile.TemporaryDirectory(prefix="lookalike-bench-") as scratch:
        folder = Path(scratch)
        shop = generated(folder / "shop.la", ITEMS)
        with served(shop) as (process, port, start_s):
            first, again = (dropped(port) for _ in range(2))
            alone = np.array([asked(port, "POST", "/api/v1/search", search(number))[0] for number in range(1, 41)])
            for path in PATHS:
                asked(port, "GET", path)
            before = rss_mb(process.pid)
            load, quarter = loaded(port, process.pid, SECONDS_FULL if full else SECONDS)
            after = rss_mb(process.pid)
            began = time.perf_counter()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            stop_s = time.perf_counter() - began
        points = POINTS if full else ITEMS
        make_s, again_ms = mapped(generated(folder / "large.la", points, dim=64) if full else shop)
    seconds = SECONDS_FULL if full else SECONDS
    searches, others = (np.array(load.took_ms[name] or [np.nan]) for name in ("search", "other"))
    total = sum(load.statuses.values())
    bad = total - load.statuses[200] + sum(load.errors.values())
    p50, p95, p99 = (float(np.quantile(searches, q)) for q in (0.5, 0.95, 0.99))
    return Figures(
        items=ITEMS, clients=CLIENTS, seconds=seconds, requests=total, errors=bad, requests_per_s=total / seconds,
        search_p50_ms=p50, search_p95_ms=p95, search_p99_ms=p99, other_p95_ms=float(np.quantile(others, 0.95)),
        alone_p50_ms=float(np.median(alone)), start_s=start_s, first_picture_s=first, next_picture_s=again,
        rss_start_mb=before, rss_quarter_mb=quarter, rss_end_mb=after, stop_s=stop_s, map_points=points,
        map_make_s=make_s, map_again_ms=again_ms,
    )  # fmt: skip


def generated(folder: Path, n: int, dim: int | None = None) -> Path:
    """Make a catalogue of n clustered unit vectors; with the built-in encoder's card where `dim` is None."""
    from lookalike.catalogue.catalogue import Catalogue
    from lookalike.embed.encoder import Card

    encoder: Any = "builtin:effnet-lite0" if dim is None else Card(name="toy", weights="1", dim=dim, pooling="none")
    with Catalogue.create(folder, encoder=encoder) as made:
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 100, n)
        centres = rng.standard_normal((100, made.dim), dtype=np.float32)
        rows = centres[labels] + 1.5 * rng.standard_normal((n, made.dim), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        columns = {"label": [f"class {label}" for label in labels.tolist()], "price": rng.integers(1, 1000, n).tolist()}
        made.upsert([f"{number:06}.jpg" for number in range(n)], rows, columns=columns)
    return folder


@contextmanager
def served(shop: Path) -> Iterator[tuple[subprocess.Popen[str], int, float]]:
    """Serve a catalogue as a user does; yield the process, its port, and seconds to its first answer."""
    command = [sys.executable, "-m", "lookalike", "serve", str(shop), "--port", "0", "--no-browser", "-q"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)/", process.stdout.readline())
        assert found, "the server did not start"
        port = int(found.group(1))
        asked(port, "GET", "/api/v1/catalogue")
        yield process, port, time.perf_counter() - began
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def search(number: int) -> bytes:
    """Return the search every client makes."""
    return json.dumps({"terms": [{"item": number}], "k": 20, "where": "price < 500"}).encode()


def asked(
    port: int, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
) -> tuple[float, int]:
    """Ask once over a connection of its own; return milliseconds and the bytes that came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    began = time.perf_counter()
    connection.request(method, path, body=body, headers={"Content-Type": kind} if body else {})
    answer = connection.getresponse()
    size = len(answer.read())
    took = 1e3 * (time.perf_counter() - began)
    connection.close()
    assert answer.status == 200, answer.status
    return took, size


def dropped(port: int) -> float:
    """Drop a 1,600 × 1,200 JPEG on the search and return the seconds to its results."""
    from PIL import Image

    noise = np.random.default_rng(1).integers(0, 256, (150, 200, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((1600, 1200)).save(buffer, "JPEG")
    head = 'Content-Disposition: form-data; name="pictures"; filename="p"\r\nContent-Type: image/jpeg'
    body = f"--mark\r\n{head}\r\n\r\n".encode() + buffer.getvalue() + b"\r\n--mark--\r\n"
    return asked(port, "POST", "/api/v1/search", body, "multipart/form-data; boundary=mark")[0] / 1e3


def loaded(port: int, pid: int, seconds: float) -> tuple[Load, float]:
    """Let every client ask without a pause; return what they saw, and the server's memory after a quarter."""
    load, end = Load(), time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(port, number, load, end)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 4)
    quarter = rss_mb(pid)
    for thread in threads:
        thread.join()
    return load, quarter


def client(port: int, number: int, load: Load, end: float) -> None:
    """Ask in turn for three searches and one other thing."""
    rng = np.random.default_rng(number)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    turn = number
    while time.monotonic() < end:
        turn += 1
        searching = turn % 4 != 0
        began = time.perf_counter()
        try:
            if searching:
                body = search(int(rng.integers(1, ITEMS + 1)))
                connection.request("POST", "/api/v1/search", body=body, headers={"Content-Type": "application/json"})
            else:
                connection.request("GET", PATHS[turn // 4 % len(PATHS)])
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            with load.guard:
                load.errors[type(error).__name__] += 1
            connection.close()
            continue
        took = 1e3 * (time.perf_counter() - began)
        with load.guard:
            load.statuses[answer.status] += 1
            load.took_ms["search" if searching else "other"].append(took)
    connection.close()


def mapped(shop: Path) -> tuple[float, float]:
    """Return the seconds to a first map and the milliseconds to the same again."""
    with served(shop) as (_, port, _):
        first, _ = asked(port, "GET", "/api/v1/map")
        again, _ = asked(port, "GET", "/api/v1/map")
    return first / 1e3, again


def rss_mb(pid: int) -> float:
    """Return the resident set of a process; NaN where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return float("nan")
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found.group(1)) / 1024 if found else float("nan")


def main() -> None:
    """Print the figures, one a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    figures = run(full=parser.parse_args().full)
    print(f"# {SEARCHES}; a quarter of the requests are pages, legends and maps")
    for name, value in asdict(figures).items():
        print(f"{name:18} {value:,.3f}" if isinstance(value, float) else f"{name:18} {value:,}")


if __name__ == "__main__":
    main()
