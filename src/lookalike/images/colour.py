"""Any Pillow mode to the 8-bit RGB a viewer shows.

Embedded colour profiles are honoured, as viewers do: a picture with a profile other than sRGB is converted to sRGB
(Display P3 from phones, Adobe RGB, print CMYK, dot-gain grey); one without a profile is taken as sRGB, and one whose
profile is sRGB within two levels is left alone, which costs nothing. PNG gAMA and cHRM chunks are not applied.
"""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

_PROFILE_SPACES = {"RGB": b"RGB ", "L": b"GRAY", "CMYK": b"CMYK"}
_NO_CACHE = 0x0040  # lcms2 cmsFLAGS_NOCACHE: no pixel cache, so that threads may share one transform
_SAME = 2  # levels of 255 by which implementations of sRGB differ from one another
_BROKEN_PROFILE = (OSError, ValueError, TypeError)


class UnsupportedPixelsError(ValueError):
    """The pixels were decoded, but nothing says which colours they are."""


def to_rgb(im: Image.Image, *, bits: int, inverted: bool, notes: list[str]) -> Image.Image:
    """Return `im` as RGB, 8 bits, without transparency; what was done is appended to `notes`.

    `bits` are the bits a grey sample really has (12 or 16 in a mode I;16 picture); `inverted` says that 0 is white.

    Raises:
        UnsupportedPixelsError: 32-bit integers or floats without an agreed white.
    """
    profile = im.info.get("icc_profile")
    if im.mode.startswith("I;16") or im.mode in {"I", "F"}:
        im = _deep_grey(im, bits=bits, inverted=inverted, notes=notes)
    if "transparency" in im.info or im.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or _rgba_palette(im):
        im, alpha = _split_alpha(im)
    else:
        alpha = None
    im = _managed(im, profile, notes)
    if alpha is None or alpha.getextrema()[0] == 255:
        return im
    notes.append("alpha composited on white")
    return Image.composite(im, Image.new("RGB", im.size, (255, 255, 255)), alpha)


def _rgba_palette(im: Image.Image) -> bool:
    return im.mode == "P" and im.palette is not None and im.palette.mode == "RGBA"


def _split_alpha(im: Image.Image) -> tuple[Image.Image, Image.Image]:
    """Return the colour (L or RGB) and the opacity (L) of a picture with any kind of transparency."""
    if im.mode in {"La", "RGBa"}:
        im = im.convert("LA" if im.mode == "La" else "RGBA")
    if im.mode == "1":  # with a transparent value: Pillow compares with 255, the file says 1
        value = 255 if im.info["transparency"] else 0
        grey = im.convert("L")
        return grey, grey.point([0 if level == value else 255 for level in range(256)])
    if im.mode == "LA":
        return im.getchannel("L"), im.getchannel("A")
    rgba = im if im.mode == "RGBA" else im.convert("RGBA")
    return rgba.convert("RGB"), rgba.getchannel("A")


def _deep_grey(im: Image.Image, *, bits: int, inverted: bool, notes: list[str]) -> Image.Image:
    values: npt.NDArray[Any] = np.asarray(im)
    transparent = im.info.get("transparency")
    if im.mode == "F":
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise UnsupportedPixelsError("floating-point pixels outside 0..1 have no agreed white")
        grey = np.rint(values * 255)
        notes.append("floating-point grey 0..1 scaled to 0..255")
    else:
        if im.mode == "I" and bits > 16:
            raise UnsupportedPixelsError("32-bit integer pixels have no agreed white")
        top = (1 << bits) - 1
        grey = np.rint(np.clip(values, 0, top) * (255.0 / top))
        notes.append("16-bit scaled by 257" if bits == 16 else f"{bits}-bit scaled to 8-bit")
    level = grey.astype(np.uint8)
    result = Image.fromarray(255 - level if inverted else level)
    if isinstance(transparent, int):
        alpha = Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8))
        return Image.merge("LA", (result, alpha))
    return result


def _managed(im: Image.Image, profile: bytes | None, notes: list[str]) -> Image.Image:
    """Return RGB, through the embedded profile where it fits the pixels and is not sRGB."""
    if im.mode == "LAB":
        return _lab(im)
    if im.mode in {"1", "P", "YCbCr", "RGBX", "HSV"}:
        im = im.convert("L" if im.mode == "1" else "RGB")
    if im.mode not in _PROFILE_SPACES:
        raise UnsupportedPixelsError(f"pixels of mode {im.mode} are not known")
    if profile and profile[16:20] == _PROFILE_SPACES[im.mode]:
        try:
            transform = _transform(bytes(profile), im.mode)
        except _BROKEN_PROFILE:
            notes.append("colour profile unreadable, ignored")
        else:
            if transform is not None:
                notes.append("colour profile converted to sRGB")
                converted: Image.Image = transform.apply(im)
                return converted
    elif im.mode == "CMYK":
        notes.append("CMYK without profile shown by plain ink mixing")
    return im if im.mode == "RGB" else im.convert("RGB")


@functools.lru_cache(maxsize=32)
def _transform(profile: bytes, mode: str) -> Any:
    """Build the transform to sRGB (milliseconds, therefore kept), or None where it would change next to nothing.

    Whether a profile is sRGB is measured on a lattice of colours: there are dozens of profiles of that name, among
    them linear ones, and many without it.
    """
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        flags = ImageCms.Flags(_NO_CACHE)
        target = ImageCms.createProfile("sRGB")
        transform = ImageCms.buildTransform(source, target, mode, "RGB", ImageCms.Intent.PERCEPTUAL, flags)
    except ImageCms.PyCMSError as error:
        raise ValueError(str(error)) from error
    if mode == "CMYK":
        return transform
    steps = np.arange(0, 256, 15, dtype=np.uint8)
    lattice = steps[None, :] if mode == "L" else np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(1, -1, 3)
    colours = Image.fromarray(lattice)
    before, after = np.asarray(colours.convert("RGB"), dtype=int), np.asarray(transform.apply(colours), dtype=int)
    return transform if np.abs(after - before).max() > _SAME else None


def _lab(im: Image.Image) -> Image.Image:
    from PIL import ImageCms

    transform = ImageCms.buildTransform(
        ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB", flags=ImageCms.Flags(_NO_CACHE)
    )
    converted = transform.apply(im)
    return converted
