"""Things that stand in a room: chair and lamp."""

from __future__ import annotations

import numpy as np

from lookalike.datasets.generated.look import Look
from lookalike.datasets.generated.mesh import Mesh, box, revolve, tube
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
