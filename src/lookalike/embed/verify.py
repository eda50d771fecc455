"""Is an encoder what it was? Batch independence, and golden vectors kept from the first check."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lookalike.arrays import Rgb, Vectors
from lookalike.embed import hub
from lookalike.embed.builtin import golden
from lookalike.embed.encoder import Encoder
from lookalike.embed.rows import normalise, unusable

BATCHES = (1, 7, 32)
BATCH_TOLERANCE = 1e-5
GOLDEN_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Finding:
    """One thing looked at: what, whether it is as it should be, and the figure."""

    what: str
    ok: bool
    detail: str


def check(encoder: Encoder, *, pictures: Sequence[Rgb] = (), record: Path | None = None) -> list[Finding]:
    """Look at an encoder's vectors: finite, of one length, the same in any batch, the same as at the first check.

    `record` is the file of the vectors of the golden pictures; by default one a card in our cache. Where it is not
    there, this check writes it, and later versions of the libraries are compared with it.
    """
    images = [*golden.pictures(), *_odd(), *pictures]
    vectors = normalise(np.asarray(encoder.encode_images(images), dtype=np.float32))
    return [
        _usable(vectors, encoder.card.dim),
        _any_batch(encoder, images, vectors),
        _remembered(vectors[: len(golden.pictures())], record or record_of(encoder.card.digest)),
    ]


def record_of(digest: str) -> Path:
    """Return the file in which the golden vectors of a card are kept."""
    return hub.own_cache() / "golden" / f"{digest}.npy"


def _odd() -> list[Rgb]:
    """Return pictures of unusual shape: a line, a dot, a tall one."""
    generator = np.random.default_rng(0)
    return [generator.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in ((1, 1), (3, 400), (500, 60), (97, 101))]


def _usable(vectors: Vectors, dim: int) -> Finding:
    bad = int(unusable(vectors).sum())
    right = vectors.shape[1] == dim
    detail = f"{len(vectors)} pictures, {vectors.shape[1]} values each" + (
        f", {bad} of them NaN or zero" if bad else ""
    )
    return Finding("vectors", not bad and right, detail if right else f"{detail}; the card says {dim}")


def _any_batch(encoder: Encoder, images: Sequence[Rgb], vectors: Vectors) -> Finding:
    many = [images[place % len(images)] for place in range(max(BATCHES))]
    whole = vectors[np.arange(len(many)) % len(images)]
    worst = 0.0
    for size in BATCHES:
        parts = [encoder.encode_images(many[start : start + size]) for start in range(0, len(many), size)]
        worst = max(worst, float(np.abs(normalise(np.concatenate(parts)) - whole).max()))
    sizes = ", ".join(map(str, BATCHES))
    return Finding("batches", worst <= BATCH_TOLERANCE, f"sizes {sizes}: largest difference {worst:.1e}")


def _remembered(vectors: Vectors, record: Path) -> Finding:
    if not record.is_file():
        record.parent.mkdir(parents=True, exist_ok=True)
        part = record.with_suffix(f".{os.getpid()}.part.npy")
        np.save(part, vectors)
        part.replace(record)
        return Finding("golden vectors", True, f"first check: written to {record}")
    kept = np.load(record, allow_pickle=False)
    if kept.shape != vectors.shape:
        return Finding("golden vectors", False, f"{record} holds {kept.shape}, this encoder gives {vectors.shape}")
    worst = float(np.abs(kept - vectors).max())
    return Finding("golden vectors", worst <= GOLDEN_TOLERANCE, f"largest difference {worst:.1e} from {record}")
