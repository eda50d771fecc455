"""A name, a function, an object or an array: each finds its encoder, or one sentence says why not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lookalike.arrays import Rgb
from lookalike.embed.builtin import BuiltinEncoder
from lookalike.embed.encoder import Card
from lookalike.embed.function import FunctionEncoder
from lookalike.embed.ready import VectorsEncoder
from lookalike.embed.registry import SOURCES, encoder, known_models
from lookalike.errors import InputTypeError, NotFoundError, UnknownNameError


class Own:
    """A user's encoder, by the protocol alone."""

    card = Card(name="own", weights="1", dim=2, pooling="none")

    def encode_images(self, images: Sequence[Rgb]) -> np.ndarray:
        return np.ones((len(images), 2), dtype=np.float32)


def mean_colour(images: Sequence[Rgb]) -> list[np.ndarray]:
    return [image.mean(axis=(0, 1)) for image in images]


def test_the_built_in_name_gives_the_built_in_encoder() -> None:
    found = encoder("builtin:effnet-lite0", normalise=False, threads=1)
    assert isinstance(found, BuiltinEncoder)
    assert not found.card.normalised


def test_every_known_model_can_be_made_and_its_row_tells_the_truth() -> None:
    for row in known_models():
        assert row.name.partition(":")[0] in SOURCES
        if not row.on_disk:
            continue
        card = encoder(row.name).card
        assert (card.name, card.dim, card.image_size, card.licence) == (
            row.name,
            row.dim,
            row.image_size,
            row.licence,
        )


@pytest.mark.parametrize(
    "name", ["builtin:effnet-lit0", "bultin:effnet-lite0", "effnet-lite0", "builtin:", "builtin", "", "python:"]
)
def test_an_unknown_name_is_answered_with_the_right_spellings(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        encoder(name)
    assert f"There is no encoder named {name!r}." in str(caught.value)
    assert "builtin:effnet-lite0, python:PACKAGE.MODULE:CALLABLE, run:FOLDER, PATH.npy" in str(caught.value)


@pytest.mark.parametrize("name", ["builtin:effnet-lit0", "bultin:effnet-lite0", "effnet-lite0"])
def test_a_near_miss_is_guessed(name: str) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'builtin:effnet-lite0'"):
        encoder(name)


def test_an_encoder_object_comes_back_as_it_is() -> None:
    own = Own()
    assert encoder(own) is own


def test_a_function_and_an_array_are_wrapped() -> None:
    assert isinstance(encoder(mean_colour), FunctionEncoder)
    assert isinstance(encoder(np.eye(3)), VectorsEncoder)


@pytest.mark.parametrize("wrong", [None, 3, ["builtin:effnet-lite0"]])
def test_anything_else_is_refused_by_its_type(wrong: object) -> None:
    with pytest.raises(InputTypeError, match=f"not {type(wrong).__name__}"):
        encoder(wrong)  # type: ignore[arg-type]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working folder, which a console script does not see by itself."""
    (tmp_path / "lookalike_own_encoder.py").write_text(
        "import numpy as np\n"
        "from lookalike.embed.encoder import Card\n"
        "def mean_colour(images):\n"
        "    return np.stack([i.mean(axis=(0, 1)) for i in images])\n"
        "class Own:\n"
        "    card = Card(name='own', weights='1', dim=2, pooling='none')\n"
        "    def encode_images(self, images):\n"
        "        return np.ones((len(images), 2), np.float32)\n"
        "own = Own()\n"
        "number = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "lookalike_own_encoder", raising=False)
    return "lookalike_own_encoder"


def test_a_function_is_found_by_module_and_name(module: str) -> None:
    found = encoder(f"python:{module}:mean_colour")
    assert found.card.name == f"python:{module}:mean_colour"
    assert found.card.dim == 3


def test_an_encoder_object_is_found_by_module_and_name(module: str) -> None:
    assert encoder(f"python:{module}:own").card.name == "own"


def test_a_wrong_attribute_lists_the_callables(module: str) -> None:
    with pytest.raises(UnknownNameError, match=r"no callable in lookalike_own_encoder named 'mean_color'.*mean_colour"):
        encoder(f"python:{module}:mean_color")


def test_a_wrong_module_lists_the_files_beside(module: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"no Python module named '{module}s'.*'{module}'"):
        encoder(f"python:{module}s:mean_colour")


@pytest.mark.parametrize("attribute", ["number", "Own"])
def test_what_is_no_function_and_no_encoder_object_is_refused(module: str, attribute: str) -> None:
    with pytest.raises(InputTypeError, match="neither a function"):
        encoder(f"python:{module}:{attribute}")


def test_a_module_that_lacks_something_itself_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lookalike_broken_encoder.py").write_text("import not_installed_anywhere\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        encoder("python:lookalike_broken_encoder:f")


def test_an_npy_path_gives_its_vectors(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(4, dtype=np.float32))
    found = encoder(tmp_path / "v.npy")
    assert isinstance(found, VectorsEncoder)
    np.testing.assert_array_equal(found.vectors, np.eye(4))
    with pytest.raises(NotFoundError, match=r"missing\.npy"):
        encoder(tmp_path / "missing.npy")
