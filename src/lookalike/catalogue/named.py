"""A catalogue opened by the name of an encoder that a person typed, rather than by the encoder itself."""

from __future__ import annotations

import os

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Encoder
from lookalike.embed.registry import encoder as resolve
from lookalike.errors import MissingExtraError, NotFoundError, UnknownNameError

OWN_FILES = ("python:", "run:", "onnx:")
"""Sources that are files of the user's own: what such a name stands for changes without a word when they do."""


def open_named(
    path: str | os.PathLike[str], name: str | None, *, readonly: bool = False, threads: int | None = None
) -> Catalogue:
    """Open a catalogue by the encoder a person named, which is loaded and compared where its files are their own.

    Loading runs their code, so a name that came over a network must not get here; `Catalogue.open` only looks a name up
    among those stored, and compares when there is something to embed.

    Raises:
        EncoderMismatchError: no vectors of this encoder, as it is today; the differences are named.
        NotFoundError, CatalogueError: as `Catalogue.open`.
        UnknownNameError, MissingExtraError: it cannot be loaded, and has no vectors here either.
    """
    wanted: Encoder | str | None = name
    if name is not None and name.startswith(OWN_FILES):
        with Catalogue.open(path, readonly=True) as opened:
            wanted = load_named(opened, name, threads=threads) or name
    return Catalogue.open(path, encoder=wanted, readonly=readonly, threads=threads)


def load_named(
    catalogue: Catalogue, name: str, *, normalise: bool = True, threads: int | None = None
) -> Encoder | None:
    """Return the encoder of this name, normalised as the catalogue's where it has vectors of that name.

    None where it cannot be loaded on this machine though its vectors are stored: those can still be measured, and
    asked by item.

    Raises:
        UnknownNameError, NotFoundError, MissingExtraError: it cannot be loaded, and has no vectors here either.
    """
    known = next((card for card in catalogue.cards() if card.name == name), None)
    try:
        return resolve(name, normalise=normalise if known is None else known.normalised, threads=threads)
    except (MissingExtraError, NotFoundError, UnknownNameError):
        if known is None:
            raise
        return None
