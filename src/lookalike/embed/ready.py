"""Vectors somebody has already computed, in the place of an encoder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Rgb, Vectors, as_vectors
from lookalike.embed.encoder import Card
from lookalike.errors import InputError, NotFoundError

SUFFIX = ".npy"


class VectorsEncoder:
    """(n, d) ready vectors, row i for picture i; the rows are taken as they are and not scaled.

    It has a card, so that ready vectors and an encoder's can be told apart, but it cannot encode a picture.

    >>> VectorsEncoder(np.eye(3)).vectors.shape
    (3, 3)
    """

    def __init__(self, vectors: npt.ArrayLike, *, name: str = "vectors") -> None:
        self.vectors: Vectors = as_vectors(vectors, name=name)
        self._name = name

    @property
    def card(self) -> Card:
        """Which vectors these are: the digest is of their bytes."""
        lengths = np.sqrt(np.einsum("nd,nd->n", self.vectors, self.vectors, dtype=np.float64))
        return Card(
            name=self._name,
            weights=hashlib.blake2b(self.vectors.data, digest_size=16).hexdigest(),
            dim=self.vectors.shape[1],
            pooling="none",
            normalised=bool(np.allclose(lengths, 1, rtol=0, atol=1e-5)),
        )

    def encode_images(self, images: Sequence[Rgb]) -> NoReturn:
        """Refuse.

        Raises:
            InputError: always; ready vectors hold no network.
        """
        raise InputError(
            f"{self._name} holds ready vectors and cannot encode a picture.",
            hint="Name the encoder that made them, or pass vectors as the query.",
        )


def load_vectors(path: str | os.PathLike[str], *, dim: int | None = None) -> Vectors:
    """Read (n, d) vectors from a `.npy` file; float32 rows are mapped, not copied into memory.

    Raises:
        NotFoundError: no such file.
        InputError: not a `.npy` file of numbers (pickled objects are refused).
        ShapeError: not two-dimensional, or not `dim` columns.
        NonFiniteError: NaN or infinity; the rows are named.
    """
    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"There is no file {str(path)!r}.")
    try:
        stored: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:  # NumPy's own words advise to unpickle what it does not know
        raise InputError(
            f"{str(path)!r} cannot be read as a NumPy array of numbers.", hint="Write it with numpy.save."
        ) from error
    if not isinstance(stored, np.ndarray):
        raise InputError(
            f"{str(path)!r} is an archive of several arrays.", hint="Save one (n, d) array with numpy.save."
        )
    return as_vectors(stored, name=str(path), dim=dim)
