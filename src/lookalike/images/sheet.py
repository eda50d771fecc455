"""Rows of pictures as one picture: a query and what was found for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from PIL import Image, ImageDraw, ImageFont

from lookalike.errors import ImageError
from lookalike.images.load import load

Frame: TypeAlias = Literal["query", "right", "wrong"]

# Colour and thickness differ, so that the sheet can also be read without seeing green and red apart.
FRAMES: dict[Frame, tuple[str, int]] = {"query": ("#3b4252", 3), "right": ("#2e8b57", 6), "wrong": ("#c8553d", 2)}
PAPER, INK = "#ffffff", "#22262e"
GAP, CAPTION = 12, 20


@dataclass(frozen=True)
class Tile:
    """One picture of a sheet: where it is, what stands under it, and its frame."""

    path: str
    caption: str
    frame: Frame


def sheet(rows: Sequence[Sequence[Tile]], *, side: int = 144) -> Image.Image:
    """Draw rows of tiles, each picture fitted into `side` pixels; an unreadable one leaves a grey square.

    The first tile of a row stands apart from the others, as the query.
    """
    columns = max((len(row) for row in rows), default=0)
    cell = side + GAP
    width = GAP + columns * cell + GAP
    canvas = Image.new("RGB", (width, GAP + len(rows) * (cell + CAPTION)), PAPER)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=12)
    for y, row in enumerate(rows):
        top = GAP + y * (cell + CAPTION)
        for x, tile in enumerate(row):
            left = GAP + x * cell + (GAP if x else 0)
            canvas.paste(_fitted(tile.path, side), (left, top))
            colour, thickness = FRAMES[tile.frame]
            draw.rectangle((left, top, left + side - 1, top + side - 1), outline=colour, width=thickness)
            draw.text((left, top + side + 3), _shortened(tile.caption, font, side), fill=INK, font=font)
    return canvas


def save_sheet(rows: Sequence[Sequence[Tile]], path: Path, *, side: int = 144) -> Path:
    """Write a sheet as JPEG and return its path."""
    sheet(rows, side=side).save(path, format="JPEG", quality=88, optimize=True)
    return path


def _fitted(path: str, side: int) -> Image.Image:
    square = Image.new("RGB", (side, side), "#f2f3f5")
    try:
        picture = Image.fromarray(load(path, short_side=side).pixels)
    except ImageError:
        return square
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    square.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return square


def _shortened(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> str:
    text = text.encode("utf-8", errors="replace").decode()
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"
