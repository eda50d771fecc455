"""Things people wear and carry: backpack, sneaker, headphones, umbrella."""

from __future__ import annotations

import numpy as np

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import TAU, Mesh, ball, box, revolve, sheet, tube
from lookalike.datasets.generated.surface import Surface


def backpack(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A backpack: rounded body, front pocket with a flap or a zip, straps, a loop to carry it by."""
    width, height, depth = random.uniform(0.62, 0.78), random.uniform(0.86, 1.05), random.uniform(0.3, 0.4)
    body = box(width, height, depth, look.patterned((5, 7), shine=0.1), rounding=0.16, steps=8)
    low = random.uniform(0.05, 0.12)
    pocket_height = height * random.uniform(0.34, 0.5)
    second = Surface(
        colours=(look.second,), mark=look.mark, mark_box=(0.5, 0.5, 0.16, 0.24), mark_colour=look.trim, shine=0.12
    )
    pocket = box(width * random.uniform(0.68, 0.84), pocket_height, 0.14, second, rounding=0.06)
    parts = [*body, *(each.move(y=low, z=depth / 2 + 0.03).over(0.1) for each in pocket)]
    zip_y = low + pocket_height * 0.86
    front = depth / 2 + 0.105
    parts.append(
        tube([(-width * 0.3, zip_y, front), (width * 0.3, zip_y, front)], 0.012, look.metallic(), segments=6).over(0.15)
    )
    angle = np.linspace(0.15, np.pi - 0.15, 11)
    arc = np.stack(
        [np.cos(angle) * width * 0.42, height * 0.62 + np.sin(angle) * height * 0.3, np.full(11, depth / 2 + 0.005)], 1
    )
    parts.append(tube(arc, 0.014, look.plain(look.trim), segments=6, smooth=1).over(0.05))
    if random.random() < 0.5:  # a flap over the top
        flap = box(width * 0.9, height * 0.3, 0.06, look.plain(look.second, shine=0.12), rounding=0.03)
        parts += [each.move(y=height * 0.68, z=depth / 2).over(0.1) for each in flap]
        for side in (-1, 1):
            parts.append(
                tube(
                    [
                        (side * width * 0.22, height * 0.78, depth / 2 + 0.045),
                        (side * width * 0.22, height * 0.5, depth / 2 + 0.06),
                    ],
                    0.026,
                    look.plain(look.trim),
                    segments=6,
                    flat=0.5,
                ).over(0.2)
            )
    loop = [
        (-0.1, height - 0.02, -0.02),
        (-0.09, height + 0.11, -0.02),
        (0.09, height + 0.11, -0.02),
        (0.1, height - 0.02, -0.02),
    ]
    parts.append(tube(loop, 0.026, look.plain(look.trim, shine=0.1), segments=8, smooth=2))
    for side in (-1, 1):
        x = side * width * 0.28
        path = [
            (x, height * 0.93, -depth / 2 + 0.03),
            (x * 1.3, height * 0.75, -depth / 2 - 0.2),
            (x * 1.5, height * 0.3, -depth / 2 - 0.16),
            (x * 1.4, height * 0.08, -depth / 2 + 0.03),
        ]
        parts.append(tube(path, 0.05, look.plain(look.second, shine=0.1), segments=8, smooth=2, flat=0.5))
        side_pocket = box(0.08, height * 0.3, depth * 0.6, look.plain(look.trim, shine=0.1), rounding=0.03)
        parts += [each.move(x=side * (width / 2 + 0.01), y=0.06) for each in side_pocket]
    return parts


def sneaker(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A sneaker: sole, upper lofted along the foot, toe cap, tongue, laces, a stripe or a badge at the side."""
    length, width = 1.25, random.uniform(0.4, 0.46)
    sole_height, collar = random.uniform(0.07, 0.15), random.uniform(0.42, 0.66)
    along = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, 29))
    half = (
        width
        / 2
        * np.interp(
            along,
            [0, 0.015, 0.06, 0.2, 0.45, 0.72, 0.9, 0.97, 0.99, 1],
            [0.0, 0.4, 0.68, 0.82, 0.78, 1.0, 0.85, 0.6, 0.4, 0.0],
        )
    )
    top = np.interp(
        along,
        [0, 0.05, 0.3, 0.42, 0.7, 0.88, 0.97, 1],
        [collar * 0.96, collar, collar * 0.94, collar * 0.9, 0.3, 0.2, 0.14, 0.02],
    )
    kernel = np.ones(3) / 3
    top = np.concatenate([top[:1], np.convolve(top, kernel, "valid"), top[-1:]])
    angle = np.linspace(0, np.pi, 17)
    power = np.interp(along, [0, 0.4, 0.7, 1], [0.45, 0.5, 0.8, 0.9])[:, None]
    across = np.sign(np.cos(angle)) * np.abs(np.cos(angle)) ** 0.6
    upper = np.stack(
        [np.broadcast_to((along[:, None] - 0.5) * length, (29, 17)),
         sole_height + top[:, None] * np.sin(angle) ** power,
         half[:, None] * across * (1 - 0.28 * np.sin(angle) ** 2 * (along[:, None] < 0.45))], -1,
    )  # fmt: skip
    cloth = look.patterned((7, 7), shine=0.15, mark=(0.17, 0.42, 0.07, 0.12))
    parts = [sheet(upper.transpose(1, 0, 2), cloth)]
    ring = np.concatenate([np.stack([along, half], 1), np.stack([along, -half], 1)[::-1]])
    ring = ring[np.r_[0, np.flatnonzero(np.linalg.norm(np.diff(ring, axis=0), axis=1) > 1e-6) + 1]]
    sole_rings = [
        (0.98, 0.0),
        (1.06, 0.0),
        (1.08, sole_height * 0.5),
        (1.06, sole_height + 0.02),
        (1.0, sole_height + 0.03),
    ]
    sole = np.stack(
        [
            np.stack([(ring[:, 0] - 0.5) * length * (0.97 + 0.03 * grow), np.full(len(ring), y), ring[:, 1] * grow], 1)
            for grow, y in sole_rings
        ]
    )
    parts.append(
        sheet(sole, look.plain((242, 240, 234) if random.random() < 0.6 else look.second, shine=0.25), around=True)
    )
    stripe = np.stack(
        [(ring[:, 0] - 0.5) * length * 1.001, np.full(len(ring), sole_height * 0.55), ring[:, 1] * 1.09], 1
    )
    parts.append(tube(np.concatenate([stripe, stripe[:1]]), 0.012, look.plain(look.trim), segments=5).over(0.05))
    if random.random() < 0.6:
        cap = upper[19:] * [1, 1, 1.02] + [0.012, 0.012, 0]
        parts.append(
            sheet(
                cap.transpose(1, 0, 2), look.plain(look.trim if random.random() < 0.5 else (240, 238, 232), shine=0.3)
            ).over(0.1)
        )
    heel = upper[:8] * [1, 1.01, 1.03] - [0.012, 0, 0]
    parts.append(sheet(heel.transpose(1, 0, 2), look.plain(look.second, shine=0.2)).over(0.1))
    opening = ball(1.0, look.plain((46, 44, 46), shine=0.05)).scale(0.22, 0.05, width * 0.24)
    parts.append(opening.move(-0.32, sole_height + collar * 0.97).over(0.15))
    lace = look.plain((246, 244, 240) if random.random() < 0.6 else look.trim, shine=0.1)
    for place in np.linspace(0.45, 0.68, int(random.integers(4, 7))):
        x, y = (place - 0.5) * length, sole_height + np.interp(place, along, top) + 0.012
        reach = 0.11
        parts.append(
            tube(
                [(x, y - 0.03, -reach), (x + 0.02, y + 0.005, 0), (x, y - 0.03, reach)],
                0.017,
                lace,
                segments=6,
                smooth=1,
            ).over(0.15)
        )
    slant = random.uniform(-0.1, 0.25)
    for side in (-1, 1):
        for number in range(int(random.integers(0, 4))):
            x = -0.08 + number * 0.09
            z = side * (width / 2 * 0.84)
            parts.append(
                tube(
                    [(x + slant, sole_height + 0.28, z * 0.86), (x, sole_height + 0.03, z * 1.02)],
                    0.02,
                    look.plain(look.trim, shine=0.2),
                    segments=5,
                    flat=0.5,
                ).over(0.12)
            )
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
