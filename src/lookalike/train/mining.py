"""Miners: which triplets of a batch are learned from, in O(B²) memory."""

# torch and pytorch-metric-learning are an extra; where they are absent their classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from torch import Tensor

from lookalike.errors import InputError, UnknownNameError
from lookalike.train.distance import UnitDistance
from lookalike.train.loss import Loss
from lookalike.train.metric_learning import distances, miners
from lookalike.train.triplets import check_margin

Triplets: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Rows of anchors, positives and negatives, one entry a triplet."""


class SemiHardMiner(miners.BaseMiner):
    """One triplet an anchor, by the rule of FaceNet (Schroff et al., 2015, section 3.2).

    The positive is the hardest, the farthest of its class. The negative is the nearest inside the open interval
    (d(a, p), d(a, p) + margin); where there is none, the hardest, the nearest of all. With `every_positive` each
    positive pair gets a triplet by the same rule, as FaceNet's text has it. An anchor without a positive or without a
    negative gives none. Equal distances go to the lower row.

    The surprise: widely used versions take the farthest negative where no semi-hard one exists, which turns hard
    anchors into the easiest triplets there are.
    """

    def __init__(
        self, *, margin: float = 0.2, every_positive: bool = False, distance: distances.BaseDistance | None = None
    ) -> None:
        super().__init__(distance=distance or UnitDistance())
        if self.distance.is_inverted:
            raise InputError("Semi-hard mining needs a distance, not a similarity.", hint="Use UnitDistance.")
        self.margin = check_margin(margin)
        self.every_positive = every_positive

    def mine(self, embeddings: Tensor, labels: Tensor, ref_emb: Tensor, ref_labels: Tensor) -> Triplets:
        """(b, d) vectors against (r, d) references -> rows of anchor, positive, negative."""
        matrix = self.distance(embeddings, ref_emb)
        same = labels[:, None] == ref_labels[None, :]
        other = ~same
        if ref_emb is embeddings:
            same = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        usable = same & other.any(dim=1, keepdim=True)
        if self.every_positive:
            anchor, positive = torch.where(usable)
            return anchor, positive, self._searched(matrix, other, anchor, positive)
        anchor = torch.where(usable.any(dim=1))[0]
        reach, positive = matrix.masked_fill(~usable, -torch.inf).max(dim=1, keepdim=True)
        inside = other & (matrix > reach) & (matrix < reach + self.margin)
        hardest = matrix.masked_fill(~other, torch.inf).argmin(dim=1)
        nearest = matrix.masked_fill(~inside, torch.inf).argmin(dim=1)
        return anchor, positive[anchor, 0], torch.where(inside.any(dim=1), nearest, hardest)[anchor]

    def _searched(self, matrix: Tensor, other: Tensor, anchor: Tensor, positive: Tensor) -> Tensor:
        """Search each pair's distance in the sorted distances of its anchor's negatives: B² log B, and no cube."""
        near, order = matrix.masked_fill(~other, torch.inf).sort(dim=1, stable=True)
        first = torch.searchsorted(near, matrix.contiguous(), right=True)[anchor, positive]
        beyond = near[anchor, first.clamp(max=near.shape[1] - 1)]
        inside = (first < near.shape[1]) & (beyond < matrix[anchor, positive] + self.margin)
        return order[anchor, torch.where(inside, first, torch.zeros_like(first))]


def _all(_loss: Loss) -> None:
    """Mine nothing: the loss takes every triplet or pair it can."""
    return


def _batch_hard(loss: Loss) -> Any:
    return miners.BatchHardMiner(distance=UnitDistance(squared=loss.squared))


def _semi_hard(loss: Loss) -> Any:
    return SemiHardMiner(margin=loss.triplet_margin, distance=UnitDistance(squared=loss.squared))


def _semi_hard_pairs(loss: Loss) -> Any:
    distance = UnitDistance(squared=loss.squared)
    return SemiHardMiner(margin=loss.triplet_margin, every_positive=True, distance=distance)


MINERS: Mapping[str, Callable[[Loss], Any]] = MappingProxyType(
    {"all": _all, "batch-hard": _batch_hard, "semi-hard": _semi_hard, "semi-hard-pairs": _semi_hard_pairs}
)


def make_miner(name: str | None, loss: Loss) -> Any:
    """Build the miner of that name in the loss's own distance and margin; None (mine everything) for `all`.

    Where `name` is None the loss's usual miner is taken.

    Raises:
        UnknownNameError: no miner of that name.
        InputError: the loss compares with proxies, so that there is nothing to mine.
    """
    name = loss.mining if name is None else name
    if name not in MINERS:
        raise UnknownNameError("miner", name, MINERS)
    if name != "all" and not loss.pairs:
        raise InputError(
            f"The {type(loss).__name__} loss compares pictures with learned class proxies, so {name!r} has nothing "
            "to mine.",
            hint="Leave the mining out, or choose triplet, contrastive or multi-similarity.",
        )
    return MINERS[name](loss)
