"""The clients of the engines, loaded at first use; untyped here, because they are optional."""

from __future__ import annotations

import functools
import importlib
import logging
from typing import Any

from lookalike.errors import MissingExtraError


def _load(name: str, feature: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise  # the client is there and itself lacks something: its own message says more
        raise MissingExtraError(feature, extra) from error


@functools.cache
def psycopg() -> Any:
    """Return PostgreSQL's client.

    Raises:
        MissingExtraError: it is not installed.
    """
    return _load("psycopg", "A store on PostgreSQL", "pgvector")


@functools.cache
def pymilvus() -> Any:
    """Return the client of Milvus.

    Raises:
        MissingExtraError: it is not installed.
    """
    module = _load("pymilvus", "A store on Milvus", "milvus")
    # It writes every refused call with its stack to standard error; what went wrong is in our own error.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
    return module


@functools.cache
def milvus_lite() -> Any:
    """Return the keeper of embedded Milvus files.

    Raises:
        MissingExtraError: it is not installed.
    """
    module = _load("milvus_lite.server_manager", "An embedded Milvus file", "milvus")
    # The server within writes every refused call, and every one it lacks, with its stack to standard error.
    for name in ("milvus_lite", "grpc._server"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return module
