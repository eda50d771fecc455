"""Words as queries: templates, refusals, and text only against vectors of the same model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from lookalike.arrays import Rgb, Vectors
from lookalike.embed.encoder import Card
from lookalike.embed.registry import encoder
from lookalike.embed.text import TEMPLATES, check_text_query, embed_texts, text_tower
from lookalike.errors import EncoderMismatchError, InputError, InputTypeError, UnknownNameError

CARD = Card(name="hf:org/clip", weights="1", dim=3, pooling="head", preprocessing="p", supports_text=True)


class Letters:
    """Counts of a, b and all letters: a text tower whose vectors can be checked by hand."""

    card = CARD

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        return np.ones((len(images), 3), dtype=np.float32)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        rows = [[text.count("a"), text.count("b"), len(text)] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 3)


def test_one_template_is_the_text_itself() -> None:
    np.testing.assert_allclose(embed_texts(Letters(), ["ab"]), [[1 / 6**0.5, 1 / 6**0.5, 2 / 6**0.5]], atol=1e-7)


def test_several_templates_average_unit_vectors() -> None:
    found = embed_texts(Letters(), ["b", "a"], templates=["{}", "a{}"])
    unit = [np.array(row) / np.linalg.norm(row) for row in ([0, 1, 1], [1, 1, 2])]
    mean = (unit[0] + unit[1]) / 2
    np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), atol=1e-7)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_braces_in_a_query_are_text() -> None:
    np.testing.assert_allclose(
        embed_texts(Letters(), ["a{b}"], templates=["{}"]), embed_texts(Letters(), ["ab{}"], templates=["{}"])
    )


def test_no_texts_give_no_rows() -> None:
    assert embed_texts(Letters(), [], templates="ensemble").shape == (0, 3)


def test_every_set_of_templates_has_one_slot_a_template() -> None:
    for prompts in TEMPLATES.values():
        assert all(prompt.count("{}") == 1 for prompt in prompts)


def test_words_to_an_encoder_of_pictures_are_refused_and_others_named() -> None:
    with pytest.raises(InputError) as caught:
        embed_texts(encoder("builtin:effnet-lite0"), ["a red shoe"])
    assert "builtin:effnet-lite0 reads pictures only" in str(caught.value)
    assert "open_clip:ViT-B-32/openai" in str(caught.value)
    assert text_tower(Letters()).card is CARD


@pytest.mark.parametrize(
    ("texts", "templates", "error", "said"),
    [
        ("a red shoe", "plain", InputTypeError, "not as one str"),
        (["a", 3], "plain", InputTypeError, "Text 1 is a int"),
        (["a"], "plane", UnknownNameError, "Did you mean 'plain'"),
        (["a"], ["a photo"], InputError, r"'a photo' needs one \{\}"),
        (["a"], [], InputError, r"needs one \{\}"),
    ],
)
def test_wrong_texts_and_templates_are_refused(texts: object, templates: object, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        embed_texts(Letters(), texts, templates=templates)  # type: ignore[arg-type]


def test_words_find_only_vectors_of_the_same_model() -> None:
    check_text_query(CARD, dataclasses.replace(CARD, licence="other"))
    with pytest.raises(EncoderMismatchError, match="weights: '1' != '2'"):
        check_text_query(CARD, dataclasses.replace(CARD, weights="2"))
    with pytest.raises(InputError, match="reads pictures only"):
        check_text_query(dataclasses.replace(CARD, supports_text=False), CARD)
