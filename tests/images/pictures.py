"""Pictures made on the spot, with odd insides."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageCms

UPRIGHT = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[255, 255, 0], [0, 255, 255], [0, 0, 0]]], dtype=np.uint8)
"""Two rows, three columns, six colours: every orientation of it is different."""


def encoded(im: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    im.save(buffer, kind, **options)
    return buffer.getvalue()


def exif(orientation: Any) -> Image.Exif:
    block = Image.Exif()
    block[0x0112] = orientation
    return block


def stored(upright: npt.NDArray[Any], orientation: int) -> npt.NDArray[Any]:
    """Transcribe EXIF 2.32 table 6: which visual side row 0 and column 0 of the stored pixels are."""
    rows, columns = {
        1: ("top", "left"),
        2: ("top", "right"),
        3: ("bottom", "right"),
        4: ("bottom", "left"),
        5: ("left", "top"),
        6: ("right", "top"),
        7: ("right", "bottom"),
        8: ("left", "bottom"),
    }[orientation]
    pixels = upright.swapaxes(0, 1) if rows in {"left", "right"} else upright  # a stored row may be a visual column
    if rows in {"bottom", "right"}:
        pixels = pixels[::-1]
    if columns in {"bottom", "right"}:
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """Write a PNG by hand; `rows` are the filtered rows, `chunks` come before the pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + body


def png16(values: npt.NDArray[np.uint16], *chunks: tuple[bytes, bytes]) -> bytes:
    """Write a 16-bit PNG: (h, w) grey, (h, w, 2) grey + alpha, (h, w, 3) RGB, (h, w, 4) RGBA."""
    channels = values.shape[2] if values.ndim == 3 else 1
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(values.shape[1], values.shape[0], 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], rows, *chunks)


def without_segment(jpeg: bytes, marker: int) -> bytes:
    """Cut the segments of one marker out of a JPEG."""
    out, at = bytearray(jpeg[:2]), 2
    while jpeg[at + 1] != 0xDA:
        size = 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
        if jpeg[at + 1] != marker:
            out += jpeg[at : at + size]
        at += size
    return bytes(out + jpeg[at:])


def heif(im: Image.Image, **options: Any) -> bytes:
    """Write HEIC without registering the writer with Pillow, where it would stay for every other test."""
    import pillow_heif

    buffer = io.BytesIO()
    pillow_heif.from_pillow(im).save(buffer, **options)
    return buffer.getvalue()


def psd(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Write a flat RGB Photoshop file."""
    height, width = pixels.shape[:2]
    header = struct.pack(">4sH6xHIIHH", b"8BPS", 1, 3, height, width, 8, 3)
    return header + bytes(12) + b"\0\0" + pixels.transpose(2, 0, 1).tobytes()


def swapped_profile() -> bytes:
    """Make an sRGB profile whose red and green primaries are exchanged: its red is what sRGB calls green."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    at = {}
    for i in range(struct.unpack_from(">I", profile, 128)[0]):
        name, offset, _ = struct.unpack_from(">4sII", profile, 132 + 12 * i)
        at[name] = offset
    red, green = at[b"rXYZ"], at[b"gXYZ"]
    profile[red : red + 20], profile[green : green + 20] = profile[green : green + 20], profile[red : red + 20]
    return bytes(profile)


def _profile(space: bytes, kind: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    def xyz(*values: float) -> bytes:
        return b"XYZ \0\0\0\0" + b"".join(struct.pack(">i", round(value * 65536)) for value in values)

    text = b"text\0\0\0\0none\0\0\0\0"
    description = b"desc\0\0\0\0" + struct.pack(">I", 5) + b"test\0" + bytes(78)
    tags = {b"desc": description, b"cprt": text, b"wtpt": xyz(0.9642, 1.0, 0.8249), **tags}
    table, body = struct.pack(">I", len(tags)), b""
    start = 128 + 4 + 12 * len(tags)
    for name, data in tags.items():
        data += bytes(-len(data) % 4)
        table += struct.pack(">4sII", name, start + len(body), len(data))
        body += data
    white = b"".join(struct.pack(">i", round(value * 65536)) for value in (0.9642, 1.0, 0.8249))
    header = struct.pack(
        ">I4sI4s4s4s12s4s", start + len(body), b"none", 0x02400000, kind, space, connection, b"", b"acsp"
    )
    return (header + bytes(68 - len(header)) + white).ljust(128, b"\0") + table + body


def linear_grey_profile() -> bytes:
    """Make a grey profile of gamma 1: half the light is level 188 in sRGB."""
    return _profile(b"GRAY", b"mntr", b"XYZ ", {b"kTRC": b"curv\0\0\0\0" + struct.pack(">IH", 1, 256)})


def cmyk_profile() -> bytes:
    """Make a CMYK profile in which the black ink alone darkens, and the others do nothing: a table of 2^4 corners."""
    corners = b"".join(bytes((255 * (1 - (i & 1)), 128, 128)) for i in range(16))  # Lab; black varies fastest
    unit = b"".join(struct.pack(">i", 65536 * (i % 4 == 0)) for i in range(9))
    ramp = bytes(range(256))
    lut = b"mft1\0\0\0\0" + bytes((4, 3, 2, 0)) + unit + ramp * 4 + corners + ramp * 3
    return _profile(b"CMYK", b"prtr", b"Lab ", {b"A2B0": lut})
