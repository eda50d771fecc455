"""What a run ends with."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lookalike.arrays import Vectors, as_vectors, unit
from lookalike.errors import InputError
from lookalike.train.head import Head
from lookalike.train.judge import Verdict
from lookalike.train.material import Material, Plan
from lookalike.train.records import EpochRecord
from lookalike.train.sampling import Coverage
from lookalike.train.settings import Settings


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """What a run ends with."""

    model: nn.Module
    """The head, or the network and its head, with the weights of the best epoch, in evaluation mode."""
    head: Head
    settings: Settings
    plan: Plan
    coverage: Coverage
    records: tuple[EpochRecord, ...]
    best_epoch: int
    """0 where no epoch was kept."""
    stopped: str | None
    """Why training ended before its last epoch, or None."""
    verdict: Verdict | None
    """The comparison with the frozen encoder; None where no identity was held out."""
    measured: dict[str, Any]
    """Counts and protocol of the held-out split."""
    material: Material
    folder: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Return the last object of `lookalike train --format jsonl`."""
        return {
            "run": None if self.folder is None else str(self.folder),
            "epochs": len(self.records),
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
            "coverage": str(self.coverage),
            "notes": list(self.plan.notes),
            "held_out": None if self.verdict is None else {**self.verdict.to_dict(), **self.measured},
        }

    def encode(self, vectors: Vectors) -> Vectors:
        """(n, d) vectors of the frozen encoder -> (n, dim) trained vectors; head-only runs.

        Raises:
            InputError: the whole network was trained, so it needs pictures.
        """
        if self.settings.backbone is not None:
            raise InputError("This run trained the whole network.", hint="Open its folder as an encoder: run:PATH.")
        rows = unit(as_vectors(vectors, dim=self.material.vectors.shape[1]))
        with torch.no_grad():
            return np.asarray(self.model(torch.from_numpy(rows)).numpy())
