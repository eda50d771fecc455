"""Solid shapes as quads: everything is a grid of points, bent into a tube, a vase, a box or a leaf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lookalike.datasets.generated.surface import Surface

Array: TypeAlias = npt.NDArray[np.floating[Any]]

TAU = 2 * np.pi


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """f quads with, at each of their four corners, a place, a normal and a surface coordinate.

    y points up, the ground is y = 0, and a shape is about one unit across. `solid` meshes hide their far side.
    """

    points: Array
    """(f, 4, 3)"""
    normals: Array
    """(f, 4, 3), unit or zero"""
    coordinates: Array
    """(f, 4, 2), u around or across and v along, both 0..1"""
    surface: Surface
    solid: bool = True
    nearer: float = 0.0
    """how much nearer it counts when parts are painted from far to near: what lies on something is drawn after it"""

    def over(self, nearer: float = 0.08) -> Mesh:
        """Draw after what it lies on."""
        return replace(self, nearer=nearer)

    def move(self, x: float = 0, y: float = 0, z: float = 0) -> Mesh:
        """Shift."""
        return replace(self, points=self.points + np.array([x, y, z]))

    def scale(self, x: float, y: float, z: float) -> Mesh:
        """Stretch along the axes; normals follow by the inverse."""
        normals = self.normals / np.array([x, y, z])
        return replace(self, points=self.points * np.array([x, y, z]), normals=_unit(normals))

    def turn(self, degrees: float, axis: str) -> Mesh:
        """Rotate about one of the axes x, y and z."""
        matrix = rotation(degrees, axis)
        return replace(self, points=self.points @ matrix.T, normals=self.normals @ matrix.T)


def rotation(degrees: float, axis: str) -> Array:
    """(3, 3) matrix of a rotation about x, y or z."""
    angle = np.deg2rad(degrees)
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[first, first] = matrix[second, second] = cos
    matrix[first, second], matrix[second, first] = -sin, sin
    return matrix


def sheet(
    points: Array, surface: Surface, *, around: bool = False, solid: bool = False, along: Array | None = None
) -> Mesh:
    """Turn a grid of (rows, columns, 3) points into quads; `around` joins the last column to the first.

    `along` (rows,) gives each row its v; without it, rows are spread evenly. A row that is given twice makes a crease:
    the quads between have no area and lend no normal to their neighbours.
    """
    rows, columns = points.shape[:2]
    across = columns if around else columns - 1
    down, side = (each.ravel() for each in np.meshgrid(np.arange(rows - 1), np.arange(across), indexing="ij"))
    corners = np.stack([down, down + 1, down + 1, down], 1), np.stack([side, side, side + 1, side + 1], 1)
    index = corners[0] * columns + corners[1] % columns
    flat = points.reshape(-1, 3)
    quads = flat[index]
    normal = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])  # length: twice the area
    if solid and float(np.einsum("fi,fi->", quads.mean(1) - flat.mean(0), normal)) < 0:
        normal = -normal
    total = np.zeros_like(flat)
    for corner in range(4):
        np.add.at(total, index[:, corner], normal)
    place = np.linspace(0, 1, rows) if along is None else along
    coordinates = np.stack([corners[1] / across, place[corners[0]]], -1)
    keep = np.einsum("fi,fi->f", normal, normal) > 1e-14
    return Mesh(
        points=quads[keep],
        normals=_unit(total)[index][keep],
        coordinates=coordinates[keep],
        surface=surface,
        solid=solid,
    )


def revolve(
    profile: Sequence[tuple[float, float]], surface: Surface, *, segments: int = 36, solid: bool = True, smooth: int = 1
) -> Mesh:
    """Turn a profile of (radius, height) about the y axis; `smooth` cuts the corners of the profile that many times."""
    line = np.array(profile, dtype=float)
    for _ in range(smooth):
        line = _corner_cut(line)
    line = _fine(line)
    length = np.concatenate([[0], np.linalg.norm(np.diff(line, axis=0), axis=1).cumsum()])
    angle = np.arange(segments) / segments * TAU
    points = np.stack(
        [
            line[:, :1] * np.cos(angle),
            np.broadcast_to(line[:, 1:], (len(line), segments)),
            line[:, :1] * np.sin(angle),
        ],
        -1,
    )
    return sheet(points, surface, around=True, solid=solid, along=length / length[-1])


def tube(
    path: Array | Sequence[Sequence[float]],
    radius: float | Sequence[float],
    surface: Surface,
    *,
    segments: int = 10,
    smooth: int = 0,
    flat: float = 1.0,
) -> Mesh:
    """Sweep a circle, or an ellipse `flat` times as thick as wide, along a path of (n, 3) points, ends closed."""
    line = np.asarray(path, dtype=float)
    radii = np.broadcast_to(np.asarray(radius, dtype=float).reshape(-1), (len(line),))[:, None]
    for _ in range(smooth):
        line, radii = _corner_cut(line), _corner_cut(radii)
    both = _fine(np.concatenate([line, radii], 1), step=0.12)
    line, radii = both[:, :3], both[:, 3:]
    tangent = _unit(np.gradient(line, axis=0))
    normal = np.zeros_like(line)
    start = np.eye(3)[int(np.argmin(np.abs(tangent[0])))]
    for place, direction in enumerate(tangent):  # carry one normal along, so that the tube does not twist
        previous = normal[place - 1] if place else start
        normal[place] = previous - direction * (previous @ direction)
        normal[place] /= np.linalg.norm(normal[place])
    binormal = np.cross(tangent, normal)
    angle = np.arange(segments) / segments * TAU
    ring = np.cos(angle)[None, :, None] * normal[:, None] * flat + np.sin(angle)[None, :, None] * binormal[:, None]
    points = line[:, None] + radii[:, :, None] * ring
    ends = (
        np.repeat(line[:1, None], segments, 1),
        points[:1],
        points,
        points[-1:],
        np.repeat(line[-1:, None], segments, 1),
    )
    return sheet(np.concatenate(ends), surface, around=True, solid=True)


def box(
    width: float, height: float, depth: float, surface: Surface, *, rounding: float = 0.02, steps: int = 6
) -> list[Mesh]:
    """Six sides of a box with rounded edges, standing on y = 0; u runs across a side and v down it."""
    half = np.array([width, height, depth]) / 2
    reach = min(rounding, float(half.min()) * 0.98)
    ticks = np.concatenate([[-1.0, -0.97], np.linspace(-0.85, 0.85, steps), [0.97, 1.0]])
    down, across = np.meshgrid(-ticks, ticks, indexing="ij")
    sides = []
    for axis, sign in ((2, 1), (2, -1), (0, 1), (0, -1), (1, 1), (1, -1)):
        cube = np.empty((*down.shape, 3))
        others = {0: (1, 2), 1: (2, 0), 2: (1, 0)}[axis]
        cube[..., axis], cube[..., others[0]], cube[..., others[1]] = (
            sign,
            down,
            across * (sign if axis == 2 else -sign),
        )
        place = cube * half
        core = np.clip(place, -(half - reach), half - reach)
        offset = place - core
        length = np.linalg.norm(offset, axis=-1, keepdims=True)
        place = core + offset / np.maximum(length, 1e-9) * reach
        sides.append(sheet(place + np.array([0, half[1], 0]), surface))
    return sides


def ball(radius: float, surface: Surface, *, segments: int = 24) -> Mesh:
    """A sphere about the origin, pole up."""
    angle = np.linspace(0, np.pi, segments // 2 + 1)
    return revolve(
        [(float(np.sin(a)) * radius, float(np.cos(a)) * radius) for a in angle], surface, segments=segments, smooth=0
    )


def slab(
    outline: Sequence[tuple[float, float]], depth: float, face: Surface, side: Surface, *, smooth: int = 2
) -> list[Mesh]:
    """A shape cut from a board: half-widths (w, y) mirrored about x = 0, in the plane z = 0, `depth` thick."""
    line = np.array(outline, dtype=float)
    for _ in range(smooth):
        line = _corner_cut(line)
    across = np.linspace(-1, 1, 9)
    front = np.empty((len(line), 9, 3))
    front[..., 0], front[..., 1], front[..., 2] = line[:, :1] * across, line[:, 1:], depth / 2
    back = front * [1, 1, -1]
    rim = np.concatenate([front[:, 0], front[::-1, -1]])
    wall = np.stack([rim, rim * [1, 1, -1]], 0)
    return [sheet(front, face), sheet(back, side), sheet(wall, side, around=True)]


def lift(parts: Iterable[Mesh], *, turn: float = 0, axis: str = "y") -> list[Mesh]:
    """Turn all parts together and set the lowest point on the ground, centred on x = z = 0."""
    turned = [part.turn(turn, axis) for part in parts]
    points = np.concatenate([part.points.reshape(-1, 3) for part in turned])
    low, high = points.min(0), points.max(0)
    x, _, z = (low + high) / 2
    return [part.move(-float(x), -float(low[1]), -float(z)) for part in turned]


def _corner_cut(line: Array) -> Array:
    """Chaikin's corner cutting: each corner becomes two points at a quarter of its sides; the ends stay."""
    near, far = 0.75 * line[:-1] + 0.25 * line[1:], 0.25 * line[:-1] + 0.75 * line[1:]
    inner = np.stack([near, far], 1).reshape(-1, line.shape[1])
    return np.concatenate([line[:1], inner[1:-1], line[-1:]])


def _fine(line: Array, *, step: float = 0.07) -> Array:
    """Cut long pieces of a line, because far-to-near painting goes by the middle of each quad."""
    pieces = [line[:1]]
    for start, end in pairwise(line):
        count = max(1, int(np.ceil(np.linalg.norm(end - start) / step)))
        pieces.append(start + (end - start) * (np.arange(1, count + 1) / count)[:, None])
    return np.concatenate(pieces)


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))
