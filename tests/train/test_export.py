"""A finished run is an encoder without torch: the same vectors through numpy, through ONNX and from torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")
pytest.importorskip("accelerate")
onnx = pytest.importorskip("onnx")

from lookalike.embed.builtin import BuiltinEncoder  # noqa: E402
from lookalike.embed.encoder import is_staged  # noqa: E402
from lookalike.embed.registry import encoder  # noqa: E402
from lookalike.embed.run import LinearHead  # noqa: E402
from lookalike.errors import EncoderMismatchError, InputError, NotFoundError, ShapeError  # noqa: E402
from lookalike.train.material import Material  # noqa: E402
from lookalike.train.run import train  # noqa: E402
from lookalike.train.settings import HeadSettings, Settings  # noqa: E402

NAME = "builtin:effnet-lite0"


def pictures(count=24, side=48):
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, size=(6, 3))
    noise = rng.integers(0, 60, size=(count, side, side + 9, 3))
    return [np.clip(colours[i % 6] + noise[i] - 30, 0, 255).astype(np.uint8) for i in range(count)]


@pytest.fixture(scope="module", params=[1, 2], ids=["one layer", "two layers"])
def run(request, tmp_path_factory):
    base = BuiltinEncoder(threads=1)
    labels = [f"colour {i % 6}" for i in range(24)]
    material = Material(vectors=base.encode_images(pictures()), labels=labels, encoder=NAME, card=base.card)
    head = HeadSettings(dim=16, layers=request.param, hidden=32)
    folder = tmp_path_factory.mktemp("runs") / "colours"
    settings = Settings(epochs=2, classes=3, per_class=3, head=head, threads=1)
    return train(material, settings, folder=folder)


def test_a_run_encodes_pictures_as_the_head_behind_the_frozen_encoder_does(run):
    opened = encoder(f"run:{run.folder}")
    assert is_staged(opened)
    found = opened.encode_images(pictures())
    assert np.abs(found - run.encode(run.material.vectors)).max() < 1e-6
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert (opened.encode_prepared([opened.prepare(p) for p in pictures()[:3]]) == found[:3]).all()
    assert np.abs(opened.encode_images(pictures()[5:6]) - found[5:6]).max() == 0
    assert (opened.card.dim, opened.card.pooling, opened.card.name) == (16, "head", "run:colours")


def test_the_composed_network_gives_the_same_vectors_without_the_package(run):
    import onnxruntime

    session = onnxruntime.InferenceSession(run.folder / "model.onnx", providers=["CPUExecutionProvider"])
    opened = encoder(f"run:{run.folder}")
    prepared = np.stack([opened.prepare(picture) for picture in pictures()])
    found = session.run(None, {"pixels": prepared})[0]
    assert np.abs(found - opened.encode_images(pictures())).max() < 1e-5


def test_a_run_opens_and_encodes_without_torch(run):
    script = (
        "import sys, numpy as np\n"
        "from lookalike.embed.registry import encoder\n"
        f"print(encoder({f'run:{run.folder}'!r}).encode_images([np.zeros((40, 40, 3), np.uint8)]).shape)\n"
        "assert 'torch' not in sys.modules and 'onnx' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("(1, 16)\n", 0), done.stderr


def test_the_run_says_what_it_was_made_of_and_what_it_was_shown_to_do(run):
    described = json.loads((run.folder / "run.json").read_text())
    assert described["base"]["encoder"] == NAME
    assert described["base"]["card"]["digest"] == BuiltinEncoder().card.digest
    assert described["settings"]["loss"] == {
        "name": "triplet", "margin": 0.2, "squared_distance": False, "swap": False, "smooth": False,
    }  # fmt: skip
    held = described["result"]["held_out"]
    assert held["verdict"] == run.verdict.sentence
    assert set(held["paired"]) == {"recall@1", "recall@5", "recall@10", "map"}
    assert held["protocol"]["digest"] == run.measured["protocol"]["digest"]
    card = (run.folder / "README.md").read_text()
    assert card.startswith("# run:colours\n\nVectors of 16 values, cosine. Trained from `builtin:effnet-lite0`")
    assert run.verdict.sentence in card
    assert "Apache-2.0" in card


def test_two_runs_with_other_weights_are_other_encoders(run, tmp_path):
    settings = Settings(**{**vars(run.settings), "seed": 5})
    other = train(run.material, settings, folder=tmp_path / "colours")
    cards = [encoder(f"run:{one.folder}").card for one in (run, other)]
    assert cards[0].digest != cards[1].digest
    assert [line.split(":")[0] for line in cards[0].differences(cards[1])] == ["weights"]


def _changed(run, tmp_path, change):
    folder = tmp_path / "changed"
    folder.mkdir()
    for name in ("run.json", "head.npz"):
        (folder / name).write_bytes((run.folder / name).read_bytes())
    described = json.loads((folder / "run.json").read_text())
    change(described)
    (folder / "run.json").write_text(json.dumps(described))
    return f"run:{folder}"


def test_another_frozen_encoder_than_the_one_trained_on_is_refused(run, tmp_path):
    def change(described):
        described["base"]["card"]["weights"] = "0" * 32

    with pytest.raises(EncoderMismatchError, match="weights"):
        encoder(_changed(run, tmp_path, change))


def test_a_folder_that_is_no_finished_run_is_refused(run, tmp_path):
    with pytest.raises(NotFoundError, match="no such folder"):
        encoder(f"run:{tmp_path / 'nowhere'}")
    with pytest.raises(NotFoundError, match="not finished"):
        encoder(f"run:{tmp_path}")
    with pytest.raises(InputError, match="format"):
        encoder(_changed(run, tmp_path, lambda described: described.update(format=99)))
    (Path(tmp_path) / "changed" / "run.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        encoder(f"run:{tmp_path / 'changed'}")


def test_a_head_of_ready_vectors_names_what_it_needs(tmp_path):
    rng = np.random.default_rng(0)
    made = Material(vectors=rng.normal(size=(24, 10)), labels=np.repeat(np.arange(6), 4).tolist())
    settings = Settings(epochs=1, classes=3, per_class=3, head=HeadSettings(dim=4), threads=1)
    trained = train(made, settings, folder=tmp_path / "run")
    with pytest.raises(InputError, match="ready vectors"):
        encoder(f"run:{tmp_path / 'run'}")
    head = LinearHead.load(tmp_path / "run" / "head.npz")
    assert np.abs(head(made.vectors) - trained.encode(made.vectors)).max() < 1e-6
    with pytest.raises(ShapeError, match="10 values, not 3"):
        head(np.ones((1, 3), dtype=np.float32))
