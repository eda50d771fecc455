"""One picture of one object: a place, a light, a camera, perhaps something in the way, and what a lens adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from lookalike.datasets.generated.mesh import Mesh
from lookalike.datasets.generated.place import any_place, view
from lookalike.datasets.generated.render import Camera, Light, draw, rounded, shadow
from lookalike.datasets.generated.surface import linear

Array: TypeAlias = npt.NDArray[np.floating[Any]]

# Daylight, shade, tungsten, evening, a cold tube, a warm lamp: the colour of the key light, of the sky and how hard.
LIGHTS: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...] = (
    ((0.92, 0.90, 0.86), (0.34, 0.36, 0.40)),
    ((0.62, 0.66, 0.72), (0.46, 0.50, 0.56)),
    ((0.98, 0.76, 0.50), (0.30, 0.25, 0.21)),
    ((0.94, 0.62, 0.40), (0.24, 0.26, 0.36)),
    ((0.70, 0.84, 0.86), (0.34, 0.42, 0.42)),
    ((1.02, 0.90, 0.72), (0.20, 0.18, 0.17)),
)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """How much one view may differ from another; ranges, in the units of each."""

    azimuth: tuple[float, float] = (-80, 80)
    elevation: tuple[float, float] = (4, 50)
    fill: tuple[float, float] = (0.4, 0.96)
    """size of the object as a share of the picture"""
    roll: float = 7.0
    drift: float = 0.08
    """how far from the middle, as a share of the picture"""
    studio: float = 0.25
    occluded: float = 0.45


def photograph(parts: Sequence[Mesh], random: np.random.Generator, conditions: Conditions, size: int) -> Image.Image:
    """Take one picture, (size, size) RGB, of parts that stand on the ground."""
    camera = _camera(parts, random, conditions)
    key, sky = LIGHTS[int(random.integers(len(LIGHTS)))]
    exposure = float(random.uniform(0.75, 1.15))
    bearing = np.deg2rad(camera.azimuth + random.uniform(25, 75) * random.choice([-1, 1]))
    light = Light(
        direction=(float(np.sin(bearing)), float(random.uniform(0.7, 1.6)), float(np.cos(bearing))),
        key=(key[0] * exposure, key[1] * exposure, key[2] * exposure),
        sky=(sky[0] * exposure, sky[1] * exposure, sky[2] * exposure),
        bounce=(sky[0] * 0.5 * exposure, sky[1] * 0.46 * exposure, sky[2] * 0.42 * exposure),
    )
    place = any_place(random, studio=conditions.studio)
    background, floor = view(place, camera, size)
    towards = light.towards[1]
    background = background * (_colour(light.key) * np.float32(towards) + _colour(light.sky))
    blur = float(random.uniform(0.0, 1.6)) if not place.soft else 0.0
    background = _blurred(background, blur)
    background = background * (1 - _shade_of(parts, camera, light, size) * floor)
    picture = _over(background, *draw(parts, camera, light, size))
    if random.random() < conditions.occluded:
        picture = _in_the_way(picture, random, _colour(light.key) * np.float32(0.7) + _colour(light.sky))
    return _developed(picture, random)


def _over(background: Array, colour: Array, covered: Array) -> Array:
    """Lay a picture, its colour already weighted by its cover, over another."""
    return background * (1 - covered) + colour


def _camera(parts: Sequence[Mesh], random: np.random.Generator, conditions: Conditions) -> Camera:
    """Stand so that the object fills the asked-for share of the picture."""
    points = np.concatenate([part.points.reshape(-1, 3) for part in parts])
    low, high = points.min(0), points.max(0)
    middle = (low + high) / 2
    zoom = float(random.uniform(1.3, 2.6))  # from a near wide lens to a far long one
    reach = float(np.linalg.norm(high - low)) / 2
    trial = Camera(
        azimuth=float(random.uniform(*conditions.azimuth)),
        elevation=float(random.uniform(*conditions.elevation)),
        distance=reach * 2.2 * zoom,
        target=(float(middle[0]), float(middle[1]), float(middle[2])),
        zoom=zoom,
        roll=float(random.normal(0, conditions.roll / 2)),
    )
    seen, _ = trial.project(points, 1)
    span = float((seen.max(0) - seen.min(0)).max())
    fill = float(random.uniform(*conditions.fill))
    shift = random.uniform(-conditions.drift, conditions.drift, 2) * reach
    right, down = trial.axes[0], trial.axes[1]
    target = middle + right * shift[0] + down * shift[1]
    return Camera(
        azimuth=trial.azimuth,
        elevation=trial.elevation,
        distance=max(trial.distance * span / fill, reach * 1.4),
        target=(float(target[0]), float(target[1]), float(target[2])),
        zoom=zoom,
        roll=trial.roll,
    )


def _shade_of(parts: Sequence[Mesh], camera: Camera, light: Light, size: int) -> Array:
    """(size, size) 0..1: the cast shadow, soft, and the darkness where the object meets the ground."""
    half = size // 2
    cast = Image.fromarray((shadow(parts, camera, light, half) * 255).astype(np.uint8))
    overhead = Light(direction=(0, 1, 0), key=light.key, sky=light.sky, bounce=light.bounce)
    contact = Image.fromarray((shadow(parts, camera, overhead, half, below=0.25) * 255).astype(np.uint8))
    total = np.zeros((size, size), dtype=np.float32)
    for mask, radius, weight in ((cast, 3.5, 0.34), (cast, 9.0, 0.2), (contact, 2.5, 0.3)):
        soft = mask.filter(ImageFilter.GaussianBlur(radius * half / 128)).resize(
            (size, size), Image.Resampling.BILINEAR
        )
        total += np.asarray(soft, dtype=np.float32) / 255 * weight
    return np.asarray(np.minimum(total, 0.8))


def _in_the_way(picture: Array, random: np.random.Generator, light: Array) -> Array:
    """Put something between the camera and the object: fingers, a leaf, or the edge of a thing too near to be sharp."""
    size = picture.shape[-1]
    mask, tone = Image.new("L", (size * 2, size * 2)), Image.new("L", (size * 2, size * 2), 128)
    side = 90.0 * int(random.integers(4)) + float(random.uniform(-22, 22))
    kind = ("hand", "leaf", "edge")[int(random.integers(3))]
    blur = {"hand": 0.7, "leaf": 1.6, "edge": 3.0}[kind]
    OCCLUDERS[kind](ImageDraw.Draw(mask), ImageDraw.Draw(tone), size, random)
    window = (size // 2, size // 2, size // 2 + size, size // 2 + size)
    cover, shade = (
        np.asarray(
            each.rotate(side, Image.Resampling.BILINEAR)
            .crop(window)
            .filter(ImageFilter.GaussianBlur(blur * size / 256)),
            dtype=np.float32,
        )
        for each in (mask, tone)
    )
    colours = {"hand": SKIN, "leaf": LEAVES, "edge": THINGS}[kind]
    colour = linear(colours[int(random.integers(len(colours)))])[:, None, None] * light * (shade / 128)
    return picture * (1 - cover / 255) + colour * (cover / 255)


SKIN = ((236, 188, 160), (198, 142, 108), (140, 92, 66), (92, 60, 46))
LEAVES = ((70, 112, 52), (104, 140, 70), (52, 84, 50))
THINGS = ((180, 60, 50), (60, 84, 120), (210, 190, 150), (48, 48, 52), (220, 220, 216))


def _hand(mask: ImageDraw.ImageDraw, tone: ImageDraw.ImageDraw, size: int, random: np.random.Generator) -> None:
    """Fingers that reach in from the right; the picture is the middle half of the drawing."""
    width = size * float(random.uniform(0.075, 0.095))
    top, reach = size * float(random.uniform(0.75, 1.0)), size * float(random.uniform(1.3, 1.42))
    far = size * 2.5
    for finger, shorter in enumerate((0.05, 0.0, 0.02, 0.1)):
        y, x = top + finger * width * 1.03, reach + size * shorter
        mask.rounded_rectangle((x, y, far, y + width), radius=width / 2, fill=255)
        for step in range(16):  # lighter along the ridge of each finger, darker where two meet
            inset = width * 0.48 * step / 16
            level = int(78 + 56 * np.sin(np.pi / 2 * step / 15))
            tone.rounded_rectangle((x + inset, y + inset, far, y + width - inset), radius=width / 2 - inset, fill=level)
        for knuckle in (0.16, 0.34):
            at = x + size * knuckle
            tone.arc(
                (at, y + width * 0.2, at + width * 0.3, y + width * 0.8), 90, 270, fill=104, width=max(1, size // 160)
            )
        nail = (x + width * 0.12, y + width * 0.27, x + width * 0.62, y + width * 0.73)
        tone.rounded_rectangle(nail, radius=width * 0.2, fill=150)


def _twig(mask: ImageDraw.ImageDraw, tone: ImageDraw.ImageDraw, size: int, random: np.random.Generator) -> None:
    """Leaves on a twig that reaches in from the right."""
    start, end = np.array([1.6, random.uniform(0.8, 1.2)]) * size, np.array([1.2, random.uniform(0.75, 1.25)]) * size
    for pen, fill in ((mask, 255), (tone, 90)):
        pen.line([*start.tolist(), *end.tolist()], fill=fill, width=max(2, size // 80))
    for place in np.linspace(0.15, 1, int(random.integers(5, 8))):
        foot = start + (end - start) * place
        length, angle = size * random.uniform(0.13, 0.22), np.pi + random.uniform(-1.0, 1.0)
        along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        steps = np.linspace(0, 1, 12)
        half = np.sin(np.pi * steps) ** 0.8 * length * 0.2
        spine = foot + along * (steps * length)[:, None]
        edge = np.concatenate([spine + across * half[:, None], (spine - across * half[:, None])[::-1]])
        mask.polygon(edge.ravel().tolist(), fill=255)
        tone.polygon(edge.ravel().tolist(), fill=int(random.integers(80, 170)))
        tone.line(spine.ravel().tolist(), fill=190, width=max(1, size // 160))


def _edge(mask: ImageDraw.ImageDraw, tone: ImageDraw.ImageDraw, size: int, random: np.random.Generator) -> None:
    """The rounded corner of something near."""
    left, top = size * float(random.uniform(1.2, 1.32)), size * float(random.uniform(0.7, 1.0))
    radius = size * float(random.uniform(0.03, 0.2))
    mask.rounded_rectangle((left, top, size * 3, size * 3), radius=radius, fill=255)
    for step in range(32):
        tone.rectangle((left + step * size * 0.02, 0, size * 2, size * 2), fill=150 - step * 2)


OCCLUDERS = {"hand": _hand, "leaf": _twig, "edge": _edge}


def _developed(picture: Array, random: np.random.Generator) -> Image.Image:
    """Darken the corners, blur a little, and add the grain of a sensor."""
    size = picture.shape[-1]
    place = np.linspace(-1, 1, size, dtype=np.float32)
    corner = 1 - float(random.uniform(0.04, 0.22)) * (place[:, None] ** 2 + place[None, :] ** 2) / 2
    picture = _blurred(picture * corner.astype(np.float32), float(random.uniform(0.0, 0.55)))
    grain = random.standard_normal((3, size, size), dtype=np.float32)
    noise = float(random.uniform(0.002, 0.014))
    return Image.fromarray(rounded(picture + grain * np.float32(noise) * np.sqrt(np.clip(picture, 0.01, 1))))


def _blurred(picture: Array, radius: float) -> Array:
    """Blur linear light by a Gaussian of that many pixels at 256; three passes of Pillow's on 8 bits of the root."""
    if radius < 0.05:
        return picture
    root = np.sqrt(np.clip(picture, 0, 1.5) / 1.5)
    levels = np.moveaxis((root * 255 + 0.5).astype(np.uint8), 0, -1)
    image = Image.fromarray(np.ascontiguousarray(levels))
    soft = np.asarray(image.filter(ImageFilter.GaussianBlur(radius * picture.shape[-1] / 256)))
    return (np.moveaxis(soft, -1, 0).astype(np.float32) / 255) ** 2 * np.float32(1.5)


def _colour(values: tuple[float, float, float]) -> Array:
    """(3, 1, 1) float32, to multiply a picture."""
    return np.array(values, dtype=np.float32)[:, None, None]
