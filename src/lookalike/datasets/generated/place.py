"""Where an object stands: a floor and a wall with a material each, seen through the same camera."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lookalike.datasets.generated.render import Camera
from lookalike.datasets.generated.surface import Colour, chance, chance_at, linear

Array: TypeAlias = npt.NDArray[np.floating[Any]]
Material: TypeAlias = Callable[[Array, Array, Array, Array], Array]
"""(x, y, one colour (3,), another (3,)) → (3, h, w) linear"""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A floor meeting a wall at `behind` units, softly (a photographer's sweep) or at a skirting board."""

    floor: str
    floor_colours: tuple[Colour, Colour]
    wall: str
    wall_colours: tuple[Colour, Colour]
    behind: float
    turn: float
    """degrees by which the materials are turned against the object"""
    soft: bool
    offset: float
    """shifts the materials, so that no two floors show the same boards"""


def view(place: Place, camera: Camera, size: int) -> tuple[Array, Array]:
    """Return the empty place (3, size, size), linear, and where a shadow may fall (size, size)."""
    rays = camera.rays(size).astype(np.float32)
    eye = camera.eye.astype(np.float32)
    angle = np.deg2rad(place.turn)
    back = np.array(
        [-np.sin(np.deg2rad(camera.azimuth)), 0, -np.cos(np.deg2rad(camera.azimuth))], np.float32
    )  # always faces us
    towards_wall = rays[0] * back[0] + rays[2] * back[2]
    to_wall = np.float32(place.behind) - eye @ back
    reach_wall = np.where(towards_wall > 1e-3, to_wall / np.maximum(towards_wall, 1e-3), np.inf)
    reach_floor = np.where(rays[1] < -1e-3, -eye[1] / np.minimum(rays[1], -1e-3), np.inf)
    on_floor = reach_floor < reach_wall
    reach = np.minimum(np.minimum(reach_floor, reach_wall), 60.0).astype(np.float32)
    points = eye[:, None, None] + rays * reach
    cos, sin, offset = (np.float32(each) for each in (np.cos(angle), np.sin(angle), place.offset))
    x = points[0] * cos + points[2] * sin + offset
    z = points[2] * cos - points[0] * sin + offset * np.float32(0.7)
    floor = MATERIALS[place.floor](x, z, linear(place.floor_colours[0]), linear(place.floor_colours[1]))
    if place.soft:
        return floor * _fall_off(points), np.ones_like(x)
    side = points[0] * back[2] - points[2] * back[0] + offset
    wall = MATERIALS[place.wall](side, points[1], linear(place.wall_colours[0]), linear(place.wall_colours[1]))
    distance = np.abs(points[0] * back[0] + points[2] * back[2] - np.float32(place.behind))
    wall = wall * ((0.78 + 0.1 * np.tanh(points[1] - 1)) * (1 - 0.4 * np.exp(-np.abs(points[1]) * 3)))
    floor = floor * (1 - np.exp(-distance * 2.5) * 0.35)  # light gets lost where floor meets wall
    return np.where(on_floor, floor, wall), on_floor.astype(np.float32)


def _fall_off(points: Array) -> Array:
    """Darken a sweep with distance, as under one soft light."""
    far = points[0] ** 2 + points[2] ** 2
    return np.asarray(0.72 + 0.28 * np.exp(-far / 16))


def _noise(x: Array, y: Array) -> Array:
    """Smooth value noise in 0..1: chance at the corners of a unit lattice, eased between them."""
    left, low = np.floor(x), np.floor(y)
    across, up = x - left, y - low
    across, up = across * across * (3 - 2 * across), up * up * (3 - 2 * up)
    i, j = left.astype(np.int32), low.astype(np.int32)
    bottom, top = (chance_at(i, row) + (chance_at(i + 1, row) - chance_at(i, row)) * across for row in (j, j + 1))
    return np.asarray(bottom + (top - bottom) * up)


def _mix(weight: Array, one: Array, other: Array) -> Array:
    weight = np.clip(weight, 0, 1).astype(np.float32)
    return np.asarray(one[:, None, None] + (other - one)[:, None, None] * weight)


