"""A catalogue made by encoder A refuses B (dimension), C (preprocessing) and D (weights): library, commands, HTTP.

A, B, C and D are real encoders in files, named `python:MODULE:ENCODER` as a user names their own. Each stands once
under a name of its own, and once in A's place: there the file was edited, and the name is A's.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Encoder
from lookalike.embed.registry import encoder as find_encoder
from lookalike.errors import EncoderMismatchError, UnknownNameError
from lookalike.server.settings import Settings

from .shops import make_photos, write_picture

SOURCE = '''
import hashlib
import numpy as np
from PIL import Image
from lookalike.embed.encoder import Card

class Projection:
    """Cropped or squashed to 4 x 4, then a fixed random projection."""

    def __init__(self, name, dim, crop, seed):
        self.weights = np.random.default_rng(seed).normal(size=(48, dim))
        self.crop = crop
        self.card = Card(
            name=name, weights=hashlib.blake2b(self.weights.tobytes(), digest_size=16).hexdigest(), dim=dim,
            pooling="none", image_size=4, preprocessing=f"{crop} to 4 x 4, box filter, / 255 - 0.5",
        )

    def encode_images(self, images):
        rows = np.empty((len(images), self.card.dim), np.float32)
        for row, image in enumerate(images):
            if self.crop == "centre crop":
                height, width = image.shape[:2]
                side = min(height, width)
                top, left = (height - side) // 2, (width - side) // 2
                image = image[top : top + side, left : left + side]
            small = np.asarray(Image.fromarray(image).resize((4, 4), Image.Resampling.BOX)) / 255 - 0.5
            rows[row] = small.ravel() @ self.weights
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

'''
A = 'ENCODER = Projection("python:mine:ENCODER", 16, "squash", 1)\n'
OTHERS = {
    "B-dimension": (12, "squash", 1, "dim: 16 != 12"),
    "C-preprocessing": (
        16, "centre crop", 1,
        "preprocessing: 'squash to 4 x 4, box filter, / 255 - 0.5' != 'centre crop to 4 x 4, box filter, / 255 - 0.5'",
    ),
    "D-weights": (16, "squash", 2, "weights: "),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with A's file, pictures, and A's catalogue of them."""
    folder = tmp_path_factory.mktemp("refusals")
    make_photos(folder)
    (folder / "mine.py").write_text(SOURCE + A)
    with pytest.MonkeyPatch.context() as patch:
        step_into(folder, patch)
        with Catalogue.create(folder / "shop.la", root=folder / "photos", encoder="python:mine:ENCODER") as shop:
            shop.sync()
            labels = [path.split("/")[0] for path in shop.paths(shop.ids())]
            shop.set_columns({"label": labels}, ids=shop.ids())
    sys.modules.pop("mine")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it for one test, which is also where the test runs."""
    here = tmp_path / "here"
    shutil.copytree(made, here)
    step_into(here, monkeypatch)
    with Catalogue.open(here / "shop.la") as shop:
        shop.set_root(here / "photos")
    yield here
    for name in ("mine", "other", "planted"):
        sys.modules.pop(name, None)


def step_into(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Work in a folder whose Python files are read as they are now, here and in every process started."""
    patch.chdir(folder)
    patch.setattr(sys, "path", [*sys.path])
    patch.setattr(sys, "dont_write_bytecode", True)
    patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    importlib.invalidate_caches()


def write_other(folder: Path, which: str, *, module: str) -> str:
    """Write one of B, C, D into a module; return the difference a refusal must name."""
    dim, crop, seed, difference = OTHERS[which]
    text = f'ENCODER = Projection("python:{module}:ENCODER", {dim}, {crop!r}, {seed})\n'
    (folder / f"{module}.py").write_text(SOURCE + text)
    sys.modules.pop(module, None)
    importlib.invalidate_caches()
    return difference


def state(folder: Path) -> tuple[int, list[str], list[list[float]]]:
    with Catalogue.open(folder / "shop.la", readonly=True) as shop:
        return shop.revision, [card.digest for card in shop.cards()], shop.vectors(shop.ids()).tolist()


def test_the_encoders_are_what_their_letters_say(folder):
    def of(text: str) -> Encoder:
        (folder / "other.py").write_text(SOURCE + text)
        sys.modules.pop("other", None)
        return find_encoder("python:other:ENCODER")

    first = of(A).card
    for which, (dim, crop, seed, difference) in OTHERS.items():
        card = of(f'ENCODER = Projection("python:mine:ENCODER", {dim}, {crop!r}, {seed})\n').card
        named = {text.split(":")[0] for text in first.differences(card)}
        # another dimension is another matrix, so its weights differ too
        assert named == {"B-dimension": {"dim", "weights"}}.get(which, {difference.split(":")[0]})
        assert any(text.startswith(difference) for text in first.differences(card))


