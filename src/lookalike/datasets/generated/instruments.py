"""Things with small parts on a large face: guitar and alarm clock."""

from __future__ import annotations

import numpy as np

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import TAU, Mesh, box, revolve, slab, tube


def guitar(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A guitar, upright: body with a waist, sound hole or pickups, neck, frets, head and strings."""
    low, waist, high = random.uniform(0.34, 0.42), random.uniform(0.19, 0.27), random.uniform(0.26, 0.33)
    tall, depth = random.uniform(0.82, 0.98), random.uniform(0.07, 0.17)
    outline = [(0, 0), (low * 0.9, 0), (low, tall * 0.25), (low * 0.9, tall * 0.42), (waist, tall * 0.58),
               (high, tall * 0.72), (high, tall * 0.92), (high * 0.55, tall), (0, tall)]  # fmt: skip
    face = look.wooden(repeats=(14, 3)) if random.random() < 0.4 else look.patterned((3, 3), shine=0.9)
    edge = look.plain(look.second if random.random() < 0.4 else look.main, shine=0.7)
    length = random.uniform(0.8, 0.95)
    front, head = depth / 2, tall * 0.78 + length
    parts = slab(outline, depth, face, edge)
    parts += _plate(0.095, length, look.wood, look, tall * 0.78, front + 0.01)
    parts += _plate(0.15, 0.24, look.trim, look, head, front)
    parts += _plate(0.22, 0.045, (40, 30, 26), look, tall * 0.2, front)
    if random.random() < 0.6:
        hole = revolve([(0.1, 0.006), (0, 0.006)], look.plain((24, 18, 16), shine=0), smooth=0, solid=False)
        ring = revolve([(0.125, 0.004), (0.098, 0.006)], look.plain(look.trim, shine=0.3), smooth=0, solid=False)
        rosette = [each.turn(90, "x").move(y=tall * 0.6, z=front) for each in (ring, hole)]
        parts += [rosette[0].over(0.03), rosette[1].over(0.05)]
    else:
        for place in (0.42, 0.6):
            parts += _plate(0.17, 0.06, look.metal, look, tall * place, front)
    return parts + _strings(look, tall, head, front)


def _plate(width: float, height: float, colour: tuple[int, int, int], look: Look, y: float, z: float) -> list[Mesh]:
    """A thin block on the face of the guitar."""
    block = box(width, height, 0.04, look.plain(colour, shine=0.45), rounding=0.01)
    return [side.move(y=y, z=z).over(0.03) for side in block]


def _strings(look: Look, tall: float, head: float, front: float) -> list[Mesh]:
    """Frets, strings and pegs."""
    metal = look.metallic()
    frets = [[(x, y, front + 0.052) for x in (-0.047, 0.047)] for y in np.linspace(tall, head, 9, endpoint=False)]
    parts = [tube(fret, 0.005, metal, segments=4).over(0.07) for fret in frets]
    for x in np.linspace(-0.035, 0.035, 4):
        ends = [(x, tall * 0.22, front + 0.065), (x, head + 0.05, front + 0.06)]
        parts.append(tube(ends, 0.004, metal, segments=4).over(0.07))
    for side in (-1, 1):
        for place in (0.05, 0.12, 0.19):
            ends = [(side * 0.06, head + place, front), (side * 0.12, head + place, front)]
            parts.append(tube(ends, 0.018, metal, segments=6))
    return parts


def clock(random: np.random.Generator, look: Look) -> list[Mesh]:
    """An alarm clock: a round case on feet, a dial with ticks, two hands, and bells on some."""
    radius, depth = random.uniform(0.42, 0.5), random.uniform(0.16, 0.28)
    front, inner = depth / 2, radius * 0.88
    rim = [(0, -front), (radius, -front), (radius, -front), (radius, front), (radius, front)]
    rim += [(inner, front), (inner, front - 0.03)]
    case = revolve(rim, look.plain(look.main, shine=0.7), segments=48, smooth=0, solid=False).turn(90, "x")
    feet = [[(side * radius * 0.5, -radius * 0.8, 0), (side * radius * 0.72, -radius * 1.2, 0)] for side in (-1, 1)]
    parts = [
        case,
        *_dial(random, look, radius, front),
        *(tube(foot, 0.035, look.metallic(), segments=8) for foot in feet),
    ]
    if random.random() < 0.6:
        gold = look.plain(look.second, shine=0.9)
        bell = revolve([(0, 0.1), (0.1, 0.08), (0.16, 0.0)], gold, segments=20, solid=False, smooth=2)
        parts += [bell.turn(-side * 32, "z").move(side * radius * 0.52, radius * 0.98) for side in (-1, 1)]
        loop = [(-0.2, radius * 1.2, 0), (0, radius * 1.45, 0), (0.2, radius * 1.2, 0)]
        parts.append(tube(loop, 0.022, look.metallic(), segments=8, smooth=2))
    return parts


def _dial(random: np.random.Generator, look: Look, radius: float, front: float) -> list[Mesh]:
    """The face, its ticks and two hands."""
    dial = look.plain((246, 244, 238) if random.random() < 0.6 else look.second, shine=0.1)
    ink = look.plain((34, 34, 38) if dial.colours[0][0] > 120 else (240, 238, 230), shine=0.1)
    face = [(radius * 0.9, front - 0.025), (radius * 0.45, front - 0.024), (0, front - 0.023)]
    parts = [revolve(face, dial, segments=48, smooth=0, solid=False).turn(90, "x").over(0.03)]
    for hour in range(0, 12, int((1, 1, 3)[int(random.integers(3))])):
        length, thick = (0.09, 0.02) if hour % 3 == 0 else (0.05, 0.014)
        ends = [_on_dial(hour / 12 * TAU, reach, front + 0.005) for reach in (radius * 0.8 - length, radius * 0.8)]
        parts.append(tube(ends, thick, ink, segments=5).over())
    for length, thick, paint in ((0.42, 0.022, ink), (0.68, 0.015, look.plain(look.trim, shine=0.2))):
        tip = _on_dial(random.uniform(0, TAU), radius * length, front + 0.02)
        parts.append(tube([(0, 0, front + 0.02), tip], thick, paint, segments=6).over(0.1))
    return parts


def _on_dial(angle: float, reach: float, z: float) -> tuple[float, float, float]:
    return float(np.sin(angle)) * reach, float(np.cos(angle)) * reach, z
