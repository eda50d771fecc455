"""Where training runs: this process alone, or several that each embed a slice of every batch."""

# torch and accelerate are an extra; where they are absent their classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from lookalike.arrays import Ids
from lookalike.errors import MissingExtraError
from lookalike.train.settings import Precision

Rows = TypeVar("Rows", Ids, Tensor)


class Processes:
    """Device, precision and the other processes, through Accelerate (`accelerate launch` sets them up)."""

    def __init__(self, *, precision: Precision = "auto", cpu: bool = False) -> None:
        try:
            from accelerate import Accelerator
        except ImportError as error:
            raise MissingExtraError("Training", "train") from error
        self._accelerator = Accelerator(cpu=cpu)
        self.device = self._accelerator.device
        self.count = int(self._accelerator.num_processes)
        self.rank = int(self._accelerator.process_index)
        # No float16: its gradients need scaling, which would reach the proxies and not the vectors.
        can = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        self._half = precision == "bfloat16" or (precision == "auto" and can)

    @property
    def first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def autocast(self) -> Any:
        """Return the block in which the network runs."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half)

    def mine(self, rows: Rows) -> Rows:
        """Return this process's slice of the rows of a batch."""
        start, stop = self._bounds(len(rows), self.rank)
        return rows[start:stop]

    def gather(self, part: Tensor, total: int) -> Tensor:
        """Put the slices of all processes together again, in the batch's order."""
        if self.count == 1:
            return part
        sizes = [b - a for a, b in (self._bounds(total, rank) for rank in range(self.count))]
        padded = part.new_zeros((max(sizes), *part.shape[1:]))
        padded[: len(part)] = part
        whole = self._accelerator.gather(padded).reshape(self.count, max(sizes), *part.shape[1:])
        return torch.cat([whole[rank, :size] for rank, size in enumerate(sizes)])

    def add_gradients(self, model: nn.Module) -> None:
        """Add up the gradients of all processes: each has carried back its slice's share of one loss."""
        if self.count == 1:
            return
        for parameter in model.parameters():
            if parameter.requires_grad:
                grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = self._accelerator.reduce(grad, reduction="sum")

    def wait(self) -> None:
        """Let the others catch up."""
        self._accelerator.wait_for_everyone()

    def _bounds(self, total: int, rank: int) -> tuple[int, int]:
        return total * rank // self.count, total * (rank + 1) // self.count
