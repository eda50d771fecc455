"""One server over one small catalogue for all tests that change nothing, and others on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lookalike.server.settings import Settings

from .shops import Client, make_catalogue, running


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue that no test changes."""
    return make_catalogue(tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def client(shop: Path) -> Iterator[Client]:
    """A server over it."""
    with running(Settings(catalogue=shop, port=0, threads=1)) as client:
        yield client


@pytest.fixture
def serve() -> Iterator[Callable[[Settings], Client]]:
    """Serve other settings for one test."""
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(running(settings))
