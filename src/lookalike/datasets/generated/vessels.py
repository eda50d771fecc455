"""Things that hold something: mug, bottle, teapot, flower pot."""

from __future__ import annotations

import numpy as np

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import Mesh, ball, revolve, sheet, tube
from lookalike.datasets.generated.surface import Surface


def mug(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A mug with a handle; taper, height, handle and the colour inside vary."""
    height, radius = random.uniform(0.72, 1.0), random.uniform(0.36, 0.44)
    foot = radius * random.uniform(0.72, 1.0)
    belly = radius * random.uniform(0.95, 1.08)
    outside = look.patterned((14, 7), shine=0.85, mark=(0.25, 0.68, 0.10, 0.16), trimmed=bool(random.random() < 0.5))
    inside = look.plain((240, 238, 232) if random.random() < 0.5 else look.second, shine=0.7)
    line = [(foot, 0), (foot, 0), (belly, height * 0.45), (radius, height), (radius, height)]
    body = revolve([(0, 0.002), *line], outside, solid=False, segments=48)
    lip = revolve([(radius, height), (radius - 0.02, height + 0.012), (radius - 0.045, height)], inside, solid=False)
    hollow = revolve(
        [(radius - 0.045, height), (belly - 0.05, height * 0.45), (foot - 0.05, 0.08), (0, 0.08)], inside, solid=False
    )
    angle = np.linspace(-1.45, 1.45, 11)
    out, tall = random.uniform(0.2, 0.3), random.uniform(0.24, 0.34) * height
    square = random.uniform(0.7, 1.0)
    path = np.stack(
        [belly - 0.05 + out * np.sign(np.cos(angle)) * np.abs(np.cos(angle)) ** square,
         height * 0.52 + tall * np.sin(angle), np.zeros(11)], 1,
    )  # fmt: skip
    handle = tube(
        path,
        random.uniform(0.04, 0.06),
        look.plain(look.main if random.random() < 0.6 else look.trim, shine=0.85),
        smooth=1,
    )
    return [body, lip, hollow, handle]


def bottle(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A drinking or a wine bottle with a label and a cap."""
    height, radius = random.uniform(1.3, 1.6), random.uniform(0.2, 0.27)
    shoulder, neck = random.uniform(0.55, 0.72) * height, radius * random.uniform(0.34, 0.5)
    glass = look.plain(look.main, shine=1.0)
    line = [(0, 0), (radius, 0), (radius, 0.03), (radius, shoulder), (radius * 0.92, shoulder + 0.1)]
    line += [(neck, shoulder + 0.32), (neck, height - 0.12), (neck, height - 0.12)]
    body = revolve(line, glass, smooth=2)
    low, high = shoulder * random.uniform(0.15, 0.3), shoulder * random.uniform(0.75, 0.92)
    paper = Surface(
        colours=(look.second, look.trim), pattern=look.pattern, repeats=(10, 4), shine=0.15,
        mark=look.mark, mark_box=(0.25, 0.5, 0.13, 0.3), mark_colour=look.main,
    )  # fmt: skip
    label = revolve([(radius + 0.006, low), (radius + 0.006, high)], paper, segments=48, solid=False, smooth=0).over()
    top = height - 0.12
    cap_radius = neck * random.uniform(1.05, 1.35)
    cap_line = [
        (neck, top),
        (cap_radius, top),
        (cap_radius, top),
        (cap_radius, height),
        (cap_radius, height),
        (0, height),
    ]
    cap = revolve(cap_line, look.plain(look.trim, shine=0.5) if random.random() < 0.6 else look.metallic(), smooth=0)
    return [body, label, cap]


def teapot(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A teapot: belly, spout, handle, lid and knob."""
    wide, tall = random.uniform(0.42, 0.52), random.uniform(0.55, 0.8)
    neck = wide * random.uniform(0.5, 0.7)
    line = [(0, 0), (wide * 0.6, 0), (wide * 0.62, 0.02), (wide * 1.05, tall * 0.28), (wide * 1.05, tall * 0.62)]
    body = revolve(
        [*line, (neck, tall), (neck, tall)],
        look.patterned((12, 6), shine=0.9, mark=(0.25, 0.62, 0.08, 0.13)),
        segments=48,
        smooth=2,
    )
    rise = random.uniform(0.08, 0.16)
    lid_colour = look.plain(look.main if random.random() < 0.5 else look.trim, shine=0.9)
    lid = revolve(
        [(neck + 0.02, tall), (neck + 0.02, tall + 0.015), (neck * 0.7, tall + rise), (0, tall + rise * 1.1)],
        lid_colour,
        smooth=2,
    )
    knob = ball(random.uniform(0.045, 0.07), look.plain(look.trim, shine=0.9)).move(y=tall + rise * 1.1 + 0.03)
    reach = random.uniform(0.3, 0.42)
    tip = (wide + reach, tall * random.uniform(0.88, 1.08), 0)
    bend = [(wide + reach * 0.55, tall * 0.36, 0), (wide + reach * 0.62, tall * 0.72, 0)]
    spout_path = [(wide * 0.8, tall * 0.25, 0), *bend, tip]
    spout = tube(spout_path, [0.13, 0.1, 0.065, 0.05], look.plain(look.main, shine=0.9), smooth=2, segments=14)
    angle = np.linspace(-1.5, 1.5, 11)
    if random.random() < 0.3:  # a hoop over the lid instead of an ear at the side
        angle = np.linspace(0.1, np.pi - 0.1, 11)
        path = np.stack([wide * 0.85 * np.cos(angle), tall * 0.8 + (rise + 0.42) * np.sin(angle), np.zeros(11)], 1)
    else:
        path = np.stack(
            [-wide * 0.85 - 0.32 * np.cos(angle), tall * 0.52 + tall * 0.32 * np.sin(angle), np.zeros(11)], 1
        )
    handle = tube(path, 0.045, look.plain(look.trim if random.random() < 0.4 else look.main, shine=0.8), smooth=1)
    return [body, lid, knob, spout, handle]


def flower_pot(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A house plant in a pot: broad, narrow or drooping leaves."""
    height, radius = random.uniform(0.38, 0.55), random.uniform(0.26, 0.36)
    foot = radius * random.uniform(0.6, 0.9)
    pot = revolve(
        [(0, 0), (foot, 0), (foot, 0), (radius, height * 0.82), (radius, height * 0.82), (radius + 0.03, height * 0.82),
         (radius + 0.03, height), (radius + 0.03, height), (radius - 0.03, height)],
        look.patterned((12, 5), shine=0.5, mark=(0.25, 0.5, 0.09, 0.22)), smooth=0, segments=40, solid=False,
    )  # fmt: skip
    soil = revolve([(radius, height - 0.05), (0, height - 0.03)], look.plain((62, 44, 32), shine=0.05), solid=False)
    green = [(58, 120, 62), (92, 148, 72), (44, 92, 66), (122, 160, 90), (70, 110, 50)][int(random.integers(5))]
    lighter = tuple(min(255, int(each * 1.35) + 12) for each in green)
    leaf_surface = Surface(
        colours=(green, (lighter[0], lighter[1], lighter[2])),
        pattern=("plain", "stripes", "fade", "speckle")[int(random.integers(4))],
        repeats=(3, 6), shine=0.4,
    )  # fmt: skip
    length, width, droop = random.uniform(0.55, 0.95), random.uniform(0.05, 0.2), random.uniform(0.1, 0.9)
    leaves = []
    for place in range(int(random.integers(12, 22))):
        spread = random.uniform(0.25, 1.0)
        leaf = _leaf(length * random.uniform(0.7, 1.05), width, spread, droop, leaf_surface)
        leaves.append(leaf.turn(place * 137.5 + random.uniform(-15, 15), "y").move(y=height - 0.04))
    return [pot, soil, *leaves]


def _leaf(length: float, width: float, spread: float, droop: float, surface: Surface) -> Mesh:
    """A blade that rises and bends outwards along x."""
    along = np.linspace(0, 1, 9)[:, None]
    across = np.linspace(-1, 1, 5)[None, :]
    half = width * np.sin(np.pi * np.clip(along * 0.92 + 0.06, 0, 1)) ** 0.8
    out = length * spread * along + 0 * across
    up = length * (1.1 - 0.6 * spread) * along - droop * length * along**2 * 0.7 + np.abs(across) * half * 0.35
    return sheet(np.stack([out, up, across * half], -1), surface)
