"""A check finds what it is for: a vector that depends on its batch, one that changed, one that is NaN."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lookalike.arrays import Rgb
from lookalike.embed.encoder import Card
from lookalike.embed.registry import encoder
from lookalike.embed.verify import check, record_of


class Means:
    """Mean colours, spoilt in one way."""

    card = Card(name="means", weights="1", dim=3, pooling="avg")

    def __init__(self, spoilt: str = "") -> None:
        self.spoilt = spoilt

    def encode_images(self, images: Sequence[Rgb]) -> np.ndarray:
        rows = np.array([image.mean(axis=(0, 1)) + 1 for image in images], dtype=np.float32)
        if self.spoilt == "batch":
            rows[:, 0] += rows[:, 0].mean() * 1e-3
        if self.spoilt == "nan":
            rows[0] = np.nan
        if self.spoilt == "changed":
            rows[:, 1] *= 1.1
        return rows


def _failed(spoilt: str, record: Path) -> list[str]:
    return [found.what for found in check(Means(spoilt), record=record) if not found.ok]


def test_a_sound_encoder_passes_and_is_remembered(tmp_path: Path) -> None:
    record = tmp_path / "golden.npy"
    first, second = (check(Means(), record=record) for _ in range(2))
    assert all(found.ok for found in (*first, *second))
    assert "first check: written to" in first[-1].detail
    assert "largest difference 0.0e+00" in second[-1].detail


@pytest.mark.parametrize(("spoilt", "what"), [("batch", "batches"), ("nan", "vectors"), ("changed", "golden vectors")])
def test_each_fault_is_found_under_its_name(spoilt: str, what: str, tmp_path: Path) -> None:
    record = tmp_path / "golden.npy"
    check(Means(), record=record)
    assert what in _failed(spoilt, record)


def test_the_record_of_a_card_lies_in_our_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path))
    check(Means())
    assert record_of(Means.card.digest) == tmp_path / "golden" / f"{Means.card.digest}.npy"
    assert np.load(record_of(Means.card.digest)).shape == (4, 3)


def test_the_built_in_encoder_passes(tmp_path: Path) -> None:
    assert all(found.ok for found in check(encoder("builtin:effnet-lite0"), record=tmp_path / "golden.npy"))
