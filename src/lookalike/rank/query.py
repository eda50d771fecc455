"""What is asked for: a picture, a text, an item, a vector, or a weighted sum of them, as one vector."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from lookalike.arrays import Vectors, as_vectors, unit
from lookalike.catalogue.store import Store
from lookalike.embed.encoder import Encoder
from lookalike.embed.pipeline import encode_all
from lookalike.embed.text import check_text_query, embed_texts, no_text_tower
from lookalike.errors import InputError, NotFoundError
from lookalike.images.formats import EXTENSIONS

Kind: TypeAlias = Literal["picture", "text", "item", "vector"]


@dataclass(frozen=True, kw_only=True)
class Term:
    """One part of a query and its weight; a negative weight asks for less of it.

    Raises:
        InputError: a weight of zero, or not a finite one.
    """

    kind: Kind
    value: str | os.PathLike[str] | bytes | int | Image.Image | npt.NDArray[Any]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.weight) or self.weight == 0:
            raise InputError(f"A weight of {self.weight} says nothing.", hint="Weights are numbers such as 1 or -0.5.")


def term(value: str, weight: float = 1.0) -> Term:
    """Take what a person typed for a picture where such a file exists, else for a text.

    Raises:
        NotFoundError: it looks like the path of a picture, and no such file exists.

    >>> term("red trainers on concrete").kind
    'text'
    >>> term("shoes/red.jpg")
    Traceback (most recent call last):
    ...
    lookalike.errors.NotFoundError: There is no picture at 'shoes/red.jpg'.
    """
    if Path(value).is_file():
        return Term(kind="picture", value=value, weight=weight)
    if os.sep in value or Path(value).suffix.lower() in EXTENSIONS:
        raise NotFoundError(f"There is no picture at {value!r}.")
    return Term(kind="text", value=value, weight=weight)


def query_vector(terms: Sequence[Term], store: Store, encoder: Callable[[], Encoder]) -> Vectors:
    """Return (d,) for a query: the vector of its one term, or the sum of weight · unit vector over several.

    Terms are brought to length 1 before they are added, so that a weight means the same for a picture and a text, and
    the sum is brought to length 1 where the store compares by cosine. `encoder` is asked for only where a picture or a
    text must be encoded.

    Raises:
        InputError: no term, an item the store does not hold, a picture that cannot be read, or a text for an encoder of
            pictures only (those that read text are named).
        EncoderMismatchError: a text for vectors that another model made.
        NonFiniteError: the terms cancel out.
    """
    if not terms:
        raise InputError("An empty query finds nothing.", hint="Give a picture, a text, an item or a vector.")
    rows = np.stack([_vector(each, store, encoder) for each in terms])
    if len(terms) == 1 and terms[0].weight > 0:
        return np.asarray(rows[0], dtype=np.float32)
    weights = np.array([each.weight for each in terms])
    total = (weights[:, None] * unit(rows, name="the query's terms")).sum(axis=0, keepdims=True).astype(np.float32)
    return np.asarray(unit(total, name="the sum of the query's terms")[0] if store.metric == "cosine" else total[0])


def _vector(part: Term, store: Store, encoder: Callable[[], Encoder]) -> Vectors:
    """Return (1, d)[0]: the vector of one term."""
    rows: Vectors
    if part.kind == "item":
        rows = store.vectors(np.array([part.value]))  # the store names an id no 64 bits hold
    elif part.kind == "vector":
        rows = as_vectors(np.atleast_2d(np.asarray(part.value)), name="the query vector", dim=store.dim)
    elif part.kind == "text":
        rows = _text(str(part.value), store, encoder)
    else:
        rows = encode_all([part.value], encoder())  # type: ignore[list-item]
    return rows.reshape(-1)


def _text(words: str, store: Store, encoder: Callable[[], Encoder]) -> Vectors:
    if store.card is not None and not store.card.supports_text:
        raise no_text_tower(store.card.name)  # before the encoder is loaded
    reading = encoder()
    check_text_query(store.card or reading.card, reading.card)
    return embed_texts(reading, [words])
