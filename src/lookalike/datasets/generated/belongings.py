"""Things people wear and carry: backpack, headphones, umbrella."""

from __future__ import annotations

import numpy as np

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import TAU, Mesh, ball, box, revolve, sheet, tube
from lookalike.datasets.generated.surface import Surface


def backpack(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A backpack: rounded body, front pocket with a zip, a flap on some, straps, a loop to carry it by."""
    width, height, depth = random.uniform(0.62, 0.78), random.uniform(0.86, 1.05), random.uniform(0.3, 0.4)
    low, tall = random.uniform(0.05, 0.12), height * random.uniform(0.34, 0.5)
    parts = box(width, height, depth, look.patterned((5, 7), shine=0.1), rounding=0.16, steps=8)
    second = Surface(
        colours=(look.second,), mark=look.mark, mark_box=(0.5, 0.5, 0.16, 0.24), mark_colour=look.trim, shine=0.12
    )
    pocket = box(width * random.uniform(0.68, 0.84), tall, 0.14, second, rounding=0.06)
    parts += [side.move(y=low, z=depth / 2 + 0.03).over(0.1) for side in pocket]
    seam_y, seam_z = low + tall * 0.86, depth / 2 + 0.105
    seam = [(-width * 0.3, seam_y, seam_z), (width * 0.3, seam_y, seam_z)]
    parts.append(tube(seam, 0.012, look.metallic(), segments=6).over(0.15))
    angle = np.linspace(0.15, np.pi - 0.15, 11)
    x, y = np.cos(angle) * width * 0.42, height * 0.62 + np.sin(angle) * height * 0.3
    arc = np.stack([x, y, np.full(11, depth / 2 + 0.005)], 1)
    parts.append(tube(arc, 0.014, look.plain(look.trim), segments=6, smooth=1).over(0.05))
    if random.random() < 0.5:
        parts += _flap(look, width, height, depth)
    return parts + _straps(look, width, height, depth)


def _flap(look: Look, width: float, height: float, depth: float) -> list[Mesh]:
    """A flap over the top, held by two buckled straps."""
    flap = box(width * 0.9, height * 0.3, 0.06, look.plain(look.second, shine=0.12), rounding=0.03)
    parts = [side.move(y=height * 0.68, z=depth / 2).over(0.1) for side in flap]
    for x in (-width * 0.22, width * 0.22):
        ends = [(x, height * 0.78, depth / 2 + 0.045), (x, height * 0.5, depth / 2 + 0.06)]
        parts.append(tube(ends, 0.026, look.plain(look.trim), segments=6, flat=0.5).over(0.2))
    return parts


def _straps(look: Look, width: float, height: float, depth: float) -> list[Mesh]:
    """The loop on top, the two straps behind and the pockets at the sides."""
    trim, back = look.plain(look.trim, shine=0.1), -depth / 2
    loop = [(-0.1, height - 0.02, -0.02), (-0.09, height + 0.11, -0.02)]
    loop += [(-x, y, z) for x, y, z in reversed(loop)]
    parts = [tube(loop, 0.026, trim, segments=8, smooth=2)]
    for side in (-1, 1):
        x = side * width * 0.28
        path = [(x, height * 0.93, back + 0.03), (x * 1.3, height * 0.75, back - 0.2)]
        path += [(x * 1.5, height * 0.3, back - 0.16), (x * 1.4, height * 0.08, back + 0.03)]
        parts.append(tube(path, 0.05, look.plain(look.second, shine=0.1), segments=8, smooth=2, flat=0.5))
        pocket = box(0.08, height * 0.3, depth * 0.6, trim, rounding=0.03)
        parts += [each.move(x=side * (width / 2 + 0.01), y=0.06) for each in pocket]
    return parts


def headphones(random: np.random.Generator, look: Look) -> list[Mesh]:
    """Headphones: a padded band and two cups."""
    wide, tall = random.uniform(0.42, 0.5), random.uniform(0.5, 0.62)
    cup, thick = random.uniform(0.19, 0.27), random.uniform(0.1, 0.16)
    angle = np.linspace(-0.25, np.pi + 0.25, 19)
    path = np.stack([wide * np.cos(angle), 0.42 + tall * np.sin(angle), np.zeros(19)], 1)
    parts = [tube(path, random.uniform(0.03, 0.05), look.plain(look.main, shine=0.6), segments=10, smooth=1)]
    pad = np.stack([wide * np.cos(angle[6:13]), 0.42 + tall * np.sin(angle[6:13]) - 0.01, np.zeros(7)], 1)
    parts.append(tube(pad, random.uniform(0.055, 0.085), look.plain(look.second, shine=0.15), segments=12, smooth=1))
    oval = random.uniform(1.0, 1.35)
    shell = Surface(
        colours=(look.main, look.second, look.trim) if look.pattern in ("rings", "fade") else (look.main,),
        pattern=look.pattern if look.pattern in ("rings", "fade") else "plain", repeats=(6, 3), shine=0.7,
    )  # fmt: skip
    for side in (-1, 1):
        outer = revolve([(0, thick), (cup * 0.75, thick), (cup, thick * 0.5), (cup, 0)], shell, smooth=2, segments=32)
        badge = revolve(
            [(cup * 0.42, thick + 0.012), (0, thick + 0.014)],
            look.plain(look.trim, shine=0.8),
            smooth=0,
            segments=24,
            solid=False,
        ).over(0.04)
        cushion = revolve(
            [(cup, 0), (cup * 1.04, -0.05), (cup * 0.9, -0.1), (cup * 0.5, -0.08), (0, -0.03)],
            look.plain((44, 44, 48) if look.main != (38, 40, 44) else look.second, shine=0.15),
            smooth=2,
            segments=32,
            solid=False,
        )
        parts += [
            part.scale(1, 1, oval).turn(-side * 90, "z").move(side * (wide - 0.02), 0.26)
            for part in (outer, badge, cushion)
        ]
    if random.random() < 0.4:
        bend = [(-wide, 0.1, 0.1), (-wide * 0.9, -0.02, 0.3), (-0.1, -0.02, 0.4)]
        parts.append(tube(bend, 0.02, look.plain((40, 40, 44)), segments=8, smooth=2))
        parts.append(ball(0.045, look.plain((40, 40, 44), shine=0.1)).move(-0.1, -0.02, 0.4))
    return parts


def umbrella(random: np.random.Generator, look: Look) -> list[Mesh]:
    """An open umbrella: a scalloped canopy of gores, ribs, a shaft and a handle."""
    gores = int(random.choice([6, 8, 8, 10]))
    radius, rise = random.uniform(0.72, 0.85), random.uniform(0.3, 0.48)
    around, down = gores * 6, 9
    turn = np.arange(around) / around * TAU
    out = np.linspace(0.015, 1, down)[:, None]
    scallop = 1 - 0.06 * out**2 * np.abs(np.sin(turn * gores / 2))[None, :]
    y = 1.1 + rise * (1 - out**1.9) + 0.035 * out**2 * np.abs(np.sin(turn * gores / 2))[None, :]
    canopy = np.stack(
        [radius * out * scallop * np.cos(turn), y * np.ones_like(scallop), radius * out * scallop * np.sin(turn)], -1
    )
    cloth = Surface(
        colours=(look.main, look.second, look.trim) if random.random() < 0.5 else (look.main, look.second),
        pattern=look.pattern, repeats=(gores / 2 if look.pattern == "stripes" else gores * 2, 6), shine=0.2,
        mark=look.mark, mark_box=(0.125, 0.62, 0.035, 0.17), mark_colour=look.trim,
    )  # fmt: skip
    parts = [sheet(canopy, cloth, around=True)]
    grip = look.wooden() if random.random() < 0.5 else look.plain(look.trim, shine=0.4)
    parts.append(tube([(0, 0.25, 0), (0, 0.8, 0), (0, 1.1 + rise + 0.08, 0)], 0.018, look.metallic(), segments=8))
    angle = np.linspace(0, np.pi * random.uniform(0.8, 1.05), 9)
    hook = np.stack([0.1 - 0.1 * np.cos(angle), 0.12 - 0.1 * np.sin(angle), np.zeros(9)], 1)
    handle = np.concatenate([[(0, 0.36, 0), (0, 0.24, 0)], hook])
    parts.append(tube(handle, 0.034, grip, segments=10, smooth=1))
    for rib in range(gores):
        bearing = rib / gores * TAU
        end = (np.cos(bearing) * radius * 0.55, 1.1 + rise * 0.66, np.sin(bearing) * radius * 0.55)
        parts.append(tube([(0, 0.85, 0), end], 0.008, look.metallic(), segments=4))
    return parts
