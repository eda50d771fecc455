"""Whatever the bytes: a picture or a reason, never another exception."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lookalike.errors import ImageError
from lookalike.images.formats import FORMATS
from lookalike.images.load import REASONS, load

from .pictures import encoded, exif, heif, psd, swapped_profile

SMALL = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8))
EXIF = {"exif": exif(6)}
SEEDS: dict[str, bytes] = {
    **{
        row.name: encoded(SMALL, row.name, **(EXIF if row.name in {"JPEG", "PNG", "WEBP", "AVIF", "TIFF"} else {}))
        for row in FORMATS
        if row.name not in {"HEIF", "PSD"}
    },
    "HEIF": heif(SMALL),
    "PSD": psd(np.asarray(SMALL)),
    "progressive": encoded(SMALL, "JPEG", progressive=True),
    "four inks": encoded(SMALL.convert("CMYK"), "JPEG"),
    "palette": encoded(SMALL.quantize(8), "PNG", transparency=0),
    "profile": encoded(SMALL, "PNG", icc_profile=swapped_profile()),
    "moving gif": encoded(SMALL, "GIF", save_all=True, append_images=[SMALL.rotate(90)]),
    "moving png": encoded(SMALL, "PNG", save_all=True, append_images=[SMALL.rotate(90)]),
    "two pages": encoded(SMALL, "TIFF", save_all=True, append_images=[SMALL.rotate(90)]),
    "lzw": encoded(SMALL, "TIFF", compression="tiff_lzw"),
    "fax": encoded(SMALL.convert("1"), "TIFF", compression="group4"),
    "multi-picture": encoded(SMALL, "MPO", save_all=True, append_images=[SMALL.rotate(90)]),
}


@pytest.mark.parametrize("seed", SEEDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_damaged_file_is_a_picture_or_a_reason(seed: str, data: st.DataObject) -> None:
    content = bytearray(SEEDS[seed])
    for at in data.draw(st.lists(st.integers(0, min(len(content), 400) - 1), max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    try:
        picture = load(bytes(content), short_side=data.draw(st.sampled_from([None, 8])), max_pixels=1_000_000)
    except ImageError as error:
        assert error.reason in REASONS
        assert "\n" not in str(error)
    else:
        assert picture.pixels.ndim == 3
        assert picture.pixels.shape[2] == 3
        assert picture.pixels.dtype == np.uint8


@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_picture_or_a_reason(content: bytes) -> None:
    with pytest.raises(ImageError):
        load(content)
