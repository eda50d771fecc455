"""A name with options: read, written back, and refused where it is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike.embed.asked import DTYPES, POOLINGS, Asked
from lookalike.embed.steps import CROPS
from lookalike.errors import InputError, UnknownNameError


@given(
    crop=st.sampled_from(sorted(CROPS)),
    pooling=st.sampled_from(POOLINGS),
    dtype=st.sampled_from(DTYPES),
    flip=st.booleans(),
    size=st.integers(0, 999),
    model=st.text(st.characters(categories=("L", "N"), include_characters="/._- "), min_size=1),
)
def test_a_full_name_is_read_back_as_it_was(
    crop: str, pooling: str, dtype: str, flip: bool, size: int, model: str
) -> None:
    asked = Asked(source="hf", model=model, crop=crop, pooling=pooling, dtype=dtype, flip=flip, size=size)
    source, _, rest = asked.full_name.partition(":")
    assert Asked.parse(source, rest) == asked


def test_the_cards_name_keeps_what_changes_a_vector_and_nothing_else() -> None:
    asked = Asked.parse("timm", "m?dtype=float16&device=cuda:1&flip=yes&crop=pad")
    assert asked.name == "timm:m?crop=pad&flip=yes"
    assert asked.full_name == "timm:m?crop=pad&flip=yes&device=cuda:1&dtype=float16"


def test_a_question_mark_in_a_path_is_no_option() -> None:
    assert Asked.parse("onnx", "/what?/model").model == "/what?/model"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("m?crop=center", UnknownNameError, r"no crop of an encoder named 'center'. Did you mean 'centre'"),
        ("m?flips=yes", UnknownNameError, r"no encoder option named 'flips'. Did you mean 'flip'"),
        ("m?flip=maybe", UnknownNameError, "no flip of an encoder named 'maybe'"),
        ("m?size=big", InputError, "size='big' is no whole number of pixels"),
        ("m?size=", InputError, "has no value"),
        ("m?crop=pad&crop=pad", InputError, "is given twice"),
        ("m?device=gpu", UnknownNameError, "no device of an encoder named 'gpu'"),
    ],
)
def test_a_wrong_option_is_answered_with_the_right_ones(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Asked.parse("timm", text)
