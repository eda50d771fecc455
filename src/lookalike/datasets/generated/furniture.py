"""Things that stand in a room: chair, lamp, clock, guitar."""

from __future__ import annotations

import numpy as np

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import TAU, Mesh, box, revolve, slab, tube
from lookalike.datasets.generated.surface import Surface


def chair(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A chair: legs of wood or metal, a seat, a back of slats or of one panel."""
    seat, width, depth = random.uniform(0.5, 0.62), random.uniform(0.52, 0.62), random.uniform(0.48, 0.58)
    tall, thick, splay = random.uniform(0.5, 0.68), random.uniform(0.05, 0.1), random.uniform(0.0, 0.09)
    frame = look.wooden() if random.random() < 0.6 else look.metallic()
    radius = random.uniform(0.022, 0.036)
    cloth = look.patterned((5, 5), shine=0.12)
    x, z = width / 2 - 0.05, depth / 2 - 0.05
    parts = [each.move(y=seat) for each in box(width, thick, depth, cloth, rounding=0.04)]
    for side_x in (-1, 1):
        for side_z in (-1, 1):
            foot = (side_x * (x + splay), 0, side_z * (z + splay))
            parts.append(tube([foot, (side_x * x, seat + 0.02, side_z * z)], radius, frame, segments=8))
    lean = random.uniform(0.04, 0.14)
    posts = [[(side_x * x, seat, -z), (side_x * x, seat + tall, -z - lean)] for side_x in (-1, 1)]
    parts += [tube(post, radius, frame, segments=8) for post in posts]
    if random.random() < 0.5:
        panel = box(width * 0.94, tall * random.uniform(0.45, 0.8), 0.05, cloth, rounding=0.03)
        top = panel[0].points[..., 1].max()
        tilt = float(np.rad2deg(np.arctan(lean / tall)))
        parts += [each.turn(-tilt, "x").move(y=seat + tall - top, z=-z - lean * 0.6) for each in panel]
    else:
        slats = int(random.integers(3, 6))
        for place in np.linspace(0.35, 1, slats):
            y, back = seat + tall * place, -z - lean * place
            parts.append(
                tube(
                    [(-x, y, back), (0, y, back - 0.05), (x, y, back)],
                    0.035,
                    look.plain(look.main, shine=0.3),
                    smooth=1,
                    flat=0.5,
                )
            )
    return parts


def lamp(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A table lamp: base, stem and a lit shade."""
    height, bottom = random.uniform(0.62, 0.85), random.uniform(0.34, 0.46)
    top, tall = bottom * random.uniform(0.4, 0.85), random.uniform(0.36, 0.5)
    base = look.plain(look.second, shine=0.9) if random.random() < 0.5 else look.metallic()
    foot = random.uniform(0.2, 0.28)
    if random.random() < 0.5:  # a turned vase
        belly = random.uniform(0.14, 0.24)
        line = [
            (0, 0),
            (foot * 0.8, 0),
            (foot * 0.8, 0.03),
            (belly, height * 0.35),
            (belly * 0.7, height * 0.6),
            (0.04, height * 0.75),
            (0.025, height),
        ]
        stand = [revolve(line, look.patterned((10, 5), shine=0.9), smooth=2)]
    else:
        plate = revolve([(0, 0), (foot, 0), (foot, 0.035), (0.05, 0.05), (0, 0.05)], base, smooth=1)
        stand = [plate, tube([(0, 0.03, 0), (0, height * 0.5, 0), (0, height, 0)], 0.026, base, segments=10)]
    cloth = Surface(
        colours=(look.main, look.second, look.trim), pattern=look.pattern, repeats=(16, 5), shine=0.05, glow=0.45
    )
    rim = height - 0.08
    shade = revolve([(top, rim + tall), (bottom, rim)], cloth, segments=48, solid=False, smooth=0)
    return [*stand, shade]


def clock(random: np.random.Generator, look: Look) -> list[Mesh]:
    """An alarm clock: a round case on feet, a dial with ticks, two hands, and bells on some."""
    radius, depth = random.uniform(0.42, 0.5), random.uniform(0.16, 0.28)
    case = look.plain(look.main, shine=0.7)
    dial = look.plain((246, 244, 238) if random.random() < 0.6 else look.second, shine=0.1)
    ink = look.plain((34, 34, 38) if dial.colours[0][0] > 120 else (240, 238, 230), shine=0.1)
    front = depth / 2
    rim = [
        (0, -front),
        (radius, -front),
        (radius, -front),
        (radius, front),
        (radius, front),
        (radius * 0.88, front),
        (radius * 0.88, front - 0.03),
    ]
    parts = [revolve(rim, case, segments=48, smooth=0, solid=False).turn(90, "x")]
    face = [(radius * 0.9, front - 0.025), (radius * 0.45, front - 0.024), (0, front - 0.023)]
    parts.append(revolve(face, dial, segments=48, smooth=0, solid=False).turn(90, "x").over(0.03))
    every = int((1, 1, 3)[int(random.integers(3))])
    for hour in range(0, 12, every):
        length = 0.09 if hour % 3 == 0 else 0.05
        angle = hour / 12 * TAU
        ends = [(np.sin(angle) * r, np.cos(angle) * r, front + 0.005) for r in (radius * 0.8 - length, radius * 0.8)]
        parts.append(tube(ends, 0.014 if hour % 3 else 0.02, ink, segments=5).over())
    for turn, length, thick in ((random.uniform(0, TAU), 0.42, 0.022), (random.uniform(0, TAU), 0.68, 0.015)):
        tip = (np.sin(turn) * radius * length, np.cos(turn) * radius * length, front + 0.02)
        parts.append(
            tube(
                [(0, 0, front + 0.02), tip],
                thick,
                look.plain(look.trim, shine=0.2) if thick < 0.02 else ink,
                segments=6,
            ).over(0.1)
        )
    feet = [[(side * radius * 0.5, -radius * 0.8, 0), (side * radius * 0.72, -radius * 1.2, 0)] for side in (-1, 1)]
    parts += [tube(foot, 0.035, look.metallic(), segments=8) for foot in feet]
    if random.random() < 0.6:
        for side in (-1, 1):
            bell = revolve(
                [(0, 0.1), (0.1, 0.08), (0.16, 0.0)],
                look.plain(look.second, shine=0.9),
                segments=20,
                solid=False,
                smooth=2,
            )
            parts.append(bell.turn(-side * 32, "z").move(side * radius * 0.52, radius * 0.98))
        loop = [(-0.2, radius * 1.2, 0), (0, radius * 1.45, 0), (0.2, radius * 1.2, 0)]
        parts.append(tube(loop, 0.022, look.metallic(), segments=8, smooth=2))
    return parts


def guitar(random: np.random.Generator, look: Look) -> list[Mesh]:
    """A guitar, upright: body with a waist, sound hole or pickups, neck, frets, head and strings."""
    low, waist, high = random.uniform(0.34, 0.42), random.uniform(0.19, 0.27), random.uniform(0.26, 0.33)
    tall, depth = random.uniform(0.82, 0.98), random.uniform(0.07, 0.17)
    outline = [(0, 0), (low * 0.9, 0), (low, tall * 0.25), (low * 0.9, tall * 0.42), (waist, tall * 0.58),
               (high, tall * 0.72), (high, tall * 0.92), (high * 0.55, tall), (0, tall)]  # fmt: skip
    face = look.wooden(repeats=(14, 3)) if random.random() < 0.4 else look.patterned((3, 3), shine=0.9)
    edge = look.plain(look.second if random.random() < 0.4 else look.main, shine=0.7)
    parts = slab(outline, depth, face, edge)
    front = depth / 2
    neck_wood = look.plain((74, 50, 38), shine=0.4)
    length = random.uniform(0.8, 0.95)
    neck = [each.move(y=tall * 0.78, z=front + 0.01) for each in box(0.095, length, 0.04, neck_wood, rounding=0.01)]
    head_y = tall * 0.78 + length
    head = [
        each.move(y=head_y, z=front) for each in box(0.15, 0.24, 0.04, look.plain(look.trim, shine=0.5), rounding=0.02)
    ]
    bridge = [
        each.move(y=tall * 0.2, z=front) for each in box(0.22, 0.045, 0.04, look.plain((40, 30, 26)), rounding=0.01)
    ]
    parts += [each.over(0.03) for each in (*neck, *head, *bridge)]
    if random.random() < 0.6:
        hole = revolve([(0.1, 0.006), (0, 0.006)], look.plain((24, 18, 16), shine=0), smooth=0, solid=False)
        ring = revolve([(0.125, 0.004), (0.098, 0.006)], look.plain(look.trim, shine=0.3), smooth=0, solid=False)
        parts += [
            each.turn(90, "x").move(y=tall * 0.6, z=front).over(0.03 + place)
            for place, each in ((0, ring), (0.02, hole))
        ]
    else:
        for place in (0.42, 0.6):
            parts += [
                each.move(y=tall * place, z=front).over(0.04)
                for each in box(0.17, 0.06, 0.03, look.metallic(), rounding=0.01)
            ]
    for fret in range(9):
        y = tall + (head_y - tall) * fret / 9
        parts.append(
            tube([(-0.047, y, front + 0.052), (0.047, y, front + 0.052)], 0.005, look.metallic(), segments=4).over(0.07)
        )
    for string in np.linspace(-0.035, 0.035, 4):
        parts.append(
            tube(
                [(string, tall * 0.22, front + 0.065), (string, head_y + 0.05, front + 0.06)],
                0.004,
                look.metallic(),
                segments=4,
            ).over(0.07)
        )
    for side in (-1, 1):
        for place in (0.05, 0.12, 0.19):
            parts.append(
                tube(
                    [(side * 0.06, head_y + place, front), (side * 0.12, head_y + place, front)],
                    0.018,
                    look.metallic(),
                    segments=6,
                )
            )
    return parts
