"""A store without a directory: paths or ready vectors in, ranked candidates out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from lookalike.arrays import Ids, Vectors, as_vectors, unit, wanted_ids
from lookalike.catalogue.store import Hits
from lookalike.embed.encoder import Card
from lookalike.embed.pipeline import Progress, embed_all, encode_all
from lookalike.embed.ready import VectorsEncoder
from lookalike.embed.registry import EncoderLike
from lookalike.embed.registry import encoder as resolve_encoder
from lookalike.errors import CutOffError, InputError, InputTypeError, ShapeError
from lookalike.images.load import Failure
from lookalike.index.ann import build
from lookalike.index.exact import topk
from lookalike.index.kinds import Settings, settings_of
from lookalike.index.neighbours import Metric, Neighbours, check_metric

Query: TypeAlias = "str | os.PathLike[str] | bytes | Image.Image | npt.NDArray[Any]"
"""A picture (path, bytes, Pillow image, uint8 array) or a (d,) vector of numbers that are not uint8."""

Search: TypeAlias = Callable[[Vectors, int], Neighbours]


class MemoryStore:
    """Pictures embedded once and searched in memory; the contract of a catalogue, without its files.

    `paths` are pictures, each once (a repeated path counts once, the first time); `encoder` makes their vectors, or is
    itself an (n, d) array of ready ones, row i for path i. An item's id is the position of its path. Pictures that
    cannot be read have no row: they stand in `failures`. `index` is a kind of the index table, or its settings;
    `flat` is exact.

    Raises:
        InputError: no picture could be embedded, or a ready vector's path stands twice.
        UnknownNameError: a metric, an index kind or an encoder in no table.
        ShapeError: ready vectors of another length than `paths`.
        NonFiniteError: a ready vector that is NaN, infinite or, under cosine, of length zero.

    Vectors are kept as they came: cosine scores divide by the lengths, `vectors` gives back the originals.

    >>> store = MemoryStore(["a", "b", "c"], np.array([[1, 0], [0, 1], [3, 4]]))
    >>> [hits] = store.search(np.array([1.0, 0.0]), k=2)
    >>> [(candidate.path, round(candidate.score, 3)) for candidate in hits]
    [('a', 1.0), ('c', 0.6)]
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        encoder: EncoderLike = "builtin:effnet-lite0",
        *,
        metric: Metric = "cosine",
        index: str | Settings = "flat",
        batch_size: int = 32,
        threads: int | None = None,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._metric = check_metric(metric)
        self._index = _kind(index)
        self._encoder = resolve_encoder(encoder, threads=threads)
        self._threads = threads
        names = _names(paths)
        unique = list(dict.fromkeys(names))
        if isinstance(self._encoder, VectorsEncoder) and len(unique) < len(names):
            raise InputError("A path stands twice, so its ready vector is not clear.", hint="Give each path once.")
        done = embed_all(unique, self._encoder, batch_size=batch_size, threads=threads, progress=progress)
        self._failures = done.failures
        if not len(done.positions):
            first = f" The first failure: {done.failures[0][0]!r}: {done.failures[0][1]}." if done.failures else ""
            raise InputError(f"None of {len(unique)} pictures could be embedded.{first}")
        self._vectors = as_vectors(done.vectors)
        if self._metric == "cosine":
            unit(self._vectors)  # a ready row of length zero is refused here, by number
        self._ids = done.positions
        self._paths = unique
        self._by_path = {unique[i]: int(i) for i in self._ids}
        self._search = _searcher(index, self._vectors, self._ids, self._metric, threads, seed)

    @property
    def metric(self) -> Metric:
        """The metric chosen when the store was made."""
        return self._metric

    @property
    def card(self) -> Card | None:
        """Card of the encoder; None for ready vectors."""
        return None if isinstance(self._encoder, VectorsEncoder) else self._encoder.card

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._vectors.shape[1])

    @property
    def index(self) -> str:
        """The kind of index that answers."""
        return self._index

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Pictures that could not be embedded: path, reason, detail."""
        return self._failures

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"MemoryStore({len(self)} items, dim={self.dim}, metric={self._metric!r}, index={self._index!r})"

    def ids(self, *, where: str | None = None) -> Ids:
        """Ids of the items, ascending.

        Raises:
            InputError: a filter; there are no columns here.
        """
        _no_filter(where)
        return self._ids.copy()

    def neighbours(self, queries: Vectors, k: int, *, where: str | None = None) -> Neighbours:
        """Rank the items for each of (q, d) queries; fewer than k items come back as fewer.

        Raises:
            CutOffError: k below 1.
            ShapeError: queries of another dimension.
            NonFiniteError: NaN, infinity or, under cosine, length zero.
        """
        _no_filter(where)
        rows = as_vectors(queries, name="queries", dim=self.dim)
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise InputTypeError(f"k must be a whole number, not {k!r}.")
        if k < 1:
            raise CutOffError(int(k), len(self))
        if self._metric == "cosine":
            unit(rows, name="queries")
        return self._search(rows, min(int(k), len(self)))

    def vectors(self, ids: Ids) -> Vectors:
        """(n, d) vectors of these items, in this order.

        Raises:
            InputError: an id the store does not hold.
        """
        return self._vectors[self._rows(ids)]

    def paths(self, ids: Ids) -> list[str]:
        """Paths of these items, in this order.

        Raises:
            InputError: an id the store does not hold.
        """
        self._rows(ids)
        return [self._paths[i] for i in wanted_ids(ids)]

    def ids_of(self, paths: Sequence[str]) -> Ids:
        """Ids of the items at these paths, in this order.

        Raises:
            InputError: a path the store does not hold.
        """
        missing = [path for path in paths if path not in self._by_path]
        if missing:
            raise InputError(
                f"The store holds no item at {missing[0]!r}.", hint="Paths are compared as they were given."
            )
        return np.array([self._by_path[path] for path in paths], dtype=np.int64)

    def search(self, query: Query | Sequence[Query], k: int = 10) -> list[Hits]:
        """Rank the items for one query or a list of them; one `Hits` a query, best first, equal scores in id order.

        A query is a picture (path, bytes, Pillow image or uint8 array) or a (d,) vector.

        Raises:
            InputError: a picture that cannot be read, or a picture where the store was made of ready vectors.
            ShapeError: a vector of another dimension.
            CutOffError: k below 1.
        """
        queries = list(query) if isinstance(query, list | tuple) else [cast("Query", query)]
        if not queries:
            return []
        found = self.neighbours(self.encode(queries), k)
        return [Hits(ids, scores, tuple(self.paths(ids)), self._metric) for ids, scores in found]

    def encode(self, queries: Sequence[Query]) -> Vectors:
        """Return the (q, d) vectors of these queries, pictures encoded in one run.

        Raises:
            InputError, ShapeError: as `search`.
        """
        ready = [position for position, query in enumerate(queries) if _is_vector(query)]
        pictures = [position for position in range(len(queries)) if position not in set(ready)]
        out = np.empty((len(queries), self.dim), dtype=np.float32)
        for position in ready:
            out[position] = as_vectors(np.asarray(queries[position])[None], name="the query vector", dim=self.dim)[0]
        if pictures:
            if isinstance(self._encoder, VectorsEncoder):
                raise InputError(
                    "This store was made of ready vectors and cannot encode a picture.",
                    hint="Search with a vector, or make the store with an encoder.",
                )
            out[pictures] = encode_all(
                [queries[position] for position in pictures], self._encoder, threads=self._threads
            )
        return out

    def _rows(self, ids: Ids) -> Ids:
        wanted = wanted_ids(ids)
        rows = np.searchsorted(self._ids, wanted)
        held = self._ids[np.minimum(rows, len(self._ids) - 1)] == wanted
        if not held.all():
            raise InputError(f"The store holds no item with id {wanted[~held][0]}.")
        return np.asarray(rows, dtype=np.int64)


def _names(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(paths, str | bytes | os.PathLike):
        raise InputTypeError(
            f"paths must be a list of paths, not one {type(paths).__name__}.", hint="Write [path] for a single picture."
        )
    return [os.fspath(path) if isinstance(path, str | Path) else os.fsdecode(path) for path in paths]


def _no_filter(where: str | None) -> None:
    if where is not None:
        raise InputError(
            f"A MemoryStore has no columns to filter by {where!r}.", hint="Use a Catalogue, which keeps columns."
        )


def _is_vector(query: Query) -> bool:
    if isinstance(query, np.ndarray) and query.dtype != np.uint8:
        if query.ndim != 1:
            raise ShapeError(
                f"A query vector has shape (d,), not {query.shape}.", hint="Give several as a list; a picture is uint8."
            )
        return True
    return False


def _searcher(
    kind: str | Settings, vectors: Vectors, ids: Ids, metric: Metric, threads: int | None, seed: int
) -> Search:
    """Return what answers (queries, k) for an index kind."""
    if _kind(kind) == "flat":
        return lambda queries, k: topk(queries, vectors, k, metric=metric, ids=ids, threads=threads)
    index = build(vectors, ids, kind=kind, metric=metric, seed=seed)
    return lambda queries, k: index.search(queries, k, threads=threads)


def _kind(index: str | Settings) -> str:
    return settings_of(index).kind