# ---- the library


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize("module", ["mine", "other"])
def test_the_library_opens_a_catalogue_by_no_other_encoder(folder, which, module):
    difference = write_other(folder, which, module=module)
    with pytest.raises(EncoderMismatchError) as caught:
        Catalogue.open(folder / "shop.la", encoder=find_encoder(f"python:{module}:ENCODER"))
    assert difference in str(caught.value)


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize("named", [None, "python:mine:ENCODER"])
def test_a_picture_is_refused_where_the_encoder_that_loads_today_did_not_make_the_vectors(folder, which, named):
    difference = write_other(folder, which, module="mine")
    picture = folder / "photos" / "red" / "0.png"
    with Catalogue.open(folder / "shop.la", encoder=named) as shop:
        for _ in range(2):  # a refusal is not forgotten
            with pytest.raises(EncoderMismatchError) as caught:
                shop.search(picture)
            assert difference in str(caught.value)
        [found] = shop.search(int(shop.ids()[0]), k=3)
        assert len(found) == 3  # an item needs no encoder


@pytest.mark.parametrize("which", OTHERS)
def test_a_sync_that_must_embed_is_refused_and_changes_nothing(folder, which):
    difference = write_other(folder, which, module="mine")
    write_picture(folder / "photos" / "red" / "new.png", 2, seed=99)
    (folder / "photos" / "blue" / "0.png").unlink()
    before = state(folder)
    with Catalogue.open(folder / "shop.la") as shop, pytest.raises(EncoderMismatchError) as caught:
        shop.sync()
    assert difference in str(caught.value)
    assert state(folder) == before


def test_what_was_refused_is_answered_again_by_a(folder):
    write_other(folder, "D-weights", module="mine")
    picture = folder / "photos" / "red" / "0.png"
    with Catalogue.open(folder / "shop.la") as shop:
        with pytest.raises(EncoderMismatchError):
            shop.search(picture)
        (folder / "mine.py").write_text(SOURCE + A)
        sys.modules.pop("mine")
        assert shop.search(picture, k=1)[0].paths == ("red/0.png",)


# ---- the commands

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "search": lambda name: ["search", "shop.la", "photos/red/0.png", "--encoder", name],
    "search an item": lambda name: ["search", "shop.la", "--item", "1", "--encoder", name],
    "sync": lambda name: ["sync", "shop.la", "--encoder", name],
    "eval": lambda name: ["eval", "shop.la", "--encoder", name],
}


