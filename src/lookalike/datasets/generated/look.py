"""The look of one object: its colourway, pattern and mark, drawn once and shared by all its parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookalike.datasets.generated.surface import Colour, Surface

PALETTE: tuple[Colour, ...] = (
    (196, 54, 46), (227, 116, 53), (236, 178, 60), (244, 214, 120), (126, 158, 82), (58, 112, 80), (44, 122, 125),
    (98, 168, 190), (52, 96, 160), (36, 52, 92), (112, 84, 150), (178, 96, 140), (230, 160, 172), (150, 88, 60),
    (206, 170, 130), (236, 226, 206), (242, 242, 238), (168, 170, 172), (92, 98, 104), (38, 40, 44),
)  # fmt: skip
MARKINGS = ("none", "disc", "ring", "square", "diamond", "triangle", "cross", "bars", "star", "heart", "bolt")
WOODS: tuple[Colour, ...] = ((150, 98, 58), (186, 134, 84), (110, 66, 40), (210, 170, 120), (66, 44, 34))
METALS: tuple[Colour, ...] = ((176, 178, 182), (196, 160, 92), (60, 62, 66), (186, 118, 88))


@dataclass(frozen=True, kw_only=True)
class Look:
    """Three colours of one object, its pattern and its mark."""

    main: Colour
    second: Colour
    trim: Colour
    pattern: str
    density: float
    mark: str
    wood: Colour
    metal: Colour

    def plain(self, colour: Colour, *, shine: float = 0.3, glow: float = 0.0) -> Surface:
        """One colour."""
        return Surface(colours=(colour,), shine=shine, glow=glow)

    def patterned(
        self,
        repeats: tuple[float, float],
        *,
        shine: float = 0.3,
        mark: tuple[float, float, float, float] | None = None,
        trimmed: bool = False,
        glow: float = 0.0,
    ) -> Surface:
        """The object's pattern, with its mark where the part has room for one."""
        colours = (self.main, self.second, self.trim) if trimmed else (self.main, self.second)
        dense = (max(2.0, round(repeats[0] * self.density)), max(2.0, round(repeats[1] * self.density)))
        return Surface(
            colours=colours,
            pattern=self.pattern,
            repeats=dense,
            mark=self.mark if mark else "none",
            mark_box=mark or (0.5, 0.5, 0.1, 0.1),
            mark_colour=self.trim,
            shine=shine,
            glow=glow,
        )

    def wooden(self, *, repeats: tuple[float, float] = (4, 9)) -> Surface:
        """Wood grain."""
        red, green, blue = self.wood
        darker = (int(red * 0.8), int(green * 0.77), int(blue * 0.74))
        return Surface(colours=(self.wood, darker), pattern="grain", repeats=repeats, shine=0.35)

    def metallic(self) -> Surface:
        """Brushed metal."""
        return Surface(colours=(self.metal,), shine=0.9)


def look(of_model: np.random.Generator, of_object: np.random.Generator, patterns: tuple[str, ...]) -> Look:
    """Draw a look: pattern and mark go with the model, the colours, far enough apart to be told, with the object."""
    order = of_object.permutation(len(PALETTE))
    main = PALETTE[order[0]]
    others = [PALETTE[each] for each in order[1:] if _apart(PALETTE[each], main)]
    second = others[0]
    trim = next(each for each in others[1:] if _apart(each, second))
    return Look(
        main=main,
        second=second,
        trim=trim,
        pattern=patterns[int(of_model.integers(len(patterns)))],
        density=float(of_model.uniform(0.7, 1.4)),
        mark=MARKINGS[int(of_model.integers(len(MARKINGS)))],
        wood=WOODS[int(of_model.integers(len(WOODS)))],
        metal=METALS[int(of_model.integers(len(METALS)))],
    )


def _apart(one: Colour, other: Colour) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) > 130
