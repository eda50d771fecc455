"""open_clip's models: our vectors are the library's, for pictures and for words."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.embed.hub import MissingWeightsError
from lookalike.embed.registry import encoder
from lookalike.errors import InputError, UnknownNameError
from lookalike.images.load import load

torch = pytest.importorskip("torch", reason="open_clip's models need the extra open-clip")
open_clip = pytest.importorskip("open_clip", reason="open_clip's models need the extra open-clip")
pytest.importorskip("torchvision", reason="open_clip's models need the extra open-clip")

from . import tiny  # noqa: E402

ODD = [(50, 80), (48, 48), (301, 97), (1, 1), (3, 200)]
ODD_FILES = (
    "grey16.png",
    "cmyk.jpg",
    "palette.png",
    "rgba_transparent.png",
    "exif_landscape_orient6.jpg",
    "one_bit.png",
)
PREPROCESS: dict[str, dict[str, Any]] = {
    "clip": {},
    "siglip": {"resize_mode": "squash", "mean": (0.5,) * 3, "std": (0.5,) * 3},
    "mobileclip": {"interpolation": "bilinear", "mean": (0.0,) * 3, "std": (1.0,) * 3},
    "longest": {"resize_mode": "longest", "fill_color": 7},
}


@pytest.mark.parametrize("kind", PREPROCESS)
def test_pixels_and_vectors_are_the_librarys_own(kind: str, tmp_path: Path, shared: Path) -> None:
    from PIL import Image

    folder = tiny.save_open_clip(tmp_path / kind, **PREPROCESS[kind])
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    images = [*tiny.random_pictures(*ODD), *(load(shared / "data/messy" / name).pixels for name in ODD_FILES)]
    pixels = torch.stack([transform(Image.fromarray(image)) for image in images])
    with torch.no_grad():
        expected = torch.cat([model.eval().encode_image(row[None], normalize=True) for row in pixels]).numpy()
    ours: Any = encoder(f"open_clip:local-dir:{folder}")
    prepared = np.stack([ours.prepare(image) for image in images])
    np.testing.assert_array_equal(ours.network.preparation.scaled(prepared), pixels.numpy())
    np.testing.assert_allclose(ours.encode_images(images), expected, atol=1e-5, rtol=0)
    assert (ours.card.dim, ours.card.pooling, ours.card.supports_text) == (24, "head", True)


def test_words_give_the_librarys_own_vectors(tmp_path: Path) -> None:
    folder = tiny.save_open_clip(tmp_path / "clip")
    model = open_clip.create_model(f"local-dir:{folder}").eval()
    texts = ["a photo of a red shoe", "CUPS, it's 北京", "", "a long text " * 20]
    with torch.no_grad():
        expected = model.encode_text(open_clip.get_tokenizer(f"local-dir:{folder}")(texts), normalize=True).numpy()
    np.testing.assert_allclose(
        encoder(f"open_clip:local-dir:{folder}").encode_texts(texts),
        expected,
        atol=1e-5,
        rtol=0,  # type: ignore[attr-defined]
    )


@pytest.fixture
def architecture(tmp_path: Path) -> Any:
    """A tiny architecture in open_clip's own table, as its --model-config option adds one."""
    folder = tiny.save_open_clip(tmp_path / "source")
    config = json.loads((folder / "open_clip_config.json").read_text())["model_cfg"]
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/Tiny-16.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "configs")
    yield folder
    open_clip.factory._MODEL_CONFIGS.pop("Tiny-16")
    open_clip.factory._MODEL_CONFIG_PATHS.remove(tmp_path / "configs")


def test_an_architecture_and_a_file_of_weights(architecture: Path) -> None:
    by_file = encoder(f"open_clip:Tiny-16/{architecture / 'open_clip_pytorch_model.bin'}")
    by_folder = encoder(f"open_clip:local-dir:{architecture}")
    assert by_file.card.weights == by_folder.card.weights
    images = tiny.random_pictures((50, 80))
    np.testing.assert_array_equal(by_file.encode_images(images), by_folder.encode_images(images))


def test_weights_of_another_architecture_are_refused(architecture: Path, tmp_path: Path) -> None:
    torch.save({"logit_scale": torch.zeros(())}, tmp_path / "other.pt")
    with pytest.raises(InputError, match="do not fit its architecture"):
        encoder(f"open_clip:Tiny-16/{tmp_path / 'other.pt'}")


def test_weights_trained_with_quickgelu_get_quickgelu(architecture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's tags say so; open_clip only warns about `ViT-B-32/openai` and computes with GELU."""
    table = open_clip.pretrained._PRETRAINED
    file = str(architecture / "open_clip_pytorch_model.bin")
    monkeypatch.setenv("TORCH_HOME", str(architecture))
    (architecture / "hub/checkpoints").mkdir(parents=True)
    shutil.copy(file, architecture / "hub/checkpoints/tiny.pt")
    entry = open_clip.pretrained._pcfg(url="https://example.org/tiny.pt", file=file, quick_gelu=True)
    monkeypatch.setitem(table, "Tiny-16", {"openai": entry})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = open_clip.create_model("Tiny-16", pretrained=file, force_quick_gelu=True).eval()
    ours: Any = encoder("open_clip:Tiny-16/openai")
    images = tiny.random_pictures((48, 48))
    pixels = torch.from_numpy(ours.network.preparation.scaled(np.stack([ours.prepare(images[0])])))
    with torch.no_grad():
        expected = right.encode_image(pixels, normalize=True).numpy()
    np.testing.assert_allclose(ours.encode_images(images), expected, atol=1e-5, rtol=0)
    plain = encoder(f"open_clip:Tiny-16/{file}")
    assert np.abs(plain.encode_images(images) - expected).max() > 1e-5


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("ViT-B-32/opnai", UnknownNameError, r"no open_clip tag of ViT-B-32 named 'opnai'. Did you mean 'openai'"),
        ("ViT-B-33/openai", UnknownNameError, r"no open_clip architecture named 'ViT-B-33'.*'ViT-B-32'"),
        ("ViT-B-32", InputError, r"does not say which weights. Write open_clip:ARCH/TAG"),
        ("ViT-B-32/openai", MissingWeightsError, r"timm/vit_base_patch32_clip_224.openai is missing; looked in"),
        ("ViT-B-32/openai?pooling=cls", InputError, r"has its own projection"),
        ("local-dir:/nowhere", MissingWeightsError, r"open_clip_config.json is missing; looked in '/nowhere'"),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_sentence(
    name: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(error, match=said):
        encoder(f"open_clip:{name}")
