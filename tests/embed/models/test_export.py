"""A model exported to ONNX gives the original's vectors without torch, for pictures and words."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.embed.hub import MissingWeightsError
from lookalike.embed.registry import encoder
from lookalike.errors import InputError, InputTypeError, LookalikeError

for module in ("torch", "torchvision", "timm", "open_clip", "transformers", "onnx", "onnxscript"):
    pytest.importorskip(module, reason="exporting needs the extras timm, open-clip, hf and train")

from lookalike.embed.onnx_export import export, quantise  # noqa: E402

from . import tiny  # noqa: E402

ODD = [(50, 80), (48, 48), (301, 97), (1, 1), (3, 200)]
MODELS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "timm": ("timm:local-dir:", lambda folder: tiny.save_timm(folder, "resnet10t")),
    "dinov2": ("hf:", tiny.save_dinov2),
    "dinov3": ("hf:", tiny.save_dinov3),
    "clip": ("hf:", tiny.save_clip),
    "siglip": ("hf:", tiny.save_siglip),
    "open_clip": ("open_clip:local-dir:", tiny.save_open_clip),
}
TEXTS = ["a photo of a red shoe", "two cups on the table", "", "CAPITALS, commas & it's 北京", "very long text " * 30]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """Each model, and the folder it was exported to; made once."""
    made: dict[str, tuple[Any, Path]] = {}

    def get(kind: str) -> tuple[Any, Path]:
        if kind not in made:
            root = tmp_path_factory.mktemp(kind)
            prefix, save = MODELS[kind]
            original = encoder(f"{prefix}{save(root / 'source')}")
            export(original, root / "onnx", pictures=tiny.random_pictures(*ODD))
            made[kind] = original, root / "onnx"
        return made[kind]

    return get


@pytest.mark.parametrize("kind", MODELS)
def test_pictures_and_words_come_out_as_from_the_original(kind: str, exported: Any) -> None:
    original, folder = exported(kind)
    copy: Any = encoder(f"onnx:{folder}")
    images = tiny.random_pictures(*ODD)
    np.testing.assert_allclose(copy.encode_images(images), original.encode_images(images), atol=1e-3, rtol=0)
    assert (copy.card.dim, copy.card.supports_text) == (original.card.dim, original.card.supports_text)
    if original.card.supports_text:
        np.testing.assert_allclose(copy.encode_texts(TEXTS), original.encode_texts(TEXTS), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["dinov3", "open_clip"])
def test_an_exported_model_needs_no_torch(kind: str, exported: Any, tmp_path: Path) -> None:
    original, folder = exported(kind)
    script = (
        "import sys\n"
        "for name in ('torch', 'torchvision', 'timm', 'open_clip', 'transformers', 'onnx'): sys.modules[name] = None\n"
        "import numpy as np\n"
        "from lookalike.embed.registry import encoder\n"
        f"found = encoder('onnx:{folder}')\n"
        "vectors = [found.encode_images([np.full((60, 90, 3), 77, np.uint8)])]\n"
        "vectors += [found.encode_texts(['a red shoe'])] if found.card.supports_text else []\n"
        f"np.save({str(tmp_path / 'v.npy')!r}, np.concatenate(vectors))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    expected = [original.encode_images([np.full((60, 90, 3), 77, np.uint8)])]
    expected += [original.encode_texts(["a red shoe"])] if original.card.supports_text else []
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), np.concatenate(expected), atol=1e-3, rtol=0)


def test_an_export_is_another_encoder_than_its_original(exported: Any) -> None:
    original, folder = exported("timm")
    copy = encoder(f"onnx:{folder / 'model.onnx'}")
    differing = {line.partition(":")[0] for line in copy.card.differences(original.card)}
    assert differing == {"name", "weights"}
    assert copy.card.licence == original.card.licence


def test_the_network_takes_any_number_of_pictures(exported: Any) -> None:
    import onnxruntime

    _, folder = exported("siglip")
    copy: Any = encoder(f"onnx:{folder}")
    images = tiny.random_pictures(*ODD)
    batch = np.stack([copy.prepare(image) for image in images])
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    rows = session.run(None, {"pixels": batch})[0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, copy.encode_images(images), atol=1e-5, rtol=0)


def test_an_eight_bit_copy_is_smaller_and_another_encoder(exported: Any, tmp_path: Path) -> None:
    original, folder = exported("dinov2")
    small = quantise(folder, tmp_path / "int8")
    assert (small / "model.onnx").stat().st_size < (folder / "model.onnx").stat().st_size
    images = tiny.random_pictures(*ODD)
    difference = np.abs(encoder(f"onnx:{small}").encode_images(images) - original.encode_images(images)).max()
    assert 1e-6 < difference < 0.1
    assert encoder(f"onnx:{small}").card.differences(encoder(f"onnx:{folder}").card)


def test_a_network_of_convolutions_is_not_shrunk(exported: Any, tmp_path: Path) -> None:
    _, folder = exported("timm")
    with pytest.raises(InputError, match=r"no matrix products to shrink.*runs 8-bit convolutions slower"):
        quantise(folder, tmp_path / "int8")
    quantise(folder, tmp_path / "smaller", convolutions=True)
    assert (tmp_path / "smaller/model.onnx").stat().st_size < (folder / "model.onnx").stat().st_size / 3


def test_crop_and_flip_can_be_asked_of_an_export_and_nothing_else(exported: Any) -> None:
    original, folder = exported("clip")
    name = original.card.name
    images = tiny.random_pictures((96, 30), (40, 90))
    for option in ("crop=pad", "crop=multi", "flip=yes", "crop=multi&flip=yes"):
        mine, theirs = encoder(f"onnx:{folder}?{option}"), encoder(f"{name}?{option}")
        np.testing.assert_allclose(mine.encode_images(images), theirs.encode_images(images), atol=1e-3, rtol=0)
        assert mine.card.pooling == theirs.card.pooling
    with pytest.raises(InputError, match="follows only crop and flip"):
        encoder(f"onnx:{folder}?size=64")


def test_an_encoder_travels_to_other_processes_as_its_name(exported: Any) -> None:
    images = tiny.random_pictures((50, 80))
    for found in (exported("clip")[0], encoder(f"onnx:{exported('clip')[1]}")):
        again = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(again.encode_images(images), found.encode_images(images))
        assert again.card == found.card


def test_half_a_folder_is_no_encoder(exported: Any, tmp_path: Path) -> None:
    _, folder = exported("timm")
    with pytest.raises(MissingWeightsError, match=rf"model.onnx is missing; looked in '{tmp_path}'.*models export"):
        encoder(f"onnx:{tmp_path}")
    (tmp_path / "model.onnx").write_bytes((folder / "model.onnx").read_bytes())
    with pytest.raises(MissingWeightsError, match=r"encoder.json is missing"):
        encoder(f"onnx:{tmp_path}")
    (tmp_path / "encoder.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match="is not of format 1"):
        encoder(f"onnx:{tmp_path}")


def test_a_folder_that_is_not_empty_is_kept(exported: Any, tmp_path: Path) -> None:
    original, _ = exported("timm")
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="is not empty"):
        export(original, tmp_path)


def test_what_already_runs_without_torch_is_not_exported() -> None:
    with pytest.raises(InputTypeError, match="nothing to export"):
        export(encoder("builtin:effnet-lite0"), Path("nowhere"))


def test_an_export_that_computes_something_else_is_not_left_behind(exported: Any, tmp_path: Path) -> None:
    import torch

    original, _ = exported("timm")

    def different(pixels: Any) -> Any:
        noise = 0.0 if torch.compiler.is_exporting() else 1.0
        return original_features(pixels) + noise

    original_features = original.network.features
    object.__setattr__(original.network, "features", different)
    try:
        with pytest.raises(LookalikeError, match="is off by"):
            export(original, tmp_path / "bad")
    finally:
        object.__setattr__(original.network, "features", original_features)
    assert not (tmp_path / "bad/encoder.json").exists()
