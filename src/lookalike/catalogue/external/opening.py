"""A store by its address, whichever engine it is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike import network
from lookalike.catalogue.columns import Column
from lookalike.catalogue.external.address import Address, Engine
from lookalike.catalogue.external.milvus import MilvusStore
from lookalike.catalogue.external.patience import PATIENCE, Patience
from lookalike.catalogue.external.pgvector import PgvectorStore
from lookalike.catalogue.external.store import ExternalStore
from lookalike.embed.encoder import Card

ENGINES: Mapping[Engine, Any] = {"postgresql": PgvectorStore, "milvus": MilvusStore}


def open_external(text: str, *, patience: Patience = PATIENCE, threads: int | None = None) -> ExternalStore:
    """Open the store at an address such as `postgresql://user@host/database?table=shop` or `milvus:shop.db`.

    Raises:
        InputError: no address of an engine, or one on another machine while offline.
        NotFoundError: there is no such store.
        CatalogueError: the engine is away.
        MissingExtraError: its client is not installed.
    """
    address = _reachable(text)
    store: ExternalStore = ENGINES[address.engine].open(address, patience=patience, threads=threads)
    return store


def create_external(
    text: str,
    *,
    card: Card,
    metric: str = "cosine",
    dtype: str = "float32",
    index: str = "hnsw",
    columns: Sequence[Column] = (),
    patience: Patience = PATIENCE,
    threads: int | None = None,
) -> ExternalStore:
    """Make an empty store at an address; `push` fills it from a catalogue.

    `index` is `hnsw`, `ivfflat` or `none`; `dtype` is how the engine keeps vectors, `float32` or `float16`;
    `columns` are those of the catalogue to come, which saves Milvus a second collection.

    Raises:
        CatalogueError: it is there already, or the engine is away.
        InputError: an address on another machine while offline.
        UnknownNameError: a metric, dtype or index in no table.
    """
    address = _reachable(text)
    store: ExternalStore = ENGINES[address.engine].create(
        address,
        card=card,
        metric=metric,
        dtype=dtype,
        index=index,
        columns=columns,
        patience=patience,
        threads=threads,
    )
    return store


def _reachable(text: str) -> Address:
    address = Address.parse(text)
    network.check(str(address), address.hosts)
    return address
