"""Laws of thumbnails."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from lookalike.errors import ImageError, InputError
from lookalike.images.load import load
from lookalike.images.thumbnails import thumbnail


def encoded(im: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    im.save(buffer, kind, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as im:
        im.load()
        return im


@pytest.mark.parametrize(
    ("size", "expected"),
    [((800, 600), (128, 96)), ((600, 800), (96, 128)), ((4000, 3), (128, 1)), ((50, 40), (50, 40))],
)
def test_a_thumbnail_fits_its_square_keeps_the_shape_and_never_grows(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    small = opened(thumbnail(encoded(Image.new("RGB", size, (200, 30, 30)), "JPEG"), 128))
    assert (small.format, small.size) == ("WEBP", expected)
    assert np.abs(np.asarray(small).astype(int) - [200, 30, 30]).max() <= 6


def test_a_thumbnail_is_upright_and_carries_no_metadata() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "a camera"
    small = opened(thumbnail(encoded(Image.new("RGB", (80, 40)), "PNG", exif=exif), 64))
    assert small.size == (32, 64)
    assert not {"exif", "icc_profile", "xmp"} & {key for key, value in small.info.items() if value}


def test_a_thumbnail_of_a_transparent_picture_is_on_white() -> None:
    small = opened(thumbnail(encoded(Image.new("RGBA", (40, 40), (0, 0, 0, 0)), "PNG"), 32))
    assert np.asarray(small).min() >= 253


@pytest.mark.parametrize("side", [0, 15, 2049])
def test_a_side_out_of_range_is_refused_with_its_limits(side: int) -> None:
    with pytest.raises(InputError, match=rf"side={side} is outside 16\.\.2048"):
        thumbnail(b"", side)


def test_a_bad_file_gives_the_loaders_reason() -> None:
    with pytest.raises(ImageError, match="unknown-format"):
        thumbnail(b"just text", 64)
    assert load(thumbnail(b"P6 1 1 255 abc", 64)).format == "WEBP"
