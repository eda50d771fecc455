"""Laws of the table of formats."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from lookalike.images.formats import EXTENSIONS, FORMATS, known_but_not_read, readable_formats, sniff

SAVED = ["JPEG", "PNG", "WEBP", "AVIF", "GIF", "TIFF", "BMP", "JPEG2000", "ICO", "ICNS", "PPM", "QOI", "SGI"]


@pytest.mark.parametrize("kind", SAVED)
def test_what_pillow_writes_is_recognised_by_its_bytes(kind: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32)).save(buffer, kind)
    row = sniff(buffer.getvalue()[:64])
    assert row is not None
    assert row.name == kind


def test_every_format_is_readable_here() -> None:
    assert [row.name for row in readable_formats() if not row.available] == []


def test_an_extension_belongs_to_one_format() -> None:
    every = [extension for row in FORMATS for extension in row.extensions]
    assert len(every) == len(set(every)) == len(EXTENSIONS)
    assert all(extension == extension.lower() and extension.startswith(".") for extension in every)


@pytest.mark.parametrize(
    "prefix", [b"", b"B", b"BM", b"BMW 320i, black", b"P3", b"P4ssword", b"just text", bytes(64), b"RIFF\0\0\0\0WAVE"]
)
def test_what_only_resembles_a_picture_is_none(prefix: bytes) -> None:
    assert sniff(prefix) is None


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "AVIF"),  # the brand that decides may come second
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "HEIF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIF"),
        (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf", "AVIF"),
    ],
)
def test_heif_and_avif_are_told_apart_by_their_brands(prefix: bytes, name: str) -> None:
    row = sniff(prefix)
    assert row is not None
    assert row.name == name


@pytest.mark.parametrize(
    ("prefix", "name"),
    [
        (b"\xff\x0a" + bytes(20), "JPEG XL"),
        (b"%PDF-1.7", "PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "EPS"),
        (b'<svg xmlns="http://www.w3.org/2000/svg">', "SVG"),
        (b"\0\0\0\x20ftypisom\0\0\2\0isomiso2", "a video"),
        (b"hello", ""),
    ],
)
def test_a_format_that_is_not_read_is_named(prefix: bytes, name: str) -> None:
    assert known_but_not_read(prefix) == name
