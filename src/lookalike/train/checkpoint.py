"""The state of a run on disk: written whole or not at all, read without running anything."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lookalike.errors import InputError, NotFoundError
from lookalike.train.records import EpochRecord

NAME = "checkpoint.pt"
_FORMAT = 1


@dataclass(kw_only=True)
class Progress:
    """Everything a run has come to; loop and best weights as torch state."""

    settings: str
    """Digest of the settings."""
    data: str
    """Digest of vectors, labels and names."""
    loop: dict[str, Any]
    best: dict[str, Any]
    """State of the model at the best epoch, or before the first one."""
    best_epoch: int
    best_key: tuple[float, float]
    """Validation recall@1 and mAP of the best epoch."""
    records: list[EpochRecord]
    stopped: str | None
    """Why training ended before its last epoch."""

    @property
    def epoch(self) -> int:
        """The last epoch that is complete."""
        return self.records[-1].epoch if self.records else 0


def save(folder: Path, progress: Progress) -> None:
    """Write the checkpoint beside the old one, then put it in its place."""
    values = {field.name: getattr(progress, field.name) for field in dataclasses.fields(progress)}
    values["records"] = json.dumps([dataclasses.asdict(record) for record in progress.records])
    target = folder / NAME
    fresh = target.with_suffix(".tmp")
    torch.save({"format": _FORMAT, **values}, fresh)
    os.replace(fresh, target)  # noqa: PTH105  replaces in one step on every system


def load(folder: Path, *, settings: str, data: str) -> Progress:
    """Read a checkpoint for these settings and this data.

    Raises:
        NotFoundError: there is none.
        InputError: it was made with other settings, or from other pictures, vectors or labels.
    """
    path = folder / NAME
    if not path.is_file():
        raise NotFoundError(f"There is no checkpoint at {str(path)!r}.", hint="Train without resuming first.")
    values = torch.load(path, weights_only=True, map_location="cpu")  # tensors and plain values, no code
    if values.pop("format") != _FORMAT:
        raise InputError(f"{str(path)!r} was written by another version of lookalike.", hint="Train again.")
    for name, mine in (("settings", settings), ("data", data)):
        if values[name] != mine:
            raise InputError(
                f"{str(path)!r} belongs to other {name} (digest {values[name]}, not {mine}).",
                hint="Resume with what the run was begun with, or train into another folder.",
            )
    values["records"] = [_record(one) for one in json.loads(values["records"])]
    values["best_key"] = tuple(values["best_key"])
    return Progress(**values)


def _record(values: dict[str, Any]) -> EpochRecord:
    values["notes"] = tuple(values["notes"])
    values["intervals"] = {name: pair and tuple(pair) for name, pair in values["intervals"].items()}
    return EpochRecord(**values)
