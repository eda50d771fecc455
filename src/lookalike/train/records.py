"""What one epoch says: a line for people, a line of JSON, a TensorBoard point."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.train.triplets import Batch


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One epoch of training and what the held-out identities then say."""

    epoch: int
    loss: float
    """Mean over the batches that had something to learn from."""
    open_share: float
    """Share of all valid triplets whose hinge is open at the loss's margin, or at 0.2 where it has none."""
    easy: float
    semi_hard: float
    hard: float
    """Shares of all valid triplets."""
    positive_mean: float
    """Mean d(a, p) over positive pairs of a batch, in the loss's own distance."""
    negative_mean: float
    spread: float
    """Mean standard deviation of a dimension times √d: 1 for vectors all over the sphere, 0 for one point."""
    spread_least: float
    """The same of the flattest dimension."""
    batches: int
    empty_batches: int
    """Batches without any valid triplet or pair, or with a loss of exactly 0: no step was taken."""
    learning_rate: float
    held_out: Mapping[str, float | None]
    """`recall@1`, `recall@5`, `recall@10`, `map` of the identities that watch; empty where none does."""
    intervals: Mapping[str, tuple[float, float] | None]
    best: bool
    """The weights of this epoch are the ones kept so far."""
    notes: tuple[str, ...] = ()
    seconds: float = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; NaN becomes null."""
        values = dataclasses.asdict(self)
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in values.items()
        }

    def __str__(self) -> str:
        recall = self.held_out.get("recall@1")
        held = "" if recall is None else f" · held-out recall@1 {recall:.3f}"
        note = f" · {'; '.join(self.notes)}" if self.notes else ""
        return (
            f"epoch {self.epoch} · loss {self.loss:.4f} · open {self.open_share:.1%} · "
            f"easy/semi/hard {self.easy:.0%}/{self.semi_hard:.0%}/{self.hard:.0%} · "
            f"d(a,p) {self.positive_mean:.3f} d(a,n) {self.negative_mean:.3f} · spread {self.spread:.2f}{held} · "
            f"{self.seconds:.1f} s{note}"
        )


class Tally:
    """Adds up the batches of one epoch."""

    def __init__(self, dim: int) -> None:
        self.batches = 0
        self.empty = 0
        self._losses: list[float] = []
        self._kinds = np.zeros(3, dtype=np.int64)
        self._means: list[tuple[float, float]] = []
        self._count = 0
        self._sum = np.zeros(dim)
        self._squares = np.zeros(dim)

    def add(self, vectors: npt.NDArray[np.float32], summary: Batch, loss: float | None) -> None:
        """Count one batch; `loss` is None where no step was taken."""
        self.batches += 1
        self.empty += loss is None
        if loss is not None:
            self._losses.append(loss)
        self._kinds += (summary.easy, summary.semi_hard, summary.hard)
        self._means.append((summary.positive_mean, summary.negative_mean))
        rows = vectors.astype(np.float64)
        self._count += len(rows)
        self._sum += rows.sum(axis=0)
        self._squares += (rows**2).sum(axis=0)

    def numbers(self) -> dict[str, Any]:
        """Return the fields of an EpochRecord that the batches decide."""
        total = max(1, int(self._kinds.sum()))
        easy, semi_hard, hard = (float(count) / total for count in self._kinds)
        means = np.array(self._means)
        present = ~np.isnan(means)
        average = np.where(present, means, 0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        spreads = self.spreads()
        return {
            "loss": float(np.mean(self._losses)) if self._losses else 0.0,
            "open_share": semi_hard + hard,
            "easy": easy,
            "semi_hard": semi_hard,
            "hard": hard,
            "positive_mean": float(average[0]),
            "negative_mean": float(average[1]),
            "spread": float(spreads.mean()),
            "spread_least": float(spreads.min()),
            "batches": self.batches,
            "empty_batches": self.empty,
        }

    def spreads(self) -> npt.NDArray[np.float64]:
        """(d,) standard deviation of each dimension over the epoch's vectors, times √d."""
        mean = self._sum / max(1, self._count)
        variance = np.maximum(self._squares / max(1, self._count) - mean**2, 0)
        return np.asarray(np.sqrt(variance * len(mean)))


class Log:
    """Appends each epoch to `epochs.jsonl` of a folder, and to TensorBoard where that is installed."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "epochs.jsonl"
        self._board = None if folder is None else _board(folder)

    def restart(self, records: list[EpochRecord]) -> None:
        """Begin with these epochs, those of the run that is resumed."""
        if self._path is not None:
            self._path.write_text("".join(_line(record) for record in records), encoding="utf-8")

    def add(self, record: EpochRecord) -> None:
        """Write one epoch."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(record))
        if self._board is not None:
            for key, value in record.to_dict().items():
                if isinstance(value, int | float):
                    self._board.add_scalar(key, value, record.epoch)
            for key, value in record.held_out.items():
                if value is not None:
                    self._board.add_scalar(f"held_out/{key}", value, record.epoch)

    def close(self) -> None:
        """Flush what TensorBoard holds back."""
        if self._board is not None:
            self._board.close()


def _line(record: EpochRecord) -> str:
    return json.dumps(record.to_dict(), sort_keys=True) + "\n"


def _board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # type: ignore[import-not-found,unused-ignore]
    except ImportError:  # tensorboard is nobody's dependency
        return None
    return SummaryWriter(str(folder / "tensorboard"))
