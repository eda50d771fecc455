"""A bare function as an encoder: checked, scaled once, and told apart from its edited self."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from lookalike.embed.function import FunctionEncoder
from lookalike.errors import InputTypeError, ShapeError

PICTURE = np.full((4, 6, 3), 10, dtype=np.uint8)


def first_pixel(images):
    return [image[0, 0] for image in images]


def defined(source: str, filename: str):
    """Define `f` from text in a way that lets Python find the text again."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, object] = {"__name__": "some_module"}
    exec(compile(source, filename, "exec"), scope)
    return scope["f"]


def test_rows_are_scaled_to_length_one_once() -> None:
    rows = FunctionEncoder(lambda images: [[3.0, 4.0]] * len(images)).encode_images([PICTURE] * 2)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8]] * 2, rtol=1e-7)


def test_raw_rows_are_left_alone_on_request() -> None:
    encoder = FunctionEncoder(lambda images: [[3.0, 4.0]] * len(images), unit_rows=False)
    assert encoder.encode_images([PICTURE]).tolist() == [[3.0, 4.0]]
    assert not encoder.card.normalised


def test_the_card_learns_the_dimension_from_a_grey_picture_and_not_twice() -> None:
    calls = []

    def function(images):
        calls.append(images[0].shape)
        return np.ones((len(images), 5))

    encoder = FunctionEncoder(function)
    assert encoder.card.dim == 5
    assert encoder.card.dim == 5
    assert calls == [(224, 224, 3)]


def test_a_given_dimension_runs_nothing() -> None:
    encoder = FunctionEncoder(lambda images: pytest.fail("called"), dim=7)
    assert encoder.card.dim == 7
    assert encoder.encode_images([]).shape == (0, 7)


def test_the_name_is_module_and_function() -> None:
    assert FunctionEncoder(first_pixel).card.name == f"python:{__name__}:first_pixel"


def test_an_edited_function_is_another_encoder_and_an_equal_one_the_same() -> None:
    one = defined("def f(images):\n    return [[1.0, 2.0] for _ in images]\n", "<one>")
    same = defined("def f(images):\n    return [[1.0, 2.0] for _ in images]\n", "<same>")
    other = defined("def f(images):\n    return [[1.0, 3.0] for _ in images]\n", "<other>")
    digests = [FunctionEncoder(function).card.digest for function in (one, same, other)]
    assert digests[0] == digests[1] != digests[2]


def test_a_callable_object_is_named_by_its_class() -> None:
    class Model:
        def __call__(self, images):
            return np.ones((len(images), 2))

    assert FunctionEncoder(Model()).card.name.endswith("Model")
    assert FunctionEncoder(Model()).card.dim == 2


@pytest.mark.parametrize(
    ("returned", "shape"), [(np.ones(3), r"\(3,\)"), (np.ones((1, 3)), r"\(1, 3\)"), (np.ones((2, 0)), r"\(2, 0\)")]
)
def test_anything_but_one_row_a_picture_is_refused(returned: np.ndarray, shape: str) -> None:
    with pytest.raises(ShapeError, match=rf"returned shape {shape} for 2 pictures"):
        FunctionEncoder(lambda images: returned).encode_images([PICTURE] * 2)


def test_text_is_no_vector() -> None:
    with pytest.raises(InputTypeError, match="expected numbers"):
        FunctionEncoder(lambda images: [["a", "b"]]).encode_images([PICTURE])
    with pytest.raises(InputTypeError, match="must be callable, not int"):
        FunctionEncoder(3)  # type: ignore[arg-type]


def test_a_tensor_on_its_graph_is_fetched_before_numpy_sees_it() -> None:
    class Tensor:  # what torch requires of its users: detach, cpu, float, in this order
        def __init__(self, steps: tuple[str, ...] = ()) -> None:
            self.steps = steps

        def __getattr__(self, step: str):
            if step not in {"detach", "cpu", "float"}:
                raise AttributeError(step)
            return lambda: Tensor((*self.steps, step))

        def __array__(self, dtype=None, copy=None) -> np.ndarray:
            if self.steps != ("detach", "cpu", "float"):
                raise RuntimeError("can't call numpy() on a tensor that requires grad")
            return np.array([[3.0, 4.0]])

    rows = FunctionEncoder(lambda images: Tensor()).encode_images([PICTURE])
    np.testing.assert_allclose(rows, [[0.6, 0.8]], rtol=1e-6)
