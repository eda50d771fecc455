"""Words as queries: checks, prompt templates, and what an encoder without a text tower answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lookalike.arrays import Vectors
from lookalike.embed.encoder import Card, Encoder, TextEncoder
from lookalike.embed.known import text_encoders
from lookalike.embed.rows import normalise
from lookalike.errors import EncoderMismatchError, InputError, InputTypeError, UnknownNameError

SLOT = "{}"
TEMPLATES: Mapping[str, Sequence[str]] = {
    "plain": (SLOT,),
    "photo": ("a photo of {}.",),
    "ensemble": (
        "a photo of {}.",
        "a close-up photo of {}.",
        "a bright photo of {}.",
        "a dark photo of {}.",
        "a cropped photo of {}.",
        "a picture showing {}.",
        "{}",
    ),
    "product": ("{}", "a product photo of {}.", "a photo of {} on a white background.", "{} for sale."),
}
"""Sets of prompts by name. Several prompts, their vectors averaged, are steadier than one (Radford et al., ICML 2021,
section 3.1.4)."""
_NAMED = 4


def embed_texts(encoder: Encoder, texts: Sequence[str], *, templates: str | Sequence[str] = "plain") -> Vectors:
    """Encode texts, each through every template, averaged: (n, d) float32, unit rows.

    `templates` is the name of a set in `TEMPLATES`, or the templates themselves, each with one `{}`.

    Raises:
        InputError: the encoder reads no text (encoders that do are named), or a template without `{}`.
        InputTypeError: not a list of strings.
        UnknownNameError: no set of that name.
    """
    prompts = _prompts(templates)
    listed = checked(texts)
    tower = text_tower(encoder)
    written = [prompt.replace(SLOT, text) for text in listed for prompt in prompts]
    rows = normalise(tower.encode_texts(written))
    if len(prompts) == 1:
        return rows
    mean = rows.reshape(len(listed), len(prompts), rows.shape[1] if rows.size else encoder.card.dim).mean(
        axis=1, dtype=np.float64
    )
    return normalise(mean.astype(np.float32))


def text_tower(encoder: Encoder) -> TextEncoder:
    """Return the encoder as one that reads text.

    Raises:
        InputError: it reads pictures only; encoders that read text are named.
    """
    if encoder.card.supports_text and isinstance(encoder, TextEncoder):
        return encoder
    raise no_text_tower(encoder.card.name)


def no_text_tower(name: str) -> InputError:
    """Return the refusal of a text query to an encoder of pictures only."""
    others = ", ".join(text_encoders()[:_NAMED])
    return InputError(
        f"{name} reads pictures only, so it cannot be searched with words.",
        hint=f"Encoders that read both: {others}; index the pictures with one of them.",
    )


def check_text_query(stored: Card, reading: Card) -> None:
    """Let a text query through only where the same model made the stored vectors.

    Raises:
        InputError: the stored vectors come from an encoder of pictures only.
        EncoderMismatchError: from another model than the one that is to read the text; every difference is named.
    """
    if not stored.supports_text:
        raise no_text_tower(stored.name)
    if differing := stored.differences(reading):
        raise EncoderMismatchError(
            f"The vectors were made by {stored.name}, and {reading.name} is another encoder: {'; '.join(differing)}.",
            hint=f"Search with {stored.name}, or index again with {reading.name}.",
        )


def checked(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list.

    Raises:
        InputTypeError: one string instead of a list, or an entry that is none.
    """
    if isinstance(texts, str):
        raise InputTypeError("Texts must come as a list, not as one str.", hint="Write [text] for a single one.")
    listed = list(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputTypeError(f"Text {place} is a {type(text).__name__}, not a str.")
    return listed


def _prompts(templates: str | Sequence[str]) -> Sequence[str]:
    if isinstance(templates, str):
        if templates not in TEMPLATES:
            raise UnknownNameError("set of prompt templates", templates, TEMPLATES)
        return TEMPLATES[templates]
    listed = checked(templates)
    bad = [template for template in listed if template.count(SLOT) != 1]
    if bad or not listed:
        raise InputError(f"The template {bad[0] if bad else ''!r} needs one {SLOT} for the words.")
    return listed
