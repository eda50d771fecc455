"""Pictures to vectors: decoding and the network busy at once, in order, with bounded memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lookalike import threads as processors
from lookalike.arrays import Ids, Vectors
from lookalike.embed.ordered import ordered_map
from lookalike.embed.ready import VectorsEncoder
from lookalike.embed.registry import EncoderLike
from lookalike.embed.registry import encoder as resolve_encoder
from lookalike.embed.sources import Item, Loader, read
from lookalike.embed.stages import Outcome, Stages
from lookalike.errors import InputError, InputTypeError, ShapeError
from lookalike.images.load import Failure, Picture

BATCH_BYTES = 256 * 2**20
"""A batch is sent off early when its pictures hold this much: 32 decoded photographs of a good camera are 2 GB."""
_NAMED = 5


class Progress(NamedTuple):
    """How far an embedding run is; `total` is None where the input has no length."""

    done: int
    total: int | None
    failed: int


@dataclass(frozen=True, eq=False)
class Chunk:
    """What came of some consecutive input pictures; `positions` and `failed` together are all of them.

    `vectors[i]` and `pictures[i]` belong to input `positions[i]`; `failures[j]` to input `failed[j]`. The pictures
    keep everything the loader said but the pixels.
    """

    positions: Ids
    vectors: Vectors
    pictures: tuple[Picture, ...]
    failed: Ids
    failures: tuple[Failure, ...]


@dataclass(frozen=True, eq=False)
class Embedded:
    """All vectors of a run: row i belongs to input `positions[i]`, `failures[j]` to input `failed[j]`."""

    vectors: Vectors
    positions: Ids
    failed: Ids
    failures: tuple[Failure, ...]


def embed_files(
    items: Iterable[Item],
    encoder: EncoderLike,
    *,
    batch_size: int = 32,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    loader: Loader = read,
) -> Generator[Chunk]:
    """Encode pictures as they stream in, a chunk of `batch_size` at a time, in input order.

    A picture that cannot be read, or whose vector is NaN, infinite or zero, is a failure with its name and never a
    row. The vectors are the same for every batch size and thread count. `threads` threads decode (all usable
    processors where None); for an encoder that takes one picture a call they also run the network, so that no core
    waits for another; otherwise they decode ahead while the caller's thread encodes. Memory does not grow with
    `items`, which may be a generator: alive are one picture a thread, one batch, and what was read ahead, about
    another batch; each of the two at most 256 MB and the pictures under way.

    `loader(item, short_side)` replaces the reading of an item, for example to hash its bytes on the way; what it
    returns comes back in `Chunk.pictures`. `progress` is called in the caller's thread after each chunk.

    Raises:
        UnknownNameError: an encoder name in no table.
        InputError: `batch_size` or `threads` below 1, or ready vectors as the encoder.
        ShapeError: the encoder did not give one row a picture, or rows of changing length.

    >>> from lookalike.embed.pipeline import embed_files
    >>> mean_colour = lambda images: [image.mean(axis=(0, 1)) for image in images]
    >>> [chunk] = embed_files([np.full((4, 4, 3), 9, np.uint8), b"no picture"], mean_colour)
    >>> chunk.vectors.shape, [failure.reason for failure in chunk.failures]
    ((1, 3), ['unknown-format'])
    """
    if batch_size < 1:
        raise InputError(f"batch_size={batch_size}: at least one picture a batch is needed.")
    count = processors.resolve(threads)
    network = resolve_encoder(encoder, threads=count)
    if isinstance(network, VectorsEncoder):
        raise InputError(
            "Ready vectors cannot encode pictures.", hint="Pass them to encode_all or use them as they are."
        )
    _check_many(items)
    stages = Stages(network, loader)
    outcomes = ordered_map(
        stages.begin,
        enumerate(items),
        threads=count,
        ahead=batch_size + count,
        weigh=lambda outcome: outcome.nbytes,
        budget=BATCH_BYTES,
    )
    total = len(items) if isinstance(items, Sized) else None
    return _chunks(stages, outcomes, batch_size, total, progress)


def embed_all(
    images: Iterable[Item],
    encoder: EncoderLike = "builtin:effnet-lite0",
    *,
    batch_size: int = 32,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Embedded:
    """Encode every picture that can be, and say which could not: vectors (m, d), m <= n.

    Ready vectors, an (n, d) array in the encoder's place, are handed through once their length is right.

    Raises:
        UnknownNameError: an encoder name in no table.
        ShapeError: ready vectors of another length than `images`.
    """
    network = resolve_encoder(encoder, threads=threads)
    if isinstance(network, VectorsEncoder):
        return _ready(network, images)
    chunks = list(embed_files(images, network, batch_size=batch_size, threads=threads, progress=progress))
    rows = [chunk.vectors for chunk in chunks if len(chunk.vectors)]
    return Embedded(
        vectors=np.concatenate(rows) if rows else np.empty((0, network.card.dim), dtype=np.float32),
        positions=_joined([chunk.positions for chunk in chunks]),
        failed=_joined([chunk.failed for chunk in chunks]),
        failures=tuple(failure for chunk in chunks for failure in chunk.failures),
    )


def encode_all(
    images: Iterable[Item],
    encoder: EncoderLike = "builtin:effnet-lite0",
    *,
    batch_size: int = 32,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Vectors:
    """Encode pictures: (n, d) float32, row i for picture i.

    Paths, bytes of files, uint8 arrays and Pillow images may be mixed. `embed_all` is the same with a list of
    failures instead of an error.

    Raises:
        InputError: a picture failed, because its row would be missing and every later row misplaced; the first
            failures are named.
        UnknownNameError: an encoder name in no table.

    >>> encode_all([np.zeros((8, 8, 3), np.uint8)], threads=1).shape
    (1, 1280)
    """
    done = embed_all(images, encoder, batch_size=batch_size, threads=threads, progress=progress)
    if done.failures and len(done.failures) + len(done.positions) == 1:
        path, reason, detail = done.failures[0]
        raise InputError(f"{path!r} has no vector: {reason}, {detail}.")
    if done.failures:
        listed = "; ".join(f"{path!r}: {reason}" for path, reason, _ in done.failures[:_NAMED])
        more = f"; and {len(done.failures) - _NAMED} more" if len(done.failures) > _NAMED else ""
        total = len(done.failures) + len(done.positions)
        raise InputError(
            f"{len(done.failures)} of {total} pictures have no vector: {listed}{more}.",
            hint="Leave them out, or call embed_all, which returns the failures beside the vectors.",
        )
    return done.vectors


def _chunks(
    stages: Stages,
    outcomes: Generator[Outcome],
    batch_size: int,
    total: int | None,
    progress: Callable[[Progress], None] | None,
) -> Generator[Chunk]:
    done = failed = 0
    with contextlib.closing(_batches(outcomes, batch_size)) as batches:
        for batch in batches:
            vectors, finished = stages.finish(batch)
            kept = [outcome for outcome in finished if outcome.failure is None]
            lost = [outcome for outcome in finished if outcome.failure is not None]
            done, failed = done + len(batch), failed + len(lost)
            yield Chunk(
                positions=_positions(kept),
                vectors=vectors,
                pictures=tuple(outcome.picture for outcome in kept if outcome.picture is not None),
                failed=_positions(lost),
                failures=tuple(outcome.failure for outcome in lost if outcome.failure is not None),
            )
            if progress is not None:
                progress(Progress(done, total, failed))


def _batches(outcomes: Generator[Outcome], batch_size: int) -> Generator[list[Outcome]]:
    batch: list[Outcome] = []
    with contextlib.closing(outcomes):
        for outcome in outcomes:
            batch.append(outcome)
            if len(batch) == batch_size or sum(each.nbytes for each in batch) > BATCH_BYTES:
                yield batch
                batch = []
        if batch:
            yield batch


def _ready(network: VectorsEncoder, images: Iterable[Item]) -> Embedded:
    n = len(images) if isinstance(images, Sized) else sum(1 for _ in images)
    if n != len(network.vectors):
        raise ShapeError(f"There are {len(network.vectors)} ready vectors for {n} pictures; one a picture is needed.")
    nothing = np.empty(0, dtype=np.int64)
    return Embedded(network.vectors, np.arange(n, dtype=np.int64), nothing, ())


def _positions(outcomes: Sequence[Outcome]) -> Ids:
    return np.array([outcome.position for outcome in outcomes], dtype=np.int64)


def _joined(parts: Sequence[Ids]) -> Ids:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _check_many(items: object) -> None:
    if isinstance(items, str | bytes | os.PathLike):
        raise InputTypeError(
            f"Pictures must come as a list, not as one {type(items).__name__}.", hint="Write [path] for a single one."
        )
