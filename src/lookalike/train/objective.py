"""The loss with its miner and its queue: one number for a batch of vectors, and whether there was anything to learn."""

# torch and pytorch-metric-learning are an extra; where they are absent their classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lookalike.train.loss import Loss
from lookalike.train.metric_learning import losses
from lookalike.train.mining import make_miner


class Outcome(NamedTuple):
    """The loss of one batch; `learns` is False where no step must be taken, and then the loss is 0."""

    loss: Tensor
    learns: bool


class Queue(losses.CrossBatchMemory):
    """The library's queue of earlier vectors, whose position is saved with its contents."""

    def get_extra_state(self) -> dict[str, Any]:
        """Return what the buffers do not hold."""
        return {"queue_idx": int(self.queue_idx), "has_been_filled": bool(self.has_been_filled)}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Continue where the queue was."""
        self.queue_idx = state["queue_idx"]
        self.has_been_filled = state["has_been_filled"]


class Objective(nn.Module):
    """(b, d) vectors and (b,) label codes -> Outcome.

    Proxies, where the loss has them, are parameters of this module, so whoever optimises and saves the module
    optimises and saves them. Everything is computed in float32, whatever the precision of the network.
    """

    def __init__(self, loss: Loss, *, mining: str | None, classes: int, dim: int, memory: int = 0) -> None:
        super().__init__()
        self.settings = loss
        self.miner = make_miner(mining, loss)
        built = loss.build(classes=classes, dim=dim)
        self.loss = Queue(built, dim, memory_size=memory, miner=self.miner) if memory else built
        self.memory = memory

    def forward(self, vectors: Tensor, codes: Tensor) -> Outcome:
        """Return the loss, and whether a step should follow."""
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.float()
            if self.memory:
                return _outcome(self.loss(vectors, codes), vectors)
            if not self.settings.pairs:
                return _outcome(self.loss(vectors, codes), vectors)
            same = codes[:, None] == codes[None, :]
            positives = int(same.sum()) - len(codes)
            if positives == 0 or bool(same.all()):  # no positive pair, or no negative one: no triplet either
                return Outcome(vectors.sum() * 0.0 + 0.0, learns=False)
            mined = None
            if self.miner is not None:
                mined = self.miner(vectors, codes)
                if len(mined[0]) == 0:
                    return Outcome(vectors.sum() * 0.0 + 0.0, learns=False)
            return _outcome(self.loss(vectors, codes, mined), vectors)


def _outcome(loss: Tensor, vectors: Tensor) -> Outcome:
    """A loss of exactly 0 teaches nothing, but a step would still move the weights by momentum and decay."""
    if float(loss.detach()) == 0.0:
        return Outcome(vectors.sum() * 0.0 + 0.0, learns=False)
    return Outcome(loss, learns=True)