@pytest.fixture
def run(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process."""
    from lookalike.cli.main import run as main

    def here(*words: str) -> tuple[int, str, str]:
        capfdbinary.readouterr()
        code = main(list(words))
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return here


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize("module", ["mine", "other"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_name_another_encoder_are_refused_with_the_difference(folder, run, command, module, which):
    difference = write_other(folder, which, module=module)
    before = state(folder)
    code, out, err = run(*COMMANDS[command](f"python:{module}:ENCODER"))
    assert (code, out) == (2, "")
    assert difference in err
    assert "Traceback" not in err
    assert state(folder) == before


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize(
    "words",
    [("search", "shop.la", "photos/red/0.png"), ("sync", "shop.la"), ("index", "shop.la", "photos")],
    ids=" ".join,
)
def test_commands_that_name_none_are_refused_where_they_must_embed(folder, run, words, which):
    difference = write_other(folder, which, module="mine")
    write_picture(folder / "photos" / "red" / "new.png", 2, seed=99)
    before = state(folder)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert difference in err
    assert state(folder) == before


@pytest.mark.parametrize("which", OTHERS)
def test_index_refuses_another_encoder_of_the_same_name_even_where_nothing_is_new(folder, run, which):
    difference = write_other(folder, which, module="mine")
    before = state(folder)
    code, out, err = run("index", "shop.la", "photos", "--encoder", "python:mine:ENCODER")
    assert (code, out) == (2, "")
    assert difference in err
    assert state(folder) == before


@pytest.mark.parametrize("which", OTHERS)
def test_index_keeps_an_encoder_of_another_name_beside_the_first_and_never_mixes_them(folder, run, which):
    write_other(folder, which, module="other")
    _, cards, vectors = state(folder)
    code, _, err = run("index", "shop.la", "photos", "--encoder", "python:other:ENCODER")
    assert (code, "added to shop.la, beside python:mine:ENCODER" in err) == (0, True)
    assert state(folder)[2] == vectors
    assert state(folder)[1][:1] == cards
    with Catalogue.open("shop.la", encoder="python:other:ENCODER") as shop:
        assert len(shop) == len(vectors)
        assert shop.dim == OTHERS[which][0]


def test_a_runs_every_command_under_its_own_name(run):
    for command in COMMANDS.values():
        code, _, err = run(*command("python:mine:ENCODER"))
        assert code == 0, err
    assert run("index", "shop.la", "photos", "--encoder", "python:mine:ENCODER")[0] == 0


def test_stored_vectors_are_measured_and_searched_by_item_where_the_encoder_is_gone(folder, run):
    (folder / "mine.py").unlink()
    importlib.invalidate_caches()
    for words in (("eval", "shop.la"), ("search", "shop.la", "--item", "1")):
        code, _, err = run(*words, "--encoder", "python:mine:ENCODER")
        assert code == 0, err
    code, _, err = run("search", "shop.la", "photos/red/0.png")
    assert (code, "mine" in err) == (2, True)


def test_an_object_whose_card_has_a_name_of_its_own_is_known_by_its_file_too(folder, run):
    (folder / "mine.py").write_text(SOURCE + 'ENCODER = Projection("acme/net", 16, "squash", 1)\n')
    named = ("--encoder", "python:mine:ENCODER")
    assert run("index", "own.la", "photos", *named)[0] == 0
    write_picture(folder / "photos" / "red" / "new.png", 2, seed=99)
    assert run("sync", "own.la")[1].startswith("added 1 ")  # lookalike.toml says how it is loaded
    assert run("index", "own.la", "photos", *named)[1].startswith("added 0 ")
    code, out, _ = run("search", "own.la", "photos/red/0.png", "--format", "paths", "-k", "1")
    assert (code, out.strip().endswith("red/0.png")) == (0, True)
    with Catalogue.open("own.la") as shop:
        assert [card.name for card in shop.cards()] == ["acme/net"]
        with pytest.raises(UnknownNameError, match="python:MODULE:OBJECT"):
            shop.search("photos/red/0.png")


# ---- over HTTP


@pytest.mark.parametrize("which", OTHERS)
@pytest.mark.parametrize("module", ["mine", "other"])
def test_serve_starts_with_no_other_encoder(folder, run, module, which):
    difference = write_other(folder, which, module=module)
    code, out, err = run("serve", "shop.la", "--port", "0", "--no-browser", "--encoder", f"python:{module}:ENCODER")
    assert (code, out) == (2, "")
    assert difference in err


def test_a_server_of_an_object_with_a_name_of_its_own_answers_for_pictures(folder, run, serve):
    (folder / "mine.py").write_text(SOURCE + 'ENCODER = Projection("acme/net", 16, "squash", 1)\n')
    assert run("index", "own.la", "photos", "--encoder", "python:mine:ENCODER")[0] == 0
    client = serve(Settings(catalogue=folder / "own.la", port=0, threads=1, encoder="python:mine:ENCODER"))
    answer = client.upload("search", [(folder / "photos" / "red" / "0.png").read_bytes()], '{"k": 1}')
    assert (answer.status, answer.json["candidates"][0]["path"]) == (200, "red/0.png")
    assert client.finished("sync", {})["state"] == "done"


@pytest.mark.parametrize("which", OTHERS)
def test_a_server_refuses_pictures_with_the_difference_and_still_answers_for_items(folder, serve, which):
    difference = write_other(folder, which, module="mine")
    client = serve(Settings(catalogue=folder / "shop.la", port=0, threads=1))
    picture = (folder / "photos" / "red" / "0.png").read_bytes()
    for _ in range(2):
        refused = client.upload("search", [picture], '{"k": 3}')
        assert (refused.status, refused.headers["content-type"]) == (422, "application/problem+json")
        assert refused.json["title"] == "EncoderMismatchError"
        assert difference in refused.json["detail"]
        assert refused.json["hint"]
    assert client.post("search", {"terms": [{"item": 1}], "k": 3}).status == 200


@pytest.mark.parametrize("which", OTHERS)
def test_a_server_refuses_to_sync_by_another_encoder_and_changes_nothing(folder, serve, which):
    difference = write_other(folder, which, module="mine")
    write_picture(folder / "photos" / "red" / "new.png", 2, seed=99)
    before = state(folder)
    client = serve(Settings(catalogue=folder / "shop.la", port=0, threads=1))
    job = client.finished("sync", {})
    assert job["state"] == "failed"
    assert difference in json.dumps(job["problem"], ensure_ascii=False).replace('\\"', '"')
    assert state(folder) == before


@pytest.mark.parametrize("which", OTHERS)
def test_a_request_that_names_another_encoder_is_refused_and_loads_no_module(folder, serve, which):
    write_other(folder, which, module="planted")
    client = serve(Settings(catalogue=folder / "shop.la", port=0, threads=1))
    picture = (folder / "photos" / "red" / "0.png").read_bytes()
    for refused in (
        client.upload("search", [picture], '{"k": 3, "encoder": "python:planted:ENCODER"}'),
        client.post("search", {"terms": [{"item": 1}], "encoder": "python:planted:ENCODER"}),
    ):
        assert (refused.status, refused.json["title"]) == (422, "EncoderMismatchError")
        assert "python:mine:ENCODER, not of 'python:planted:ENCODER'" in refused.json["detail"]
    assert "planted" not in sys.modules  # a request must not choose what Python imports


def test_a_server_answers_for_a(folder, serve):
    client = serve(Settings(catalogue=folder / "shop.la", port=0, threads=1))
    answer = client.upload("search", [(folder / "photos" / "red" / "0.png").read_bytes()], '{"k": 1}')
    assert (answer.status, answer.json["candidates"][0]["path"]) == (200, "red/0.png")
