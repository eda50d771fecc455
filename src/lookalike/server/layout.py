"""2-D maps as the page draws them: binary columns, their layout, and the trust score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lookalike.arrays import Ids, Vectors
from lookalike.catalogue import maps as kept_maps
from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.maps import KeptMap
from lookalike.errors import InputError
from lookalike.rank.maps import Method, lay_out, trust
from lookalike.server.problems import RefusedError
from lookalike.server.schemas.catalogue import BinaryColumn, MapInfo, Trust
from lookalike.server.shop import Shop

TRUST = "share of an item's 10 nearest points on the map that are among its 10 true neighbours"
_NOTES: Mapping[Method, str] = {
    "pca": "Axes are the directions of largest variance; what is far apart here is far apart, what is near may not be.",
    "umap": "Neighbours are kept together; axes, and distances between groups, mean nothing.",
}
_K = 10


def current(shop: Shop, method: Method, encoder: str | None) -> KeptMap:
    """Return the map of the present vectors; a PCA is made where there is none.

    Raises:
        RefusedError: no UMAP yet (409): making one is a job.
    """
    store = shop.store(encoder)
    return shop.kept(store, ("map", method), lambda: _read_or_make(shop, store, method, encoder))


def make(
    shop: Shop, method: Method, encoder: str | None, seed: int, progress: Callable[[str], None] = lambda text: None
) -> KeptMap:
    """Lay a map out and keep it."""
    with shop.writable(shop.store(encoder).card.name) as catalogue:  # for reading only where the folder is read-only
        return kept_maps.make(
            catalogue, _kind(method), lambda ids, rows: _layout(catalogue, ids, rows, method, seed, progress)
        )


def info(shop: Shop, method: Method, encoder: str | None) -> MapInfo:
    """Describe a map and the bytes of its columns."""
    found = current(shop, method, encoder)
    store = shop.store(encoder)
    n, details = len(found.ids), found.details
    columns = [
        BinaryColumn(name=name, dtype=dtype, offset=4 * n * place, bytes=4 * n)
        for place, (name, dtype) in enumerate(_COLUMNS)
    ]
    call = f"lay_out(shop.vectors(shop.ids()), {method!r}, metric={store.metric!r})"
    return MapInfo(
        method=method, n=n, revision=store.revision, columns=columns, bytes=4 * n * len(_COLUMNS),
        explained=details["explained"], trust=Trust(**details["trust"], definition=TRUST), note=_NOTES[method],
        command=f"from lookalike.rank.maps import lay_out; {call}",
    )  # fmt: skip


def packed(shop: Shop, method: Method, encoder: str | None) -> tuple[bytes, str]:
    """Return the columns of a map as little-endian bytes, one after the other, and their ETag."""
    found = current(shop, method, encoder)
    store = shop.store(encoder)
    content = b"".join([
        found.points[:, 0].astype("<f4").tobytes(), found.points[:, 1].astype("<f4").tobytes(), numbers(found.ids),
    ])  # fmt: skip
    return content, f"{method}-{store.card.digest}-{store.revision}"


def numbers(ids: Ids) -> bytes:
    """Return ids as little-endian uint32.

    Raises:
        InputError: a number beyond it.
    """
    if len(ids) and int(ids.max()) >= 2**32:
        raise InputError(f"Item {int(ids.max())} has a number beyond 4,294,967,295, which the page cannot draw.")
    return ids.astype("<u4").tobytes()


_COLUMNS: tuple[tuple[str, Any], ...] = (("x", "float32"), ("y", "float32"), ("id", "uint32"))


def _read_or_make(shop: Shop, store: Catalogue, method: Method, encoder: str | None) -> KeptMap:
    found = kept_maps.read(store, _kind(method))
    if found is not None:
        return found
    if method != "pca":
        raise RefusedError(
            409, f"There is no {method} map of the present vectors.", hint=f'POST /api/v1/map {{"method": "{method}"}}'
        )
    return make(shop, method, encoder, seed=0)


def _layout(
    store: Catalogue, ids: Ids, vectors: Vectors, method: Method, seed: int, progress: Callable[[str], None]
) -> tuple[Vectors, Mapping[str, Any]]:
    progress(f"laying out {len(ids):,} items by {method}")
    made = lay_out(vectors, method, metric=store.metric, seed=seed)
    progress("measuring how far the map can be trusted")
    score = trust(made.points, vectors, metric=store.metric, k=_K, seed=seed, threads=store.threads)
    measured = {"value": score.value, "low": score.low, "high": score.high, "k": score.k, "sample": score.queries}
    return made.points, {"explained": made.explained and list(made.explained), "trust": measured, "seed": seed}


def _kind(method: Method) -> str:
    return f"map-{method}"
