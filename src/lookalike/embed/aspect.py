"""Pictures so long that a central square misses most of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lookalike.errors import InputError

LIMIT = 2.0


@dataclass(frozen=True)
class AspectReport:
    """Which pictures are beyond a ratio of long to short side, and what a centre crop sees of them."""

    total: int
    limit: float
    beyond: Mapping[str, float]
    """Name -> ratio, the longest first."""

    def __str__(self) -> str:
        if not self.beyond:
            return f"none of {self.total} pictures is longer than {self.limit:g}:1"
        name, ratio = next(iter(self.beyond.items()))
        return (
            f"{len(self.beyond)} of {self.total} pictures are longer than {self.limit:g}:1, the longest {ratio:.1f}:1 "
            f"({name}): a centre crop sees {1 / ratio:.0%} of it; ?crop=pad, squash or multi sees all or more"
        )


def beyond_aspect(sizes: Mapping[str, tuple[int, int]], *, limit: float = LIMIT) -> AspectReport:
    """Report the pictures whose long side is more than `limit` times the short one; sizes are (width, height).

    Raises:
        InputError: a limit below 1.

    >>> print(beyond_aspect({"shoe.jpg": (400, 300), "belt.jpg": (1000, 200)}))
    1 of 2 pictures are longer than 2:1, the longest 5.0:1 (belt.jpg): a centre crop sees 20% of it; ?crop=pad, \
squash or multi sees all or more
    """
    if limit < 1:
        raise InputError(f"limit={limit:g}: a ratio of long to short side is at least 1.")
    ratios = {name: max(size) / max(min(size), 1) for name, size in sizes.items()}
    beyond = {name: ratio for name, ratio in sorted(ratios.items(), key=lambda row: (-row[1], row[0])) if ratio > limit}
    return AspectReport(len(sizes), limit, beyond)