def _paper(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix(_noise(x * 9, y * 9) * 0.12, one, other)


def _boards(x: Array, y: Array, one: Array, other: Array) -> Array:
    board = np.floor(x / 0.42)
    tone = chance(board, board * 0)
    grain = _noise(x * 26 + tone * 50, y * 1.6 + tone * 90) * 0.55 + _noise(x * 70, y * 4) * 0.2
    gap = np.abs(x / 0.42 - board - 0.5) > 0.482
    return _mix(grain * 0.7 + tone * 0.4, one, other) * np.where(gap, np.float32(0.45), np.float32(1.0))


def _tiles(x: Array, y: Array, one: Array, other: Array) -> Array:
    grout = (np.abs(x * 1.7 % 1 - 0.5) > 0.47) | (np.abs(y * 1.7 % 1 - 0.5) > 0.47)
    tone = chance(np.floor(x * 1.7), np.floor(y * 1.7))
    return _mix(np.where(grout, 1.0, tone * 0.25 + _noise(x * 5, y * 5) * 0.15), one, other)


def _checker(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix((np.floor(x * 1.4) + np.floor(y * 1.4)) % 2 * 0.9, one, other)


def _concrete(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix(_noise(x * 1.3, y * 1.3) * 0.5 + _noise(x * 6, y * 6) * 0.25 + _noise(x * 40, y * 40) * 0.2, one, other)


def _marble(x: Array, y: Array, one: Array, other: Array) -> Array:
    wander = _noise(x * 1.1, y * 1.1) * 3 + _noise(x * 3, y * 3)
    vein = np.exp(-((np.sin((x + y) * 1.3 + wander * 2.2) / 0.16) ** 2))
    return _mix(vein * 0.7 + _noise(x * 2, y * 2) * 0.2, one, other)


def _cloth(x: Array, y: Array, one: Array, other: Array) -> Array:
    fold = _noise(x * 1.2 + _noise(y * 0.8, x * 0.5) * 2, y * 0.6)
    return _mix(fold * 0.8 + 0.1 * np.sin(x * 90) * np.sin(y * 90), one, other)


def _grass(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix(_noise(x * 34, y * 11) * 0.6 + _noise(x * 2, y * 2) * 0.5 - 0.1, one, other)


def _rug(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix((np.abs(y * 1.1 % 1 - 0.5) < 0.16) * 0.85 + _noise(x * 60, y * 60) * 0.25, one, other)


def _bricks(x: Array, y: Array, one: Array, other: Array) -> Array:
    row = np.floor(y * 4.5)
    shifted = x * 1.8 + 0.5 * (row % 2)
    mortar = (np.abs(y * 4.5 % 1 - 0.5) > 0.43) | (np.abs(shifted % 1 - 0.5) > 0.47)
    tone = chance(np.floor(shifted), row) * 0.3 + _noise(x * 25, y * 25) * 0.15
    return _mix(np.where(mortar, 1.0, tone), one, other)


def _panels(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix((np.abs(x * 1.2 % 1 - 0.5) > 0.47) * 0.6 + _noise(x * 3, y * 0.7) * 0.15, one, other)


def _garden(x: Array, y: Array, one: Array, other: Array) -> Array:
    return _mix(_noise(x * 1.4, y * 1.4) * 0.75 + _noise(x * 3.5 + 9, y * 3.5) * 0.35, one, other)


MATERIALS: Mapping[str, Material] = {
    "paper": _paper, "boards": _boards, "tiles": _tiles, "checker": _checker, "concrete": _concrete, "marble": _marble,
    "cloth": _cloth, "grass": _grass, "rug": _rug, "bricks": _bricks, "panels": _panels, "garden": _garden,
}  # fmt: skip

FLOORS: tuple[tuple[str, Colour, Colour], ...] = (
    ("boards", (186, 140, 96), (128, 84, 52)), ("boards", (222, 196, 160), (186, 152, 112)),
    ("boards", (96, 64, 46), (58, 38, 28)), ("tiles", (226, 224, 216), (168, 166, 160)),
    ("tiles", (120, 138, 140), (206, 208, 204)), ("checker", (232, 228, 218), (64, 66, 70)),
    ("concrete", (176, 174, 170), (118, 118, 118)), ("marble", (238, 236, 232), (150, 152, 156)),
    ("marble", (60, 66, 66), (190, 190, 184)), ("cloth", (196, 182, 164), (122, 108, 94)),
    ("cloth", (92, 112, 140), (48, 62, 88)), ("cloth", (176, 92, 84), (110, 48, 46)),
    ("grass", (84, 128, 52), (40, 76, 30)),
    ("rug", (206, 190, 160), (150, 74, 60)), ("rug", (70, 90, 110), (210, 200, 180)),
)  # fmt: skip
WALLS: tuple[tuple[str, Colour, Colour], ...] = (
    ("paper", (224, 218, 206), (200, 190, 176)), ("paper", (150, 172, 176), (120, 140, 146)),
    ("paper", (206, 160, 140), (180, 130, 110)), ("paper", (88, 104, 96), (64, 80, 74)),
    ("bricks", (164, 92, 70), (206, 198, 188)), ("bricks", (226, 222, 214), (186, 182, 176)),
    ("panels", (232, 230, 224), (184, 182, 176)), ("panels", (120, 84, 58), (76, 50, 34)),
    ("concrete", (190, 188, 184), (140, 140, 140)), ("garden", (116, 150, 84), (40, 66, 38)),
    ("garden", (176, 200, 214), (92, 120, 96)), ("cloth", (110, 84, 100), (64, 46, 60)),
)  # fmt: skip
SWEEPS: tuple[Colour, ...] = (
    (244, 243, 240), (232, 232, 234), (214, 222, 226), (236, 224, 208), (226, 206, 204), (204, 214, 198),
    (120, 124, 130), (62, 66, 74), (236, 200, 120), (128, 168, 176),
)  # fmt: skip


def any_place(random: np.random.Generator, *, studio: float) -> Place:
    """Draw a place: with probability `studio` a plain sweep, otherwise a room or the open."""
    floor, first, second = FLOORS[int(random.integers(len(FLOORS)))]
    wall, wall_first, wall_second = WALLS[int(random.integers(len(WALLS)))]
    sweep = SWEEPS[int(random.integers(len(SWEEPS)))]
    soft = bool(random.random() < studio)
    return Place(
        floor="paper" if soft else floor,
        floor_colours=(sweep, sweep) if soft else (first, second),
        wall=wall,
        wall_colours=(wall_first, wall_second),
        behind=float(random.uniform(0.9, 2.6)),
        turn=float(random.uniform(-50, 50)),
        soft=soft,
        offset=float(random.uniform(0, 40)),
    )
