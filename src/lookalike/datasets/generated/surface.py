"""What a surface looks like: a pattern of up to three colours, a mark on it, and how it shines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.floating[Any]]
Colour: TypeAlias = tuple[int, int, int]
"""sRGB, 0..255."""


@dataclass(frozen=True, kw_only=True)
class Surface:
    """Colours in a pattern over (u, v), with a mark printed on it, and its shine."""

    colours: tuple[Colour, ...]
    pattern: str = "plain"
    repeats: tuple[float, float] = (8, 8)
    mark: str = "none"
    mark_colour: Colour = (250, 250, 248)
    mark_box: tuple[float, float, float, float] = (0.5, 0.5, 0.1, 0.1)
    """centre u, centre v, half width, half height"""
    shine: float = 0.3
    """0 is matt cloth, 1 is glazed china"""
    glow: float = 0.0
    """light given off, as by a lamp's shade"""


def paint(surface: Surface, u: Array, v: Array) -> Array:
    """Return the linear colour (3, n) at surface coordinates u and v, each (n,)."""
    colours = [linear(colour)[:, None] for colour in surface.colours]
    repeats = (1.0, 1.0) if surface.pattern in WHOLE else surface.repeats
    weight = PATTERNS[surface.pattern](u * repeats[0], v * repeats[1])
    result = colours[0] * (1 - weight) + colours[1 % len(colours)] * weight
    if len(colours) > 2:  # the third colour is a trim along both ends
        result = np.where((v < 0.08) | (v > 0.93), colours[2], result)
    if surface.mark != "none":
        x = (u - surface.mark_box[0]) / surface.mark_box[2]
        y = (v - surface.mark_box[1]) / surface.mark_box[3]
        result = np.where(MARKS[surface.mark](x, y), linear(surface.mark_colour)[:, None], result)
    return result


def linear(colour: Colour) -> Array:
    """Convert sRGB 0..255 to linear light 0..1, by the power 2.2."""
    return np.asarray((np.array(colour, dtype=np.float32) / 255) ** 2.2)


def _cell(values: Array) -> Array:
    """Return the place inside each repeat, -0.5..0.5."""
    return values - np.floor(values) - 0.5


def chance(i: Array, j: Array) -> Array:
    """A value in 0..1 for each whole-numbered cell (i, j), the same on every machine."""
    return chance_at(i.astype(np.int32), j.astype(np.int32))


def chance_at(i: npt.NDArray[np.int32], j: npt.NDArray[np.int32]) -> Array:
    """Return the same as `chance`, of whole numbers; repeats every 256 cells."""
    return np.asarray(CHANCE.take(((i & 255) << 8) | (j & 255)))


CHANCE = np.random.default_rng(20).random(256 * 256, dtype=np.float32)


def _speckle(u: Array, v: Array) -> Array:
    """Irregular chips, one a cell, of chance size and place."""
    noise, other = chance(np.floor(u), np.floor(v)), chance(np.floor(v) + 91, np.floor(u) + 37)
    du, dv = _cell(u) - (noise - 0.5) * 0.5, _cell(v) - (other - 0.5) * 0.5
    return np.asarray(du * du + dv * dv < (0.08 + 0.22 * noise) ** 2, dtype=np.float32)


PATTERNS: Mapping[str, Callable[[Array, Array], Array]] = {
    "plain": lambda u, v: np.zeros_like(u),
    "rings": lambda u, v: (_cell(v) > 0).astype(np.float32),
    "pinstripes": lambda u, v: (np.abs(_cell(v)) > 0.36).astype(np.float32),
    "stripes": lambda u, v: (_cell(u) > 0).astype(np.float32),
    "dots": lambda u, v: (_cell(u + 0.5 * (np.floor(v) % 2)) ** 2 + _cell(v) ** 2 < 0.08).astype(np.float32),
    "checks": lambda u, v: ((np.floor(u) + np.floor(v)) % 2).astype(np.float32),
    "tartan": lambda u, v: 0.5 * (_cell(u) > 0) + 0.5 * (_cell(v) > 0.1),
    "zigzag": lambda u, v: (_cell(v + np.abs(_cell(u)) * 1.2) > 0).astype(np.float32),
    "waves": lambda u, v: (_cell(v + 0.22 * np.sin(u * 2 * np.pi)) > 0.1).astype(np.float32),
    "band": lambda u, v: (np.abs(v - 0.5) < 0.16).astype(np.float32),
    "halves": lambda u, v: (v > 0.5).astype(np.float32),
    "fade": lambda u, v: np.clip(v, 0, 1),
    "speckle": _speckle,
    "grain": lambda u, v: 0.5 + 0.5 * np.sin(u * 6.3 + 1.5 * np.sin(v * 1.7) + 0.6 * np.sin(v * 9.1 + u * 3)),
    "weave": lambda u, v: 0.5 + 0.25 * np.sin(u * 6.28) + 0.25 * np.sin(v * 6.28),
}

WHOLE = frozenset({"band", "halves", "fade"})
"""Patterns laid once over the whole surface, whatever the number of repeats."""

MARKS: Mapping[str, Callable[[Array, Array], npt.NDArray[np.bool_]]] = {
    "none": lambda x, y: np.zeros_like(x, dtype=bool),
    "disc": lambda x, y: x * x + y * y < 1,
    "ring": lambda x, y: np.abs(np.sqrt(x * x + y * y) - 0.75) < 0.25,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) < 0.85,
    "diamond": lambda x, y: np.abs(x) + np.abs(y) < 1,
    "triangle": lambda x, y: (y < 0.8) & (np.abs(x) < (y + 1) * 0.55),
    "cross": lambda x, y: (np.maximum(np.abs(x), np.abs(y)) < 0.95) & (np.minimum(np.abs(x), np.abs(y)) < 0.32),
    "bars": lambda x, y: (np.abs(x) < 0.9) & (np.abs(y) < 0.9) & (np.floor((y + 1) * 2.5) % 2 == 0),
    "star": lambda x, y: np.sqrt(x * x + y * y) < 0.62 + 0.34 * np.cos(5 * np.arctan2(x, -y)),
    "heart": lambda x, y: (x * x * 1.5 + (1.35 * -y - 0.55 * np.sqrt(np.abs(x)) + 0.25) ** 2) < 0.9,
    "bolt": lambda x, y: (np.abs(y) < 1) & (np.abs(x - 0.55 * np.where(y < 0, -y - 0.35, 0.35 - y)) < 0.3),
    "label": lambda x, y: (np.abs(x) < 1) & (np.abs(y) < 1),
}
