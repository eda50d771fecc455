"""Who reads and embeds the files of a sync: this process, or the workers of a cluster. One process commits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from lookalike.arrays import Vectors
from lookalike.catalogue.reading import Fresh, Reader, decode, read
from lookalike.embed.cluster import Cluster, EncoderSpec
from lookalike.embed.encoder import Encoder
from lookalike.embed.ordered import ordered_map
from lookalike.embed.pipeline import Chunk, embed_files
from lookalike.images.load import Failure, Picture
from lookalike.images.scan import ScannedFile

T = TypeVar("T")

BLOCK = 64
"""Files a task takes: seconds of work, against milliseconds of sending; and what a dying worker does twice."""


class Work(Protocol):
    """What a sync has done for it, in order, as it asks."""

    def read(self, files: Sequence[ScannedFile], *, all_new: bool) -> Iterator[Fresh | Failure]:
        """Read and hash files. `all_new`: nothing is known of any bytes, so all of them will be embedded."""

    def embed(self, items: Iterable[Fresh], encoder: Encoder, batch_size: int) -> Iterator[Chunk]:
        """Embed those of the files that are asked for; positions count them as they are asked."""


@dataclasses.dataclass(frozen=True)
class Here:
    """This process, in several threads."""

    threads: int

    def read(self, files: Sequence[ScannedFile], *, all_new: bool) -> Iterator[Fresh | Failure]:
        """Read and hash; the bytes stay until they are decoded."""
        del all_new
        return Reader(self.threads).all(files)

    def embed(self, items: Iterable[Fresh], encoder: Encoder, batch_size: int) -> Iterator[Chunk]:
        """Decode the bytes that were hashed, and encode."""
        return embed_files(items, encoder, batch_size=batch_size, threads=self.threads, loader=decode)


class Seen(NamedTuple):
    """What a worker found of one file: its hash and, where it was asked to embed, what came of that."""

    file: ScannedFile
    content: bytes
    mtime_ns: int | None
    vector: Vectors | None = None
    picture: Picture | None = None
    failure: Failure | None = None


class Elsewhere(Fresh):
    """A file that a worker has read. Its bytes are not here, and were decoded from what was hashed."""

    def __init__(self, seen: Seen) -> None:
        super().__init__(seen.file, seen.content, None, seen.mtime_ns)
        self.seen = seen
        self.same = True
        """Whether what was embedded is what was hashed."""

    def unchanged(self) -> bool:
        """Whether the vector belongs to the hash."""
        return self.same


class OnCluster:
    """The workers of a Dask cluster: they read, hash and embed where they are; vectors come back in bounded blocks."""

    def __init__(self, cluster: Cluster, encoder: Callable[[], Encoder], *, batch_size: int = 32) -> None:
        self._cluster = cluster
        self._encoder = encoder
        self._batch_size = batch_size

    def read(self, files: Sequence[ScannedFile], *, all_new: bool) -> Iterator[Fresh | Failure]:
        """Read and hash on the workers; where all is new they embed at once, so that a file is read only once."""
        spec = EncoderSpec.of(self._encoder()) if all_new and files else None
        task = partial(look, spec=spec, batch_size=self._batch_size, threads=self._cluster.threads_a_task())
        for block in self._cluster.stream(task, blocks(files, BLOCK)):
            for seen in block:
                yield seen if isinstance(seen, Failure) else Elsewhere(seen)

    def embed(self, items: Iterable[Fresh], encoder: Encoder, batch_size: int) -> Iterator[Chunk]:
        """Hand on what was embedded as it was read, and send the rest to the workers."""
        spec: EncoderSpec | None = None
        numbered = enumerate(items)
        for first in numbered:
            block = [first, *islice(numbered, BLOCK - 1)] if _done(first[1]) else None
            if block is not None and all(_done(item) for _, item in block):
                yield _chunk(block)
                continue
            spec = spec or EncoderSpec.of(encoder)
            task = partial(look, spec=spec, batch_size=batch_size, threads=self._cluster.threads_a_task())
            yield from self._sent(task, _again(block or [first], numbered))

    def _sent(self, task: Callable[[list[ScannedFile]], list[Seen | Failure]], items: Iterator[tuple[int, Fresh]]
              ) -> Iterator[Chunk]:  # fmt: skip
        waiting: list[list[tuple[int, Fresh]]] = []

        def files() -> Iterator[list[ScannedFile]]:
            for block in blocks(items, BLOCK):
                waiting.append(block)
                yield [item.file for _, item in block]

        for found in self._cluster.stream(task, files()):
            block = waiting.pop(0)
            for (_, item), seen in zip(block, found, strict=True):
                _fill(item, seen)
            yield _chunk(block)


def look(
    files: Sequence[ScannedFile], *, spec: EncoderSpec | None, batch_size: int, threads: int
) -> list[Seen | Failure]:
    """Do a block of a sync, in a worker: read and hash, and embed where there is an encoder."""
    fresh = list(ordered_map(read, files, threads=threads, ahead=2 * threads))
    found: list[Seen | Failure] = [
        item if isinstance(item, Failure) else Seen(item.file, item.content, item.mtime_ns) for item in fresh
    ]
    if spec is None:
        return found
    rows = [row for row, item in enumerate(fresh) if isinstance(item, Fresh)]
    sent = [item for item in fresh if isinstance(item, Fresh)]
    for chunk in embed_files(sent, spec.load(threads), batch_size=batch_size, threads=threads, loader=decode):
        for position, vector, picture in zip(chunk.positions, chunk.vectors, chunk.pictures, strict=True):
            item = sent[position]
            reliable = item.data is not None or item.unchanged()
            seen = Seen(item.file, item.content if reliable else b"", item.mtime_ns, vector, picture)
            found[rows[position]] = seen
        for position, failure in zip(chunk.failed, chunk.failures, strict=True):
            item = sent[position]
            found[rows[position]] = Seen(item.file, item.content, item.mtime_ns, failure=failure)
    return found


def blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut an iterable into lists, reading no further than each.

    >>> list(blocks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    source = iter(items)
    while block := list(islice(source, size)):
        yield block


def _done(item: Fresh) -> bool:
    return isinstance(item, Elsewhere) and (item.seen.vector is not None or item.seen.failure is not None)


def _again(block: Iterable[tuple[int, Fresh]], rest: Iterator[tuple[int, Fresh]]) -> Iterator[tuple[int, Fresh]]:
    yield from block
    yield from rest


def _fill(item: Fresh, seen: Seen | Failure) -> None:
    """Join a file with what the second look of a worker found."""
    if not isinstance(item, Elsewhere):
        raise TypeError("a cluster embeds what it has read")  # a mistake of ours
    if isinstance(seen, Failure):
        item.seen = item.seen._replace(failure=seen)
        return
    item.same = seen.content == item.content
    item.seen = seen


def _chunk(block: Sequence[tuple[int, Fresh]]) -> Chunk:
    kept = [(at, item.seen) for at, item in block if isinstance(item, Elsewhere) and item.seen.failure is None]
    lost = [(at, item.seen.failure) for at, item in block if isinstance(item, Elsewhere) and item.seen.failure]
    vectors = [seen.vector for _, seen in kept if seen.vector is not None]
    return Chunk(
        positions=np.array([at for at, _ in kept], dtype=np.int64),
        vectors=np.stack(vectors) if vectors else np.empty((0, 1), np.float32),
        pictures=tuple(seen.picture for _, seen in kept if seen.picture is not None),
        failed=np.array([at for at, _ in lost], dtype=np.int64),
        failures=tuple(failure for _, failure in lost),
    )
