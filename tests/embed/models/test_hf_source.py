"""transformers' models: our vectors are the library's, our pixels are its, and text is padded its way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.arrays import Rgb
from lookalike.embed.hub import MissingWeightsError
from lookalike.embed.registry import encoder
from lookalike.errors import InputError
from lookalike.images.load import load

torch = pytest.importorskip("torch", reason="transformers' models need the extra hf")
transformers = pytest.importorskip("transformers", reason="transformers' models need the extra hf")
pytest.importorskip("torchvision", reason="transformers' models need the extra hf")

from . import tiny  # noqa: E402

ODD = [(50, 80), (56, 56), (301, 97), (1, 1), (3, 200)]
ODD_FILES = (
    "grey16.png",
    "cmyk.jpg",
    "palette.png",
    "rgba_transparent.png",
    "exif_landscape_orient6.jpg",
    "one_bit.png",
)


def _unit(rows: Any) -> np.ndarray:
    return torch.nn.functional.normalize(rows.float()).detach().numpy()


def _pooled(output: Any) -> Any:
    return getattr(output, "pooler_output", output)


def _directly(folder: Path, images: list[Rgb], features: Callable[[Any, Any], Any]) -> tuple[np.ndarray, np.ndarray]:
    """The library alone: its processor, its model, nothing of ours; vectors and pixel values."""
    from PIL import Image

    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    rows, pixels = [], []
    for image in images:
        inputs = processor(images=Image.fromarray(image), return_tensors="pt")
        pixels.append(inputs["pixel_values"][0].numpy())
        with torch.no_grad():
            rows.append(_unit(features(model, inputs)))
    return np.concatenate(rows), np.stack(pixels)


MODELS: dict[str, tuple[Callable[..., Path], Callable[[Any, Any], Any], str, int]] = {
    "dinov2": (tiny.save_dinov2, lambda m, x: m(**x).last_hidden_state[:, 0], "cls", 32),
    "dinov3": (tiny.save_dinov3, lambda m, x: m(**x).last_hidden_state[:, 0], "cls", 32),
    "convnext": (tiny.save_convnext, lambda m, x: m(**x).pooler_output, "avg", 32),
    "clip": (tiny.save_clip, lambda m, x: _pooled(m.get_image_features(**x)), "head", 24),
    "siglip": (tiny.save_siglip, lambda m, x: _pooled(m.get_image_features(**x)), "head", 32),
}


@pytest.mark.parametrize("kind", MODELS)
def test_pixels_and_vectors_are_the_librarys_own(kind: str, tmp_path: Path, shared: Path) -> None:
    save, features, pooling, dim = MODELS[kind]
    folder = save(tmp_path / kind)
    images = [*tiny.random_pictures(*ODD), *(load(shared / "data/messy" / name).pixels for name in ODD_FILES)]
    vectors, pixels = _directly(folder, images, features)
    ours = encoder(f"hf:{folder}")
    prepared = [ours.prepare(image) for image in images]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.stack(prepared), pixels)
    np.testing.assert_allclose(ours.encode_images(images), vectors, atol=1e-5, rtol=0)
    assert (ours.card.pooling, ours.card.dim) == (pooling, dim)


@pytest.mark.parametrize("kind", MODELS)
def test_the_written_steps_are_the_processors_but_for_single_grey_levels(kind: str, tmp_path: Path) -> None:
    folder = MODELS[kind][0](tmp_path / kind)
    ours: Any = encoder(f"hf:{folder}")
    steps = ours.network.preparation.portable
    for image in tiny.random_pictures(*ODD):
        levels = (
            np.abs(steps.scaled(steps(image)[None])[0] - ours.prepare(image)) * 255 * np.array(steps.std)[:, None, None]
        )
        assert levels.max() < 2.01  # one level in each pass
        assert (levels > 0.5).mean() < 0.25  # half a level: float32 rounds, whole levels do not


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_text_is_padded_to_the_models_own_length(kind: str, tmp_path: Path) -> None:
    folder = MODELS[kind][0](tmp_path / kind)
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    texts = ["a photo of a red shoe", "cups", "", "a very long text " * 9]
    inputs = tokeniser(texts, padding="max_length", truncation=True, return_tensors="pt")
    with torch.no_grad():
        expected = _unit(_pooled(model.get_text_features(**inputs)))
    ours: Any = encoder(f"hf:{folder}")
    assert ours.card.supports_text
    np.testing.assert_allclose(ours.encode_texts(texts), expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(ours.encode_texts(["cups"])[0], expected[1], atol=1e-5, rtol=0)
    assert f"padded to {tokeniser.model_max_length} tokens" in ours.card.preprocessing


def test_siglips_own_tokenizer_is_padded_to_the_end_and_not_masked(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece", reason="SigLIP's own tokenizer needs the extra hf")
    folder = tiny.save_siglip(tmp_path / "siglip", words=64)
    tiny.use_sentencepiece(folder, length=12)
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(tokeniser).__name__ == "SiglipTokenizer"
    model = transformers.AutoModel.from_pretrained(folder).eval()
    texts = ["a red shoe", "CUPS!", "a very long text " * 9]
    tokens = tokeniser(texts, padding="max_length", max_length=12, truncation=True, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = _unit(_pooled(model.get_text_features(input_ids=tokens)))
        short = tokeniser(texts[:1], padding=True, return_tensors="pt")["input_ids"]
        unpadded = _unit(_pooled(model.get_text_features(input_ids=short)))
    ours: Any = encoder(f"hf:{folder}")
    np.testing.assert_allclose(ours.encode_texts(texts), expected, atol=1e-5, rtol=0)
    assert np.abs(ours.encode_texts(texts[:1]) - unpadded).max() > 1e-3, (
        "padding changes the vector: it is not noise here"
    )


def test_a_model_with_one_more_pooling_is_another_encoder(tmp_path: Path) -> None:
    folder = tiny.save_dinov3(tmp_path / "dino")
    images = tiny.random_pictures(*ODD)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    found = {pooling: encoder(f"hf:{folder}?pooling={pooling}") for pooling in ("cls", "mean", "gem")}
    pixels = torch.from_numpy(np.stack([found["mean"].prepare(image) for image in images]))  # type: ignore[attr-defined]
    with torch.no_grad():
        tokens = model(pixel_values=pixels).last_hidden_state
    patches = tokens[:, 3:]  # one class token, two registers
    np.testing.assert_allclose(found["mean"].encode_images(images), _unit(patches.mean(1)), atol=1e-5, rtol=0)
    gem = patches.clamp(min=1e-6).pow(3).mean(1).pow(1 / 3)
    np.testing.assert_allclose(found["gem"].encode_images(images), _unit(gem), atol=1e-5, rtol=0)
    assert {name: each.card.pooling for name, each in found.items()} == {name: name for name in found}
    assert any("pooling" in line for line in found["mean"].card.differences(found["gem"].card))


def test_weights_that_leave_tensors_unset_are_refused(tmp_path: Path) -> None:
    folder = tiny.save_dinov2(tmp_path / "dino")
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"leave \d+ tensors unset, first 'encoder.layer.2"):
        encoder(f"hf:{folder}")


def test_random_weights_come_only_on_request_and_are_the_same_every_time(tmp_path: Path) -> None:
    folder = tiny.save_dinov2(tmp_path / "dino")
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingWeightsError, match=r"model\.safetensors is missing; looked in"):
        encoder(f"hf:{folder}")
    first, second = (encoder(f"hf:{folder}?weights=random").card for _ in range(2))
    assert first == second
    assert first.licence == "none: random weights"


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json", "model.safetensors"])
def test_a_missing_file_is_named_with_the_place_it_should_be(name: str, tmp_path: Path) -> None:
    folder = tiny.save_dinov2(tmp_path / "dino")
    (folder / name).unlink()
    with pytest.raises(MissingWeightsError) as caught:
        encoder(f"hf:{folder}")
    assert f"{name} is missing; looked in '{folder}'" in str(caught.value)


def test_a_model_in_the_hubs_cache_is_opened_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    repo = tmp_path / "hub/models--org--dino"
    tiny.save_dinov2(repo / "snapshots/0123abc")
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("0123abc")
    by_name, by_path = encoder("hf:org/dino"), encoder(f"hf:{repo / 'snapshots/0123abc'}")
    assert by_name.card.name == "hf:org/dino"
    assert by_name.card.weights == by_path.card.weights
    assert encoder("hf:org/dino@0123abc").card.weights == by_name.card.weights
    with pytest.raises(MissingWeightsError, match=r"config.json of org/dinos is missing.*models pull hf:org/dinos"):
        encoder("hf:org/dinos")


def test_a_changed_crop_is_another_encoder_and_keeps_the_scaling(tmp_path: Path) -> None:
    folder = tiny.save_siglip(tmp_path / "siglip")
    published, padded = encoder(f"hf:{folder}"), encoder(f"hf:{folder}?crop=pad")
    assert [line.partition(":")[0] for line in padded.card.differences(published.card)] == ["name", "preprocessing"]
    tall = tiny.random_pictures((96, 24))
    assert np.abs(padded.encode_images(tall) - published.encode_images(tall)).max() > 1e-3
    square = tiny.random_pictures((48, 48))  # nothing to crop or pad: the same picture either way
    np.testing.assert_allclose(padded.encode_images(square), published.encode_images(square), atol=1e-5, rtol=0)
