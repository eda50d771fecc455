"""Quads to pixels: each pixel learns which quad it shows, then place, normal and colour are computed a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from lookalike.datasets.generated.mesh import Mesh
from lookalike.datasets.generated.surface import Surface, paint

Array: TypeAlias = npt.NDArray[np.floating[Any]]

OVERSAMPLE = 2  # the drawn picture is that many times larger a side, and averaged down
CHUNK = 1 << 13
"""pixels shaded at a time: what is computed of them stays in the processor's cache"""


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole that looks at a point from a distance; angles in degrees."""

    azimuth: float
    elevation: float
    distance: float
    target: tuple[float, float, float]
    zoom: float
    """focal length in picture widths"""
    roll: float = 0.0

    @cached_property
    def eye(self) -> Array:
        """(3,) where the camera stands."""
        turn, rise = np.deg2rad(self.azimuth), np.deg2rad(self.elevation)
        direction = np.array([np.sin(turn) * np.cos(rise), np.sin(rise), np.cos(turn) * np.cos(rise)])
        return np.array(self.target) + self.distance * direction

    @cached_property
    def axes(self) -> Array:
        """(3, 3) rows: right, down, forward."""
        forward = np.array(self.target) - self.eye
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0, 1, 0])
        right /= np.linalg.norm(right)
        down = np.cross(forward, right)
        cos, sin = np.cos(np.deg2rad(self.roll)), np.sin(np.deg2rad(self.roll))
        return np.stack([cos * right + sin * down, cos * down - sin * right, forward])

    def project(self, points: Array, size: int) -> tuple[Array, Array]:
        """(…, 3) points to (…, 2) pixels of a picture of that size, and (…,) depth."""
        seen = (points - self.eye) @ self.axes.T
        depth = np.maximum(seen[..., 2], 0.05)
        return seen[..., :2] / depth[..., None] * (self.zoom * size) + size / 2, depth

    def rays(self, size: int) -> Array:
        """(3, size, size) the direction in which each pixel looks."""
        place = (np.arange(size) + 0.5 - size / 2) / (self.zoom * size)
        right, down, forward = self.axes[:, :, None, None]
        return np.asarray(forward + down * place[:, None] + right * place)


@dataclass(frozen=True, kw_only=True)
class Light:
    """One soft key light, and the light of the surroundings from above and from below."""

    direction: tuple[float, float, float]
    """towards the light"""
    key: tuple[float, float, float]
    sky: tuple[float, float, float]
    bounce: tuple[float, float, float]

    @cached_property
    def towards(self) -> Array:
        """(3,) unit."""
        vector = np.array(self.direction)
        return np.asarray(vector / np.linalg.norm(vector))


def draw(parts: Sequence[Mesh], camera: Camera, light: Light, size: int) -> tuple[Array, Array]:
    """Render parts; return linear colour times coverage (3, size, size) and coverage (size, size).

    Colours come first in every array here: numpy is slow where the last axis has a length of three.
    """
    large = size * OVERSAMPLE
    points = np.concatenate([part.points for part in parts])
    normals = np.concatenate([part.normals for part in parts])
    coordinates = np.concatenate([part.coordinates for part in parts])
    nearer = np.repeat([part.nearer for part in parts], [len(part.points) for part in parts])
    surfaces = list(dict.fromkeys(part.surface for part in parts))  # sixty parts, but only a few surfaces
    owner = np.repeat([surfaces.index(part.surface) for part in parts], [len(part.points) for part in parts])
    solid = np.repeat([part.solid for part in parts], [len(part.points) for part in parts])
    facing = np.einsum("fci,fci->f", normals, camera.eye - points)
    shown = ~solid | (facing > 0)
    points, normals, coordinates, owner = points[shown], normals[shown], coordinates[shown], owner[shown]
    nearer = nearer[shown]
    corners, depth = camera.project(points, large)
    index = _index_map(corners, depth.mean(1) - nearer, large)
    pixels = np.flatnonzero(index)
    values = np.concatenate([points, normals, coordinates], -1).astype(np.float32)
    flat, planes = index.ravel(), _planes(corners.astype(np.float32), values)
    picture = np.zeros((3, large * large), dtype=np.float32)
    for start in range(0, len(pixels), CHUNK):
        some = pixels[start : start + CHUNK]
        quad = flat[some] - 1
        place, normal, coordinate = _interpolate(planes, quad, some // large, some % large)
        picture[:, some] = _shade(place, normal, coordinate, owner[quad], surfaces, camera, light)
    return _averaged(picture.reshape(3, large, large)), _averaged((index > 0).astype(np.float32))


def shadow(parts: Sequence[Mesh], camera: Camera, light: Light, size: int, *, below: float = np.inf) -> Array:
    """(size, size) how much of the ground at each pixel lies behind the parts as seen from the key light, 0 or 1.

    `below`: only what is lower than this casts a shadow.
    """
    towards = light.towards
    image = Image.new("L", (size, size))
    pen = ImageDraw.Draw(image)
    found = []
    for part in parts:
        casting = part.points[..., 1].min(1) < below
        if part.solid:  # the lit side of a closed shape alone throws the whole shadow
            casting &= part.normals.mean(1) @ towards > 0
        found.append(part.points[casting])
    points = np.concatenate(found)
    corners, _ = camera.project(points - towards * (points[..., 1:2] / towards[1]), size)
    for quad in corners.reshape(len(corners), 8).tolist():
        pen.polygon(quad, fill=255)
    return np.asarray(image, dtype=np.float32) / 255


def _averaged(large: Array) -> Array:
    """Average each square of OVERSAMPLE × OVERSAMPLE pixels."""
    total = large[..., ::OVERSAMPLE, ::OVERSAMPLE].copy()
    for down in range(OVERSAMPLE):
        for across in range(OVERSAMPLE):
            if down or across:
                total += large[..., down::OVERSAMPLE, across::OVERSAMPLE]
    return total / OVERSAMPLE**2


def _index_map(corners: Array, depth: Array, size: int) -> npt.NDArray[np.int32]:
    """(size, size) the number of the nearest quad plus one, 0 for none: painted from the far to the near."""
    image = Image.new("I", (size, size))
    pen = ImageDraw.Draw(image)
    flat = corners.reshape(len(corners), 8).tolist()
    for quad in np.argsort(-depth, kind="stable").tolist():
        pen.polygon(flat[quad], fill=quad + 1)
    return np.asarray(image, dtype=np.int32)


def _planes(corners: Array, values: Array) -> tuple[Array, ...]:
    """Fit each of the v values of a quad by a plane over the picture, by least squares.

    Returns centres (2, f), means (v, f), slopes down and across (v, f), lowest and highest values (v, f).
    """
    centre, mean = corners.mean(1), values.mean(1)
    offset = corners - centre[:, None]
    moment = np.einsum("fci,fcj->fij", offset, offset) + np.eye(2, dtype=np.float32) * 1e-3
    product = np.einsum("fci,fcv->fiv", offset, values - mean[:, None])
    determinant = moment[:, 0, 0] * moment[:, 1, 1] - moment[:, 0, 1] ** 2
    inverse = np.stack([moment[:, 1, 1], -moment[:, 0, 1], -moment[:, 0, 1], moment[:, 0, 0]], 1).reshape(-1, 2, 2)
    slope = np.einsum("fij,fjv->fiv", inverse / determinant[:, None, None], product)
    found = (centre, mean, slope[:, 0], slope[:, 1], values.min(1), values.max(1))
    return tuple(np.ascontiguousarray(each.T) for each in found)


def _interpolate(
    planes: tuple[Array, ...],
    quad: npt.NDArray[np.int32],
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> tuple[Array, Array, Array]:
    """Read the planes at pixels: places, normals (3, n) and surface coordinates (2, n)."""
    centre, mean, across, down, low, high = planes
    dx = (columns - centre[0, quad]).astype(np.float32)
    dy = (rows - centre[1, quad]).astype(np.float32)
    found = mean[:, quad] + across[:, quad] * dx + down[:, quad] * dy
    found = np.clip(found, low[:, quad], high[:, quad])  # a thin quad's plane is wild beyond its corners
    return found[:3], found[3:6], found[6:]


def _shade(
    place: Array,
    normal: Array,
    coordinate: Array,
    owner: npt.NDArray[np.intp],
    surfaces: Sequence[Surface],
    camera: Camera,
    light: Light,
) -> Array:
    """Linear colour (3, n): diffuse key and surroundings, a soft highlight, a reflected window, darker at the foot."""
    base = np.empty_like(place)
    for number, surface in enumerate(surfaces):
        mine = np.flatnonzero(owner == number)
        if mine.size:
            base[:, mine] = paint(surface, coordinate[0, mine], coordinate[1, mine])
    shine = np.array([surface.shine for surface in surfaces], dtype=np.float32)[owner]
    glow = np.array([surface.glow for surface in surfaces], dtype=np.float32)[owner]
    key, sky, bounce, towards, eye = (
        np.array(each, dtype=np.float32)[:, None]
        for each in (light.key, light.sky, light.bounce, light.towards, camera.eye)
    )
    view = eye - place
    view /= np.sqrt(_dot(view, view))
    normal = normal / np.sqrt(np.maximum(_dot(normal, normal), 1e-12))
    facing = _dot(normal, view)
    normal = np.where(facing < 0, -normal, normal)
    facing = np.abs(facing)
    lit = np.clip((_dot(normal, towards) + 0.25) / 1.25, 0, 1)  # wrapped, as a large soft box gives
    up = normal[1] * 0.5 + 0.5
    foot = 0.55 + 0.45 * np.clip(place[1] / 0.25, 0, 1)
    half = view + towards
    half /= np.sqrt(_dot(half, half))
    gleam = np.clip(_dot(normal, half), 0, 1) ** (8 + 90 * shine) * shine
    edge = (1 - facing) ** 2
    edge = edge * edge * (0.05 + 0.25 * shine)
    mirror = 2 * facing * normal - view
    window = np.clip((mirror[1] - 0.35) * 4, 0, 1) * np.clip((_dot(mirror, towards) - 0.1) * 3, 0, 1) * shine * 0.16
    colour = base * (lit * key + (sky * up + bounce * (1 - up)) * foot + glow)
    return np.asarray(colour + gleam * 0.5 * key + (edge + window) * sky)


def _dot(one: Array, other: Array) -> Array:
    """(3, n) and (3, n) or (3, 1) to (n,)."""
    return np.asarray(one[0] * other[0] + one[1] * other[1] + one[2] * other[2])


def rounded(values: Array) -> npt.NDArray[np.uint8]:
    """(3, h, w) linear light to (h, w, 3) 8-bit sRGB, with a shoulder that keeps highlights from clipping hard."""
    bright = np.clip(values, 0, None).astype(np.float32)
    toned = np.where(bright < 0.75, bright, 0.75 + 0.25 * (1 - np.exp(-(bright - 0.75) / 0.25)))
    levels = np.clip(toned ** np.float32(1 / 2.2) * 255 + 0.5, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(np.moveaxis(levels, 0, -1))
