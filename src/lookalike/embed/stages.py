"""What happens to one picture in a decoding thread, and to a batch of them in the caller's."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Rgb, Vectors
from lookalike.embed.encoder import Encoder, is_concurrent, is_staged
from lookalike.embed.rows import as_rows, unusable
from lookalike.embed.sources import Item, Loader, name_of
from lookalike.errors import ImageError, ShapeError
from lookalike.images.load import Failure, Picture

BAD_VECTOR = "bad-vector"
"""Reason code of a picture that was read, but whose vector is NaN, infinite or zero."""

_NO_PIXELS: Rgb = np.empty((0, 0, 3), dtype=np.uint8)
_NAMED = 3


class Outcome(NamedTuple):
    """One picture on its way: what the loader said, and its pixels, prepared input or vector; or a failure."""

    position: int
    name: str
    picture: Picture | None = None
    content: npt.NDArray[Any] | None = None
    failure: Failure | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of pixels, prepared input or vector."""
        return 0 if self.content is None else self.content.nbytes


class Stages:
    """An encoder taken apart into the work on one picture and the work on a batch."""

    def __init__(self, network: Encoder, loader: Loader) -> None:
        self._network = network
        self._loader = loader
        self._short_side = network.short_side if is_staged(network) else None
        self._dim: int | None = None

    def begin(self, numbered: tuple[int, Item]) -> Outcome:
        """Read one item and do as much of the encoding as one picture allows; safe in any thread."""
        position, item = numbered
        name = name_of(item, position)
        with _naming([name]):
            try:
                picture = self._loader(item, self._short_side)
            except ImageError as error:
                path = name if error.path.startswith("<") else error.path
                return Outcome(position, name, failure=Failure(path, error.reason, error.detail))
            content: npt.NDArray[Any] = picture.pixels
            network = self._network
            if is_staged(network):
                content = network.prepare(content)
            if is_concurrent(network):
                content = network.encode_one(content)
        return Outcome(position, name, dataclasses.replace(picture, pixels=_NO_PIXELS), content)

    def finish(self, batch: Sequence[Outcome]) -> tuple[Vectors, list[Outcome]]:
        """Return the usable vectors of a batch, (m, d), and the batch with the unusable ones marked as failures.

        Raises:
            ShapeError: not one row a picture, or rows of another length than in the batches before.
        """
        read = [outcome for outcome in batch if outcome.failure is None]
        rows = self._encode(read)
        bad = unusable(rows)
        lost = {outcome.position for outcome, is_bad in zip(read, bad, strict=True) if is_bad}
        marked = [_without_vector(outcome) if outcome.position in lost else outcome for outcome in batch]
        return rows[~bad], marked

    def _encode(self, read: Sequence[Outcome]) -> Vectors:
        if not read:
            return np.empty((0, self._dim or 0), dtype=np.float32)
        contents = [outcome.content for outcome in read if outcome.content is not None]
        network = self._network
        values: npt.ArrayLike
        with _naming([outcome.name for outcome in read]):
            if is_concurrent(network):
                values = np.stack(contents)
            elif is_staged(network):
                values = network.encode_prepared(contents)
            else:
                values = network.encode_images(contents)
            rows = as_rows(values, len(read), source="The encoder")
            if self._dim not in {None, rows.shape[1]}:
                raise ShapeError(f"The encoder returned {rows.shape[1]} columns, and {self._dim} in the batch before.")
        self._dim = rows.shape[1]
        return rows


def _without_vector(outcome: Outcome) -> Outcome:
    failure = Failure(outcome.name, BAD_VECTOR, "the encoder gave NaN, infinity or zeros only")
    return Outcome(outcome.position, outcome.name, failure=failure)


@contextlib.contextmanager
def _naming(names: Sequence[str]) -> Iterator[None]:
    """Let an unexpected exception say which pictures were on the table."""
    try:
        yield
    except Exception as error:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        error.add_note(f"while encoding {', '.join(map(repr, names[:_NAMED]))}{more}")
        raise
