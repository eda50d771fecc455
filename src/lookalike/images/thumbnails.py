"""Small pictures for pages and reports, read by the one loader."""

from __future__ import annotations

import io

from PIL import Image

from lookalike.errors import InputError
from lookalike.images.load import MAX_PIXELS, Source, load

SIDES = range(16, 2049)
_QUALITY = 80


def thumbnail(source: Source, side: int, *, max_pixels: int = MAX_PIXELS) -> bytes:
    """Return the picture as WebP, shrunk to fit into a square of `side` pixels, never enlarged.

    Metadata (place, camera, orientation) does not travel: what leaves is pixels only.

    Raises:
        ImageError: the picture cannot be read.
        InputError: `side` outside 16..2048.

    >>> thumbnail(b"P6 1 1 255 abc", 64)[8:12]
    b'WEBP'
    """
    if side not in SIDES:
        raise InputError(f"side={side} is outside {SIDES.start}..{SIDES.stop - 1} pixels.")
    picture = load(source, short_side=side, max_pixels=max_pixels)
    im = Image.fromarray(picture.pixels)
    im.thumbnail((side, side), Image.Resampling.BICUBIC, reducing_gap=3.0)
    buffer = io.BytesIO()
    im.save(buffer, "WEBP", quality=_QUALITY, method=2)
    return buffer.getvalue()
