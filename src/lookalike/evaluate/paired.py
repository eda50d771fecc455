"""Two sets of values of the same queries, metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.arrays import Scores
from lookalike.evaluate.confidence import paired
from lookalike.evaluate.metrics import mean


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One metric of two runs over the same queries; `difference` is b minus a."""

    a: float
    b: float
    difference: float
    interval: tuple[float, float]
    p: float
    won: int
    """Queries on which b is better."""
    lost: int
    tied: int

    @property
    def decided(self) -> bool:
        """Whether the interval of the difference leaves out zero."""
        return self.interval[0] > 0 or self.interval[1] < 0


def compare_values(
    a: Mapping[str, Scores], b: Mapping[str, Scores], *, groups: Sequence[Any] | None = None, seed: int = 0
) -> dict[str, Compared]:
    """Compare (q,) values of the metrics two runs have in common, rows in the same order.

    Raises:
        ProtocolError: the runs did not evaluate the same queries.
    """
    result = {}
    for name in (name for name in a if name in b):
        done = paired(a[name], b[name], groups=groups, seed=seed)
        result[name] = Compared(
            a=mean(a[name]), b=mean(b[name]), difference=done.difference, interval=(done.low, done.high), p=done.p,
            won=done.won, lost=done.lost, tied=done.tied,
        )  # fmt: skip
    return result
