"""Torch networks: out of memory, half precision, other devices, and encoders that must not be mixed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookalike.embed.registry import encoder
from lookalike.errors import InputError, LookalikeError

torch = pytest.importorskip("torch", reason="networks need the extra timm")
for module in ("timm", "transformers"):
    pytest.importorskip(module, reason="networks need the extras timm and hf")

from lookalike.embed import placement  # noqa: E402
from lookalike.embed.placement import SAFE, Placement  # noqa: E402

from . import tiny  # noqa: E402


@pytest.fixture(scope="module")
def dino(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_dinov2(tmp_path_factory.mktemp("models") / "dino")


def _limited(found: Any, most: int) -> list[int]:
    """Let the network run out of memory beyond `most` pictures, as torch itself says it; return the batches tried."""
    tried: list[int] = []

    def refuse(_: Any, args: Any, kwargs: Any) -> None:
        size = len(args[0] if args else kwargs["pixel_values"])
        tried.append(size)
        if size > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    found.network.module.register_forward_pre_hook(refuse, with_kwargs=True)
    return tried


def test_out_of_memory_halves_the_batch_and_goes_on(dino: Path, caplog: pytest.LogCaptureFixture) -> None:
    found: Any = encoder(f"hf:{dino}")
    images = tiny.random_pictures(*[(40 + place, 60) for place in range(20)])
    expected = found.encode_images(images)
    tried = _limited(found, most=6)
    with caplog.at_level(logging.WARNING, "lookalike"):
        np.testing.assert_allclose(found.encode_images(images), expected, atol=1e-5, rtol=0)
    assert tried == [20, 10, 5, 5, 5, 5]
    assert "out of memory; going on with 5 pictures at a time" in caplog.text
    tried.clear()
    found.encode_images(images)
    assert tried == [5, 5, 5, 5], "the size that fits is kept"


def test_one_picture_that_does_not_fit_is_said_in_one_sentence(dino: Path) -> None:
    found: Any = encoder(f"hf:{dino}")
    _limited(found, most=0)
    with pytest.raises(LookalikeError, match=r"does not fit in the memory of cpu.*Choose a smaller model"):
        found.encode_images(tiny.random_pictures((40, 60), (40, 61)))


def test_a_real_allocation_failure_is_taken_for_what_it_is() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55, dtype=torch.uint8)
    assert placement.is_out_of_memory(caught.value)
    assert not placement.is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_half_precision_is_used_where_it_agrees_with_float32(dino: Path) -> None:
    full, half = encoder(f"hf:{dino}"), encoder(f"hf:{dino}?dtype=bfloat16")
    assert half.placement == Placement("cpu", "bfloat16")  # type: ignore[attr-defined]
    images = tiny.random_pictures((50, 80))
    difference = np.abs(half.encode_images(images) - full.encode_images(images)).max()
    assert 0 < difference < placement.TOLERANCES["bfloat16"]
    assert half.card == full.card, "a precision that passed the check is the same encoder"


def test_a_precision_that_disagrees_is_left_for_float32_with_a_message(caplog: pytest.LogCaptureFixture) -> None:
    def compute(at: Placement) -> np.ndarray:
        rows = np.eye(4, 8, dtype=np.float32)
        return rows if at.dtype == "float32" else np.roll(rows, 1, axis=1)

    with caplog.at_level(logging.WARNING, "lookalike"):
        assert placement.settle(Placement("cuda", "float16"), compute, "model") == Placement("cuda", "float32")
    assert "model in float16 on cuda is off by 1 from float32" in caplog.text


def test_overflow_in_half_precision_is_found(caplog: pytest.LogCaptureFixture) -> None:
    def compute(at: Placement) -> np.ndarray:
        return np.full((4, 8), 1.0 if at == SAFE else np.nan, dtype=np.float32)

    assert placement.settle(Placement("cuda", "float16"), compute, "model") == SAFE


def test_weights_that_give_nan_in_float32_are_refused() -> None:
    with pytest.raises(LookalikeError, match="gives NaN or zeros in float32"):
        placement.settle(Placement("cuda"), lambda at: np.full((4, 8), np.nan, np.float32), "model")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_there_is_refused(dino: Path) -> None:
    with pytest.raises(InputError, match=r"no device 'cuda' for torch on this machine. Here: .*cpu"):
        encoder(f"hf:{dino}?device=cuda")


def test_crop_and_flip_average_unit_vectors_of_each_look(dino: Path) -> None:
    plain: Any = encoder(f"hf:{dino}?crop=centre")
    image = tiny.random_pictures((60, 200))[0]
    flipped = encoder(f"hf:{dino}?crop=centre&flip=yes").encode_images([image])[0]
    seen = plain.prepare(image)
    both = plain.encode_prepared([seen, np.ascontiguousarray(seen[:, ::-1])])
    mean = both.mean(axis=0)
    np.testing.assert_allclose(flipped, mean / np.linalg.norm(mean), atol=1e-5)
    many: Any = encoder(f"hf:{dino}?crop=multi")
    looks = plain.encode_prepared(list(many.prepare(image)))
    mean = looks.mean(axis=0)
    np.testing.assert_allclose(many.encode_images([image])[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_raw_vectors_keep_their_length_and_point_the_same_way(dino: Path) -> None:
    unit, raw = encoder(f"hf:{dino}"), encoder(f"hf:{dino}", normalise=False)
    images = tiny.random_pictures((50, 80), (60, 70))
    rows = raw.encode_images(images)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.1
    np.testing.assert_allclose(rows / lengths, unit.encode_images(images), atol=1e-6)
    assert [line.partition(":")[0] for line in raw.card.differences(unit.card)] == ["normalised"]


def test_the_pipeline_prepares_in_threads_and_changes_nothing(dino: Path) -> None:
    from lookalike.embed.pipeline import encode_all

    images = tiny.random_pictures(*[(40 + place, 90 - place) for place in range(21)])
    found = encoder(f"hf:{dino}")
    np.testing.assert_allclose(
        encode_all(images, found, threads=3, batch_size=8), found.encode_images(images), atol=1e-5, rtol=0
    )


def test_no_pictures_give_no_rows(dino: Path) -> None:
    assert encoder(f"hf:{dino}").encode_images([]).shape == (0, 32)


def test_encoders_that_must_not_be_mixed_differ_in_the_field_that_says_why(tmp_path: Path) -> None:
    """A against B: another dimension; C: the same, other preprocessing; D: the same name, other weights."""
    a = encoder(f"hf:{tiny.save_dinov2(tmp_path / 'model')}").card
    b = encoder(f"timm:local-dir:{tiny.save_timm(tmp_path / 'b', 'resnet10t')}").card
    other_resize = tiny.save_dinov2(tmp_path / "c", size={"shortest_edge": 60})
    c = encoder(f"hf:{other_resize}").card
    (tmp_path / "model").rename(tmp_path / "moved")
    d = encoder(f"hf:{tiny.save_dinov2(tmp_path / 'model', seed=1)}").card
    fields = {
        name: {line.partition(":")[0] for line in a.differences(card)} for name, card in (("b", b), ("c", c), ("d", d))
    }
    assert "dim" in fields["b"]
    assert fields["c"] == {"name", "preprocessing"}
    assert fields["d"] == {"weights"}
    assert a.name == d.name
    assert len({card.digest for card in (a, b, c, d)}) == 4
