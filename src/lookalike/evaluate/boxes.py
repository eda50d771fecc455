"""The part of a picture that a benchmark asks for."""

from __future__ import annotations

from lookalike.arrays import Rgb
from lookalike.errors import InputError
from lookalike.images.load import load

BOX = "box"
"""Column of `left,top,right,bottom` in pixels; None where the whole picture is meant."""


def part_of(path: str, box: str) -> Rgb:
    """Return the pixels inside a box, edges rounded to whole pixels and kept inside the picture.

    Raises:
        ImageError: the picture cannot be read.
        InputError: four numbers are needed, and a box that holds a pixel.
    """
    pixels: Rgb = load(path).pixels
    try:
        left, top, right, bottom = (round(float(edge)) for edge in box.split(","))
    except ValueError as error:
        raise InputError(f"The box {box!r} of {path!r} is not left,top,right,bottom.") from error
    part: Rgb = pixels[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if not part.size:
        height, width = pixels.shape[:2]
        raise InputError(f"The box {box} of {path!r} holds no pixel of its {width} × {height}.")
    return part
