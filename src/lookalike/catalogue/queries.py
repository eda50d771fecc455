"""What a caller searches with, as vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from lookalike.arrays import Ids, Vectors, as_vectors, wanted_ids
from lookalike.embed.encoder import Encoder
from lookalike.embed.pipeline import embed_all
from lookalike.embed.sources import Item
from lookalike.errors import ImageError, InputTypeError, NotFoundError

Query: TypeAlias = "Item | int | npt.NDArray[Any]"


def as_queries(query: Any) -> list[Any]:
    """Return a list of queries: the one given, the entries of a list, or the rows of a (q, d) array of floats.

    >>> len(as_queries("mug.jpg")), len(as_queries([3, 5])), len(as_queries(np.eye(4)))
    (1, 2, 4)
    """
    if isinstance(query, list | tuple):
        return list(query)
    if isinstance(query, np.ndarray) and query.ndim == 2 and query.dtype != np.uint8:
        return list(query)
    return [query]


def embedded(
    queries: Sequence[Any],
    dim: int,
    encoder: Callable[[], Encoder],
    vectors: Callable[[Ids], Vectors],
    threads: int | None,
) -> Vectors:
    """Return (q, dim) vectors: ready ones checked, items looked up, pictures through the encoder, all in order."""
    out = np.empty((len(queries), dim), dtype=np.float32)
    pictures: list[int] = []
    for row, query in enumerate(queries):
        if isinstance(query, bool):
            raise InputTypeError("A query is a picture, a vector or the id of an item, not a bool.")
        if isinstance(query, int | np.integer):
            out[row] = vectors(wanted_ids(query, name="the query"))[0]
        elif isinstance(query, np.ndarray) and query.ndim == 1:
            out[row] = as_vectors(query[None], name=f"query {row}", dim=dim)[0]
        elif isinstance(query, str | os.PathLike | bytes | np.ndarray | Image.Image):
            pictures.append(row)
        else:
            raise InputTypeError(
                f"A query is a path, the bytes of a file, a picture, a vector or the id of an item, "
                f"not {type(query).__name__}."
            )
    if pictures:
        _encode(out, pictures, queries, encoder(), threads)
    return out


def _encode(out: Vectors, rows: list[int], queries: Sequence[Any], encoder: Encoder, threads: int | None) -> None:
    for row in rows:
        name = queries[row]
        if isinstance(name, str | os.PathLike) and not os.path.exists(name):  # noqa: PTH110 - any kind of path
            raise NotFoundError(f"There is no picture {os.fsdecode(name)!r} to search with.")
    done = embed_all([queries[row] for row in rows], encoder, threads=threads)
    if done.failures:
        raise ImageError(*done.failures[0])
    out[rows] = done.vectors
