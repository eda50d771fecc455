"""Every file of the messy collection has one documented outcome."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lookalike.errors import ImageError
from lookalike.images.load import load

WHITE = "alpha composited on white"
DEEP = "16-bit scaled by 257"

# file: full upright (width, height), frames, format, notes
PICTURES = {
    "NO_EXTENSION": ((400, 534), 1, "JPEG", ()),
    "UPPER.JPG": ((400, 534), 1, "JPEG", ()),
    "animated.gif": ((245, 245), 42, "GIF", ()),
    "animated.webp": ((245, 245), 42, "WEBP", ()),
    "cmyk.jpg": ((100, 100), 1, "JPEG", ("CMYK without profile shown by plain ink mixing",)),
    "dup_exact copy.jpg": ((640, 480), 1, "JPEG", ()),
    "dup_original.jpg": ((640, 480), 1, "JPEG", ()),
    "dup_resize.jpg": ((300, 300), 1, "JPEG", ()),
    "exif_bad.jpg": ((500, 500), 1, "JPEG", ()),
    "exif_landscape_orient6.jpg": ((1800, 1200), 1, "JPEG", ("EXIF orientation 6 applied",)),
    "exif_portrait_orient5.jpg": ((1200, 1800), 1, "JPEG", ("EXIF orientation 5 applied",)),
    "exif_typeerror.jpg": ((800, 531), 1, "JPEG", ()),
    "grey16.png": ((400, 534), 1, "PNG", (DEEP,)),
    "grey16.tif": ((64, 64), 1, "TIFF", (DEEP,)),
    "grey_alpha.png": ((400, 534), 1, "PNG", ()),
    "icon.ico": ((16, 16), 1, "ICO", ()),
    "jpeg2000.jp2": ((64, 64), 1, "JPEG2000", (DEEP,)),
    "junk_header.jpg": ((1024, 768), 1, "JPEG", ()),
    "mpo_bad_header.jpg": ((640, 480), 1, "JPEG", ()),
    "multipage.tiff": ((10, 10), 3, "TIFF", ()),
    "one_bit.png": ((400, 534), 1, "PNG", ()),
    "one_pixel.png": ((1, 1), 1, "PNG", ()),
    "orient_exact_1.png": ((400, 534), 1, "PNG", ()),
    "orient_exact_2.png": ((400, 534), 1, "PNG", ("EXIF orientation 2 applied",)),
    "orient_exact_4.png": ((400, 534), 1, "PNG", ("EXIF orientation 4 applied",)),
    "orient_exact_5.png": ((400, 534), 1, "PNG", ("EXIF orientation 5 applied",)),
    "orient_exact_6.png": ((400, 534), 1, "PNG", ("EXIF orientation 6 applied",)),
    "orient_exact_7.png": ((400, 534), 1, "PNG", ("EXIF orientation 7 applied",)),
    "palette.png": ((162, 150), 1, "PNG", (WHITE,)),
    "photo.avif": ((128, 128), 1, "AVIF", ()),
    "photo.heif": ((128, 128), 1, "HEIF", ()),
    "photo.mpo": ((640, 480), 2, "MPO", ()),
    "photo.webp": ((480, 360), 1, "WEBP", ()),
    "really_jpeg.png": ((640, 480), 1, "JPEG", ()),
    "rgb16.tiff": ((100, 40), 1, "TIFF", ()),
    "rgba_transparent.png": ((162, 150), 1, "PNG", (WHITE,)),
    "sliver_4000x3.png": ((4000, 3), 1, "PNG", ()),
    "trailing_garbage.jpg": ((400, 534), 1, "JPEG", ()),
}

REFUSED = {
    "._resource.jpg": ("unknown-format", ""),
    "README.md": ("unknown-format", ""),
    "bomb.gif": ("too-large", "4,364,696,535 pixels, the limit is 200,000,000"),
    "broken.png": ("truncated", ""),
    "photo_corrupt.jpg": ("unknown-format", ""),
    "text_named.jpg": ("unknown-format", "b'this is '"),
    "truncated_half.jpg": ("truncated", ""),
    "zero_byte.jpg": ("empty", "zero bytes"),
}


@pytest.fixture(scope="module")
def messy(shared: Path) -> Path:
    return shared / "data" / "messy"


def test_every_file_of_the_collection_stands_in_a_table(messy: Path) -> None:
    assert {path.name for path in messy.iterdir()} == {*PICTURES, *REFUSED}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_comes_out_upright_in_its_documented_size(messy: Path, name: str) -> None:
    size, frames, kind, notes = PICTURES[name]
    picture = load(messy / name)
    assert (picture.size, picture.frames, picture.format, picture.notes) == (size, frames, kind, notes)
    assert picture.pixels.shape == (size[1], size[0], 3)
    assert picture.pixels.dtype == np.uint8


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_gives_its_documented_reason_and_its_path(messy: Path, name: str) -> None:
    reason, detail = REFUSED[name]
    with pytest.raises(ImageError) as caught:
        load(messy / name)
    assert caught.value.reason == reason
    assert detail in caught.value.detail
    assert caught.value.path == str(messy / name)
    assert repr(name)[1:-1] in str(caught.value)


def test_the_eight_orientations_of_one_picture_have_identical_pixels(messy: Path) -> None:
    upright = load(messy / "orient_exact_1.png").pixels
    for k in (2, 4, 5, 6, 7):
        np.testing.assert_array_equal(load(messy / f"orient_exact_{k}.png").pixels, upright)


def test_a_byte_identical_copy_has_identical_pixels(messy: Path) -> None:
    original = load(messy / "dup_original.jpg").pixels
    np.testing.assert_array_equal(load(messy / "dup_exact copy.jpg").pixels, original)


def test_grey_in_16_bits_looks_like_its_8_bit_twin(messy: Path) -> None:
    deep, twin = load(messy / "grey16.png").pixels, load(messy / "grey_alpha.png").pixels
    assert np.abs(deep.astype(int) - twin).max() <= 1


def test_dark_16_bit_grey_stays_dark_instead_of_clipping_to_white(messy: Path) -> None:
    for name in ("grey16.tif", "jpeg2000.jp2"):  # stored values 291 to 694 of 65535
        pixels = load(messy / name).pixels
        assert (pixels.min(), pixels.max()) == (1, 3)


def test_red_ink_on_black_is_red_on_black(messy: Path) -> None:
    pixels = load(messy / "cmyk.jpg").pixels
    assert pixels[2, 5].tolist() == pytest.approx([254, 0, 0], abs=25)  # the swatch in the corner
    assert pixels[60:, :].max() < 30


def test_transparent_corners_are_white_in_rgba_and_in_palette(messy: Path) -> None:
    for name in ("rgba_transparent.png", "palette.png"):
        assert load(messy / name).pixels[0, 0].tolist() == [255, 255, 255]


def test_a_one_bit_picture_is_black_and_white(messy: Path) -> None:
    assert np.unique(load(messy / "one_bit.png").pixels).tolist() == [0, 255]


def test_the_same_photo_in_heif_and_avif_differs_little(messy: Path) -> None:
    heif, avif = load(messy / "photo.heif").pixels, load(messy / "photo.avif").pixels
    assert np.abs(heif.astype(int) - avif).mean() < 6
