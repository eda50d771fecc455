"""The picture formats lookalike reads: how each is recognised, and what it is called on disk.

A format is recognised by its first bytes, never by its name. Formats whose reader starts another program (EPS, WMF),
has no signature (TGA) or only finds a header (FITS, GRIB) are left out on purpose.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

PREFIX = 64
"""Bytes of a file that are enough to recognise it."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """One row of the table: the reader is `reader` in `module`; `feature` is the codec Pillow must be built with."""

    name: str
    description: str
    extensions: tuple[str, ...]
    matches: Callable[[bytes], bool]
    module: str
    reader: str
    feature: str = ""

    def open(self, file: Any) -> Any:
        """Return the opened, not yet decoded, Pillow picture."""
        return getattr(importlib.import_module(self.module), self.reader)(file, "")

    def available(self) -> bool:
        """Say whether this installation can decode the format."""
        try:
            importlib.import_module(self.module)
        except ImportError:
            return False
        if not self.feature:
            return True
        features = importlib.import_module("PIL.features")
        return bool(features.check(self.feature))


class FormatRow(NamedTuple):
    """One line of `lookalike formats`."""

    name: str
    extensions: tuple[str, ...]
    description: str
    available: bool


def _starts(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda prefix: prefix.startswith(signatures)


def _brands(prefix: bytes) -> set[bytes]:
    """Return the brands of an ISO base media file (major first, then compatible), or nothing."""
    if prefix[4:8] != b"ftyp":
        return set()
    end = min(int.from_bytes(prefix[:4], "big"), len(prefix))
    return {prefix[8:12], *(prefix[i : i + 4] for i in range(16, end - 3, 4))}


_HEIF_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}


def _is_avif(prefix: bytes) -> bool:
    return bool(_brands(prefix) & {b"avif", b"avis"}) and prefix[8:12] not in _HEIF_BRANDS


def _is_heif(prefix: bytes) -> bool:
    return bool(_brands(prefix) & (_HEIF_BRANDS | {b"mif1", b"msf1"})) and not _is_avif(prefix)


def _is_bmp(prefix: bytes) -> bool:
    # "BM" alone begins many a text; the size of the header that follows takes few values
    return prefix.startswith(b"BM") and int.from_bytes(prefix[14:18], "little") in {12, 16, 40, 52, 56, 64, 108, 124}


def _is_ico(prefix: bytes) -> bool:
    return prefix.startswith(b"\0\0\1\0") and prefix[4:6] != b"\0\0" and prefix[9:10] in {b"\0", b"\xff"}


def _is_netpbm(prefix: bytes) -> bool:
    return len(prefix) > 2 and prefix[:1] == b"P" and prefix[1:2] in b"123456" and prefix[2:3] in b" \t\r\n#"


def _is_sgi(prefix: bytes) -> bool:
    return prefix.startswith(b"\x01\xda") and prefix[2:3] in {b"\0", b"\1"} and prefix[3:4] in {b"\1", b"\2"}


_JPEG_2000 = (b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

FORMATS: tuple[Format, ...] = (
    Format(
        name="JPEG",
        description="JPEG, also multi-picture MPO (first picture)",
        extensions=(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
        matches=_starts(b"\xff\xd8\xff"),
        module="PIL.JpegImagePlugin",
        reader="jpeg_factory",
        feature="jpg",
    ),
    Format(
        name="PNG",
        description="PNG and animated PNG (default picture)",
        extensions=(".png", ".apng"),
        matches=_starts(b"\x89PNG\r\n\x1a\n"),
        module="PIL.PngImagePlugin",
        reader="PngImageFile",
        feature="zlib",
    ),
    Format(
        name="WEBP",
        description="WebP (first frame)",
        extensions=(".webp",),
        matches=lambda prefix: prefix.startswith(b"RIFF") and prefix[8:12] == b"WEBP",
        module="PIL.WebPImagePlugin",
        reader="WebPImageFile",
        feature="webp",
    ),
    Format(
        name="HEIF",
        description="HEIC / HEIF, as phones write it (primary picture)",
        extensions=(".heic", ".heif", ".hif"),
        matches=_is_heif,
        module="pillow_heif",
        reader="HeifImageFile",
    ),
    Format(
        name="AVIF",
        description="AVIF (first frame)",
        extensions=(".avif", ".avifs"),
        matches=_is_avif,
        module="PIL.AvifImagePlugin",
        reader="AvifImageFile",
        feature="avif",
    ),
    Format(
        name="GIF",
        description="GIF (first frame)",
        extensions=(".gif",),
        matches=_starts(b"GIF87a", b"GIF89a"),
        module="PIL.GifImagePlugin",
        reader="GifImageFile",
    ),
    Format(
        name="TIFF",
        description="TIFF and BigTIFF (first page)",
        extensions=(".tif", ".tiff"),
        matches=_starts(*_TIFF),
        module="PIL.TiffImagePlugin",
        reader="TiffImageFile",
        feature="libtiff",
    ),
    Format(
        name="BMP",
        description="Windows bitmap",
        extensions=(".bmp", ".dib"),
        matches=_is_bmp,
        module="PIL.BmpImagePlugin",
        reader="BmpImageFile",
    ),
    Format(
        name="JPEG2000",
        description="JPEG 2000",
        extensions=(".jp2", ".j2k", ".jpf", ".jpx", ".j2c", ".jpc"),
        matches=_starts(*_JPEG_2000),
        module="PIL.Jpeg2KImagePlugin",
        reader="Jpeg2KImageFile",
        feature="jpg_2000",
    ),
    Format(
        name="ICO",
        description="Windows icon (largest picture)",
        extensions=(".ico",),
        matches=_is_ico,
        module="PIL.IcoImagePlugin",
        reader="IcoImageFile",
    ),
    Format(
        name="ICNS",
        description="Mac icon (largest picture)",
        extensions=(".icns",),
        matches=_starts(b"icns"),
        module="PIL.IcnsImagePlugin",
        reader="IcnsImageFile",
    ),
    Format(
        name="PPM",
        description="Portable bitmap, graymap and pixmap",
        extensions=(".ppm", ".pgm", ".pbm", ".pnm"),
        matches=_is_netpbm,
        module="PIL.PpmImagePlugin",
        reader="PpmImageFile",
    ),
    Format(
        name="QOI",
        description="Quite OK Image",
        extensions=(".qoi",),
        matches=_starts(b"qoif"),
        module="PIL.QoiImagePlugin",
        reader="QoiImageFile",
    ),
    Format(
        name="PSD",
        description="Photoshop (the flattened picture)",
        extensions=(".psd",),
        matches=_starts(b"8BPS"),
        module="PIL.PsdImagePlugin",
        reader="PsdImageFile",
    ),
    Format(
        name="SGI",
        description="Silicon Graphics image",
        extensions=(".sgi",),  # .rgb, .rgba and .bw are as often raw dumps; those are recognised by their bytes
        matches=_is_sgi,
        module="PIL.SgiImagePlugin",
        reader="SgiImageFile",
    ),
)

_NOT_READ: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("JPEG XL", _starts(b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")),
    ("PDF", _starts(b"%PDF-")),
    ("EPS", _starts(b"%!PS", b"\xc5\xd0\xd3\xc6")),
    ("SVG", lambda prefix: b"<svg" in prefix),
    ("Canon CR3 raw", lambda prefix: b"crx " in _brands(prefix)),
    ("a video", lambda prefix: bool(_brands(prefix))),
)

EXTENSIONS: frozenset[str] = frozenset(extension for row in FORMATS for extension in row.extensions)
"""Lower-case, with the dot."""


def sniff(prefix: bytes) -> Format | None:
    """Return the format of a file that begins with `prefix` (at least `PREFIX` bytes, or all there are), or None.

    >>> sniff(b"GIF89a").name
    'GIF'
    >>> sniff(b"just text") is None
    True
    """
    return next((row for row in FORMATS if row.matches(prefix)), None)


def known_but_not_read(prefix: bytes) -> str:
    """Name the format of a file that we recognise and do not read, or return the empty text.

    >>> known_but_not_read(b"%PDF-1.7")
    'PDF'
    """
    return next((name for name, matches in _NOT_READ if matches(prefix)), "")


def readable_formats() -> list[FormatRow]:
    """Return one row a format, with whether this installation can decode it.

    >>> [row.name for row in readable_formats() if ".heic" in row.extensions]
    ['HEIF']
    """
    return [FormatRow(row.name, row.extensions, row.description, row.available()) for row in FORMATS]
