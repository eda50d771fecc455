"""The one picture loader: a file or its bytes in, upright 8-bit RGB out, or a reason.

Index, query, thumbnail, evaluation and training all read pictures here, so that the same file is the same picture
everywhere.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from PIL import Image

from lookalike.arrays import Rgb
from lookalike.errors import ImageError, InputError
from lookalike.images.colour import UnsupportedPixelsError, to_rgb
from lookalike.images.formats import PREFIX, Format, known_but_not_read, sniff
from lookalike.images.guard import guarded, too_large

REASONS: Mapping[str, str] = {
    "missing": "no such file",
    "empty": "zero bytes",
    "unknown-format": "the first bytes are those of no picture format we know",
    "truncated": "recognised, but cut short or damaged: the pixels cannot be decoded",
    "too-large": "more pixels than the limit, or than memory holds",
    "permission": "the system does not let us read it",
    "unsupported": "not a plain file, or a format or variant that is not read",
}
"""Every reason code of an `ImageError`, and what it means."""

MAX_PIXELS = 200_000_000
"""Pictures with more pixels are refused before they are decoded; the largest phone sensors make 199,756,800."""

Source: TypeAlias = str | os.PathLike[str] | os.PathLike[bytes] | bytes
"""A path, or the bytes of the picture itself."""

_NAME_OF_BYTES = "<bytes>"
_ORIENTATION = 0x0112
_BITS_PER_SAMPLE, _PHOTOMETRIC = 258, 262
_UPRIGHT: Mapping[int, Image.Transpose] = {  # EXIF 2.32, table 6: where row 0 and column 0 of the stored pixels belong
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_WORDS = (  # what decoders say, and the reason it stands for
    ("too-large", re.compile(r"too (large|big)|limit exceeded|out of memory", re.IGNORECASE)),
    (
        "unsupported",
        re.compile(r"unsupported|not (supported|implemented)|cannot handle|unknown (pixel|raw) mode", re.IGNORECASE),
    ),
)


class Failure(NamedTuple):
    """One file that could not be read; `reason` is a code of `REASONS`."""

    path: str
    reason: str
    detail: str


@dataclass(frozen=True, eq=False)
class Picture:
    """One decoded picture.

    `pixels` is (h, w, 3) uint8, upright RGB, and may be smaller than `size`, the full upright (width, height) of the
    file; `frames` counts frames or pages, of which the first is shown; `notes` are short sentences about what was
    done to the pixels.
    """

    pixels: Rgb
    size: tuple[int, int]
    frames: int
    format: str
    notes: tuple[str, ...] = ()


def load(source: Source, *, short_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Picture:
    """Read a picture as upright 8-bit RGB.

    A `str` or path-like `source` names a file; `bytes` are the picture itself. With `short_side` a JPEG is decoded at
    the smallest of the scales 1, 1/2, 1/4, 1/8 whose shorter side is still at least that many pixels.

    The surprise: a file that lacks only its last bytes is `truncated`, although a viewer may show most of it; half a
    picture is never passed off as a whole one.

    Raises:
        ImageError: the picture cannot be read; `reason` is a code of `REASONS`, and the path is named.
        InputError: `short_side` or `max_pixels` below 1.

    >>> load(b"P3 2 1 255  255 0 0  0 0 255").pixels.tolist()
    [[[255, 0, 0], [0, 0, 255]]]
    """
    for name, value in (("short_side", short_side), ("max_pixels", max_pixels)):
        if value is not None and value < 1:
            raise InputError(f"{name}={value}: at least 1 pixel is needed.")
    path = _NAME_OF_BYTES if isinstance(source, bytes) else os.fsdecode(source)
    with _opened(source, path) as file, guarded(max_pixels):
        prefix = _read(file, path)
        row = sniff(prefix)
        if row is None:
            raise _unrecognised(path, prefix)
        with _reasons(path, row):
            if row.name == "JPEG2000":
                _check_end_of_jpeg_2000(file)
            return _decode(row, file, path, short_side, max_pixels)


@contextlib.contextmanager
def _opened(source: Source, path: str) -> Iterator[IO[bytes]]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    try:
        # without O_NONBLOCK, opening a named pipe waits for ever
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise not_opened(path, error) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
            raise ImageError(path, "unsupported", f"{kind}, not a file")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def not_opened(path: str, error: OSError | ValueError) -> ImageError:
    """Return the reason why the system did not open `path`."""
    if isinstance(error, ValueError):
        return ImageError(path, "missing", "no file can have this name")
    detail = error.strerror or str(error)
    if os.path.isdir(path):  # noqa: PTH112 - Windows refuses to open a folder; Path() may refuse the name
        return ImageError(path, "unsupported", "a folder, not a file")
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    if missing or error.errno in {errno.ELOOP, errno.ENAMETOOLONG}:
        return ImageError(path, "missing", detail)
    return ImageError(path, "permission", detail)


def _read(file: IO[bytes], path: str) -> bytes:
    try:
        prefix = file.read(PREFIX)
        file.seek(0)
    except OSError as error:
        raise ImageError(path, "permission", error.strerror or str(error)) from error
    if not prefix:
        raise ImageError(path, "empty", "zero bytes")
    return prefix


def _unrecognised(path: str, prefix: bytes) -> ImageError:
    if name := known_but_not_read(prefix):
        return ImageError(path, "unsupported", f"{name} is not read")
    if not prefix.strip(b"\0"):
        return ImageError(path, "unknown-format", "it begins with zero bytes only")
    return ImageError(path, "unknown-format", f"it begins with {prefix[:8]!r}")


@contextlib.contextmanager
def _reasons(path: str, row: Format) -> Iterator[None]:
    """Turn whatever a decoder raises on odd bytes into one reason."""
    try:
        yield
    except ImageError:
        raise
    except (MemoryError, Image.DecompressionBombError) as error:
        raise ImageError(path, "too-large", str(error) or "not enough memory to decode it") from error
    except (UnsupportedPixelsError, ImportError, NotImplementedError) as error:
        raise ImageError(path, "unsupported", f"{row.name}: {error}") from error
    except Exception as error:  # decoders raise anything from IndexError to zlib.error on damaged bytes
        said = " ".join(str(error).split())  # libheif's messages have several lines
        detail = f"{row.name}: {said or type(error).__name__}"
        reason = next((code for code, words in _WORDS if words.search(detail)), "truncated")
        raise ImageError(path, reason, detail) from error


def _decode(row: Format, file: IO[bytes], path: str, short_side: int | None, max_pixels: int) -> Picture:
    with row.open(file) as im:
        _check_size(im.size, path, max_pixels)
        full, name, raw = im.size, im.format or row.name, _raw_mode(im)
        if short_side is not None and row.name == "JPEG":
            im.draft(None, (short_side, short_side))
        bits, inverted = _depth(im)
        stored = _tiff_orientation(im)
        im.load()
        _check_size(im.size, path, max_pixels)  # icons and HEIF may hold more than their header says
        if row.name in {"ICO", "ICNS", "HEIF", "TIFF"}:
            full = im.size
        notes: list[str] = []
        orientation = _orientation(im, notes)
        _narrow_transparency(im, raw)
        rgb = to_rgb(_as_written(im), bits=bits, inverted=inverted, notes=notes)
        if orientation in _UPRIGHT:
            rgb = rgb.transpose(_UPRIGHT[orientation])
        if max(orientation, stored) > 1:
            notes.append(f"EXIF orientation {max(orientation, stored)} applied")
        if orientation >= 5:
            full = (full[1], full[0])
        return Picture(np.array(rgb), full, _frames(im, row), name, tuple(notes))


def _check_end_of_jpeg_2000(file: IO[bytes]) -> None:
    """Refuse a codestream without its end, which OpenJPEG would fill up with mush.

    Within coded data 0xFF is never followed by more than 0x8F (ISO 15444-1, A.1), so the end marker is unmistakable.
    """
    content = file.read()
    file.seek(0)
    if content.rfind(b"\xff\xd9") < content.find(b"\xff\x4f\xff\x51"):
        raise ValueError("the file is truncated: it has no end-of-codestream marker")


def _check_size(size: tuple[int, int], path: str, max_pixels: int) -> None:
    if size[0] * size[1] > max_pixels:
        raise ImageError(path, "too-large", too_large(size, max_pixels))


def _raw_mode(im: Any) -> str:
    """Return how the samples lie in the file ("RGB;16B"), or the empty text."""
    args = im.tile[0][3] if im.tile else ""
    return str(args[0]) if isinstance(args, tuple) and args else str(args or "")


def _depth(im: Any) -> tuple[int, bool]:
    """Return the bits of a deep grey sample, and whether 0 is white (TIFF only)."""
    if not hasattr(im, "tag_v2"):
        return 16, False
    written = im.tag_v2.get(_BITS_PER_SAMPLE, (16,))
    bits = int(written[0] if isinstance(written, tuple) else written)
    return max(bits, 1), im.mode.startswith("I;16") and im.tag_v2.get(_PHOTOMETRIC) == 0


def _tiff_orientation(im: Any) -> int:
    """Return the orientation of a TIFF, which Pillow applies and forgets while it decodes (TiffImageFile.load_end)."""
    value = im.tag_v2.get(_ORIENTATION, 1) if hasattr(im, "tag_v2") else 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _narrow_transparency(im: Any, raw: str) -> None:
    """Bring the transparent colour of a 16-bit RGB PNG to the 8 bits Pillow decodes such pixels to."""
    colour = im.info.get("transparency")
    if ";16" in raw and im.mode == "RGB" and isinstance(colour, tuple):
        im.info["transparency"] = tuple(value >> 8 for value in colour)


def _as_written(im: Any) -> Image.Image:
    """Undo Pillow's inversion of the inks of a CMYK JPEG whose writer left no Adobe marker.

    Pillow always assumes Adobe's inverted inks (JpegImagePlugin: "assume adobe conventions").
    """
    if im.mode == "CMYK" and im.format in {"JPEG", "MPO"} and "adobe" not in im.info:
        inks: Image.Image = im.point([255 - level for level in range(256)] * 4)
        return inks
    picture: Image.Image = im
    return picture


def _orientation(im: Any, notes: list[str]) -> int:
    """Return the EXIF orientation, 1 where there is none or the block is damaged."""
    try:
        value = im.getexif().get(_ORIENTATION, 1)
    except Exception:  # a damaged EXIF block raises anything; the pixels are fine
        notes.append("EXIF block unreadable, ignored")
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _frames(im: Any, row: Format) -> int:
    """Count frames or pages; the layers of a PSD and the sizes of an icon are not frames."""
    if row.name in {"PSD", "ICO", "ICNS"}:
        return 1
    try:
        return max(int(getattr(im, "n_frames", 1)), 1)
    except Exception:  # a GIF cut after its first frame: what is shown is whole
        return 1
