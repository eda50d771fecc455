"""A sneaker, built up as a shoe is: upper, sole, toe cap and heel, laces, stripes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import Mesh, ball, sheet, tube

Array: TypeAlias = npt.NDArray[np.floating[Any]]

LENGTH = 1.25
ALONG = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, 29))  # from heel to toe, dense at both ends
ARCH = np.linspace(0, np.pi, 17)  # over the foot, from one side to the other
WHITE, OFF_WHITE = (242, 240, 234), (240, 238, 232)


@dataclass(frozen=True, kw_only=True)
class Last:
    """The form a shoe is made on."""

    width: float
    sole: float
    """thickness"""
    collar: float
    """height at the ankle"""

    @property
    def half(self) -> Array:
        """(29,) half the width, from heel to toe."""
        stations = [0, 0.015, 0.06, 0.2, 0.45, 0.72, 0.9, 0.97, 0.99, 1]
        shares = [0.0, 0.4, 0.68, 0.82, 0.78, 1.0, 0.85, 0.6, 0.4, 0.0]
        return np.asarray(self.width / 2 * np.interp(ALONG, stations, shares))

    @property
    def top(self) -> Array:
        """(29,) height above the sole, from heel to toe."""
        heights = [self.collar * 0.96, self.collar, self.collar * 0.94, self.collar * 0.9, 0.3, 0.2, 0.14, 0.02]
        line = np.interp(ALONG, [0, 0.05, 0.3, 0.42, 0.7, 0.88, 0.97, 1], heights)
        return np.concatenate([line[:1], np.convolve(line, np.ones(3) / 3, "valid"), line[-1:]])

    def upper(self) -> Array:
        """(29, 17, 3) heel to toe, side to side."""
        power = np.interp(ALONG, [0, 0.4, 0.7, 1], [0.45, 0.5, 0.8, 0.9])[:, None]
        across = np.sign(np.cos(ARCH)) * np.abs(np.cos(ARCH)) ** 0.6
        narrow = 1 - 0.28 * np.sin(ARCH) ** 2 * (ALONG[:, None] < 0.45)  # the ankle is slimmer than the foot
        x = np.broadcast_to((ALONG[:, None] - 0.5) * LENGTH, (29, 17))
        return np.stack(
            [x, self.sole + self.top[:, None] * np.sin(ARCH) ** power, self.half[:, None] * across * narrow], -1
        )

    def outline(self) -> Array:
        """(n, 2) once around the foot: place along, half width."""
        ring = np.concatenate([np.stack([ALONG, self.half], 1), np.stack([ALONG, -self.half], 1)[::-1]])
        apart = np.linalg.norm(np.diff(ring, axis=0), axis=1) > 1e-6
        return ring[np.r_[0, np.flatnonzero(apart) + 1]]


def sneaker(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A sneaker: low or high, with or without a toe cap and stripes."""
    last = Last(
        width=float(random.uniform(0.4, 0.46)),
        sole=float(random.uniform(0.07, 0.15)),
        collar=float(random.uniform(0.42, 0.66)),
    )
    upper = last.upper()
    parts = [sheet(upper.transpose(1, 0, 2), look.patterned((7, 7), shine=0.15, mark=(0.17, 0.42, 0.07, 0.12)))]
    parts += _sole(random, look, last)
    if random.random() < 0.6:
        cap = upper[19:] * [1, 1, 1.02] + [0.012, 0.012, 0]
        leather = look.plain(look.trim if random.random() < 0.5 else OFF_WHITE, shine=0.3)
        parts.append(sheet(cap.transpose(1, 0, 2), leather).over(0.1))
    heel = upper[:8] * [1, 1.01, 1.03] - [0.012, 0, 0]
    parts.append(sheet(heel.transpose(1, 0, 2), look.plain(look.second, shine=0.2)).over(0.1))
    opening = ball(1.0, look.plain((46, 44, 46), shine=0.05)).scale(0.22, 0.05, last.width * 0.24)
    parts.append(opening.move(-0.32, last.sole + last.collar * 0.97).over(0.15))
    return [*parts, *_laces(random, look, last), *_stripes(random, look, last)]


def _sole(random: np.random.Generator, look: Look, last: Last) -> list[Mesh]:
    ring, thick = last.outline(), last.sole
    levels = [(0.98, 0.0), (1.06, 0.0), (1.08, thick * 0.5), (1.06, thick + 0.02), (1.0, thick + 0.03)]
    x, z = (ring[:, 0] - 0.5) * LENGTH, ring[:, 1]
    rings = [np.stack([x * (0.97 + 0.03 * grow), np.full_like(x, y), z * grow], 1) for grow, y in levels]
    rubber = look.plain(WHITE if random.random() < 0.6 else look.second, shine=0.25)
    line = np.stack([x, np.full_like(x, thick * 0.55), z * 1.09], 1)
    foxing = tube(np.concatenate([line, line[:1]]), 0.012, look.plain(look.trim), segments=5).over(0.05)
    return [sheet(np.stack(rings), rubber, around=True), foxing]


def _laces(random: np.random.Generator, look: Look, last: Last) -> list[Mesh]:
    cotton = look.plain((246, 244, 240) if random.random() < 0.6 else look.trim, shine=0.1)
    laces = []
    for place in np.linspace(0.45, 0.68, int(random.integers(4, 7))):
        x, y = (place - 0.5) * LENGTH, last.sole + float(np.interp(place, ALONG, last.top)) + 0.012
        path = [(x, y - 0.03, -0.11), (x + 0.02, y + 0.005, 0), (x, y - 0.03, 0.11)]
        laces.append(tube(path, 0.017, cotton, segments=6, smooth=1).over(0.15))
    return laces


def _stripes(random: np.random.Generator, look: Look, last: Last) -> list[Mesh]:
    slant = random.uniform(-0.1, 0.25)
    count = int(random.integers(0, 4))
    stripes = []
    for side in (-1, 1):
        z = side * last.width * 0.42
        for number in range(count):
            x = -0.08 + number * 0.09
            path = [(x + slant, last.sole + 0.28, z * 0.86), (x, last.sole + 0.03, z * 1.02)]
            stripes.append(tube(path, 0.02, look.plain(look.trim, shine=0.2), segments=5, flat=0.5).over(0.12))
    return stripes
