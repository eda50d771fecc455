"""What goes wrong in training, recognised from the numbers and said in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lookalike.train.loss import Loss

COLLAPSED_SPREAD = 0.02
"""Spread below which the vectors are one point: 1 is the whole sphere, a frozen ImageNet encoder gives about 0.8."""

_FELL_TO = 0.5
"""Share of the frozen encoder's held-out recall@1 below which training destroys more than it learns."""
_IN_A_ROW = 3


def collapse(loss: Loss, numbers: dict[str, Any], *, rate: float) -> str | None:
    """Say why the vectors of an epoch count as collapsed, or None.

    >>> from lookalike.train.pair_losses import Triplet
    >>> collapse(Triplet(), {"spread": 0.001, "loss": 0.2}, rate=1e-3)[:53]
    'collapsed: all vectors have become (nearly) one point'
    """
    if numbers["spread"] >= COLLAPSED_SPREAD:
        return None
    stands = ""
    if abs(numbers["loss"] - loss.triplet_margin) < 0.05 * loss.triplet_margin:
        stands = f" and the loss stands at the margin, {loss.triplet_margin:g}"
    return (
        f"collapsed: all vectors have become (nearly) one point (spread {numbers['spread']:.3f} of 1){stands}. "
        f"A smaller rate than {rate:g}, semi-hard or all triplets instead of batch-hard, or a proxy loss avoids it."
    )


def divergence(loss: float, *, rate: float) -> str | None:
    """Say that a loss is no number, or None."""
    if math.isfinite(loss):
        return None
    return f"diverged: the loss is {loss}. A rate of {rate:g} is too high for it; try {rate / 10:g}."


def forgetting(recalls: Sequence[float | None], frozen: float | None, *, rate: float) -> str | None:
    """Say that the held-out identities stay far worse found than by the frozen encoder, or None.

    `recalls` is held-out recall@1 epoch by epoch. A head that starts at random is bad at first, so three epochs in
    a row must be bad and the last no better than the first of them.

    >>> forgetting([0.8, 0.2, 0.2, 0.1], 0.9, rate=1.0)[:46]
    'diverged: held-out recall@1 fell from 0.900 (f'
    >>> forgetting([0.1, 0.2, 0.3], 0.9, rate=1.0)
    """
    last = [recall for recall in recalls[-_IN_A_ROW:] if recall is not None]
    if frozen is None or len(last) < _IN_A_ROW or max(last) >= _FELL_TO * frozen or last[-1] > last[0]:
        return None
    return (
        f"diverged: held-out recall@1 fell from {frozen:.3f} (frozen encoder) to {last[-1]:.3f} and stays there. "
        f"A rate of {rate:g} is probably too high; try {rate / 10:g}."
    )


def settled(empty: int, batches: int) -> str | None:
    """Say that (nearly) no batch had anything left to learn from, or None."""
    if batches == 0 or empty < batches:
        return None
    return f"all {batches} batches had a loss of exactly 0: every triplet keeps its margin, nothing is left to learn"
