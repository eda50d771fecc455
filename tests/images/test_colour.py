"""Laws of colour: what comes out is what a viewer shows."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from PIL import Image, ImageCms

from lookalike.errors import ImageError
from lookalike.images.colour import to_rgb
from lookalike.images.load import load

from .pictures import (
    UPRIGHT,
    cmyk_profile,
    encoded,
    heif,
    linear_grey_profile,
    png,
    png16,
    swapped_profile,
    without_segment,
)

WHITE = "alpha composited on white"
RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)
COLOURS = np.stack([RAMP, RAMP[::-1], RAMP.T], axis=-1)
APP14, APP2 = 0xEE, 0xE2


def rgba(pixels: np.ndarray, alpha: np.ndarray) -> Image.Image:
    return Image.fromarray(np.dstack([pixels, alpha]))


def test_hidden_colour_under_transparency_changes_nothing() -> None:
    alpha = np.where(RAMP < 128, 0, 255).astype(np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, COLOURS.shape, dtype=np.uint8)
    hidden = np.where(alpha[..., None] == 0, noise, COLOURS)
    for kind, options in (("PNG", {}), ("WEBP", {"lossless": True, "exact": True}), ("TIFF", {})):
        one, other = (load(encoded(rgba(each, alpha), kind, **options)) for each in (COLOURS, hidden))
        np.testing.assert_array_equal(one.pixels, other.pixels)
        assert (one.pixels[alpha == 0] == 255).all()
        np.testing.assert_array_equal(one.pixels[alpha == 255], COLOURS[alpha == 255])
        assert one.notes == (WHITE,)


def test_black_line_art_on_transparency_keeps_its_lines() -> None:
    alpha = np.zeros((20, 20), dtype=np.uint8)
    alpha[5] = 255
    pixels = load(encoded(rgba(np.zeros((20, 20, 3), dtype=np.uint8), alpha), "PNG")).pixels
    assert (pixels[5] == 0).all()
    assert (np.delete(pixels, 5, axis=0) == 255).all()


def test_half_opaque_colour_is_half_way_to_white() -> None:
    pixel = np.array([[[100, 0, 200]]], dtype=np.uint8)
    got = load(encoded(rgba(pixel, np.array([[51]], dtype=np.uint8)), "PNG")).pixels
    assert got.tolist() == [[[224, 204, 244]]]  # 51 / 255 = 0.2: 0.2·100 + 0.8·255 = 224


def test_opaque_alpha_changes_nothing_and_is_not_noted() -> None:
    picture = load(encoded(rgba(COLOURS, np.full((16, 16), 255, dtype=np.uint8)), "PNG"))
    np.testing.assert_array_equal(picture.pixels, COLOURS)
    assert picture.notes == ()


def test_grey_with_alpha_is_composited_on_white() -> None:
    values = np.dstack([np.full((2, 2), 40), [[0, 255], [51, 255]]]).astype(np.uint8)
    im = Image.merge("LA", [Image.fromarray(np.ascontiguousarray(values[..., i])) for i in (0, 1)])
    pixels = load(encoded(im, "PNG")).pixels
    assert pixels[..., 0].tolist() == [[255, 40], [212, 40]]  # 0.2·40 + 0.8·255 = 212


def test_a_palette_with_one_transparent_colour_or_a_table_of_opacities_is_composited_on_white() -> None:
    im = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8)).convert("L")
    im.putpalette([9, 9, 9, 100, 0, 200, 0, 0, 0])
    for kind, transparency in (("PNG", b"\x00\x33\xff"), ("PNG", 0), ("GIF", 0)):
        picture = load(encoded(im, kind, transparency=transparency))
        middle = [224, 204, 244] if isinstance(transparency, bytes) else [100, 0, 200]
        assert picture.pixels.tolist() == [[[255, 255, 255], middle, [0, 0, 0]]]
        assert picture.notes == (WHITE,)


def test_palette_with_an_alpha_channel_is_composited_on_white() -> None:
    """Of the formats here a TIFF of colour type 3 with an extra sample comes out of Pillow as PA."""
    im = Image.new("P", (2, 1))
    im.putpalette([100, 0, 200] * 256)
    with_alpha = im.convert("PA")
    with_alpha.putalpha(Image.fromarray(np.array([[0, 255]], dtype=np.uint8)))
    notes: list[str] = []
    assert np.asarray(to_rgb(with_alpha, bits=8, inverted=False, notes=notes)).tolist() == [
        [[255, 255, 255], [100, 0, 200]]
    ]
    assert notes == [WHITE]


@pytest.mark.parametrize(
    ("mode", "transparency", "expected"),
    [
        ("L", 0, [255, 255]),
        ("L", 255, [0, 255]),
        ("1", 0, [255, 255]),
        ("1", 255, [0, 255]),
        ("RGB", (0, 0, 0), [255, 255]),
    ],
)
def test_a_single_transparent_value_is_white(mode: str, transparency: object, expected: list[int]) -> None:
    im = Image.fromarray(np.array([[0, 255]], dtype=np.uint8)).convert(mode)
    picture = load(encoded(im, "PNG", transparency=transparency))
    assert picture.pixels[0, :, 0].tolist() == expected
    assert picture.notes == (WHITE,)


def test_one_transparent_value_of_a_one_bit_png_is_the_value_the_file_says() -> None:
    bits = b"\0\x40"  # black, white
    for value, expected in ((b"\0\0", [255, 255]), (b"\0\1", [0, 255])):
        assert load(png(2, 1, 1, 0, bits, (b"tRNS", value))).pixels[0, :, 0].tolist() == expected


def test_every_8_bit_level_is_found_again_in_16_bits() -> None:
    deep = RAMP.astype(np.uint16) * 257
    for data in (png16(deep), encoded(Image.fromarray(deep), "TIFF"), encoded(Image.fromarray(deep), "JPEG2000")):
        picture = load(data)
        np.testing.assert_array_equal(picture.pixels, np.dstack([RAMP] * 3))
        assert picture.notes == ("16-bit scaled by 257",)


def test_deep_grey_between_two_levels_goes_to_the_nearer() -> None:
    values = np.array([[0, 128, 129, 65406, 65407, 65535]], dtype=np.uint16)  # 257 / 2 = 128.5
    assert load(png16(values)).pixels[0, :, 0].tolist() == [0, 0, 1, 254, 255, 255]


def test_16_bit_colour_is_within_one_level_of_its_8_bit_twin() -> None:
    rng = np.random.default_rng(0)
    deep = rng.integers(0, 65536, (16, 16, 3), dtype=np.uint16)
    exact = deep / 257
    assert np.abs(load(png16(deep)).pixels - exact).max() <= 1
    solid = np.dstack([deep, np.full((16, 16), 65535, dtype=np.uint16)])
    assert np.abs(load(png16(solid)).pixels - exact).max() <= 1


def test_16_bit_pgm_and_big_endian_tiff_are_scaled_by_257() -> None:
    deep = RAMP.astype(np.uint16) * 257
    pgm = b"P5 16 16 65535\n" + deep.astype(">u2").tobytes()
    np.testing.assert_array_equal(load(pgm).pixels[..., 0], RAMP)
    tiff = encoded(Image.frombytes("I;16B", (16, 16), deep.astype(">u2").tobytes()), "TIFF")
    np.testing.assert_array_equal(load(tiff).pixels[..., 0], RAMP)


def tiff_grey(values: np.ndarray, bits: int, photometric: int) -> bytes:
    """Write a little-endian TIFF of one row by hand; 12-bit samples are packed two into three bytes."""
    row = values.astype("<u2").tobytes()
    if bits == 12:
        joined = [(int(a) << 12) | int(b) for a, b in values.reshape(-1, 2)]
        row = b"".join(pair.to_bytes(3, "big") for pair in joined)
    tags = [(256, 4, values.size), (257, 4, 1), (258, 3, bits), (259, 3, 1), (262, 3, photometric)]
    tags += [(273, 4, 8), (277, 3, 1), (278, 4, 1), (279, 4, len(row))]
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, kind, 1, v) for tag, kind, v in tags)
    return b"II*\0" + struct.pack("<I", 8 + len(row)) + row + directory + bytes(4)


def test_12_bit_tiff_is_scaled_by_its_own_white() -> None:
    picture = load(tiff_grey(np.array([0, 2048, 4095, 4095]), 12, 1))
    assert picture.pixels[0, :, 0].tolist() == [0, 128, 255, 255]  # 2048 / 4095 · 255 = 127.53
    assert picture.notes == ("12-bit scaled to 8-bit",)


def test_a_16_bit_tiff_in_which_zero_is_white_is_not_a_negative() -> None:
    values = np.array([0, 257 * 55, 65535])
    assert load(tiff_grey(values, 16, 0)).pixels[0, :, 0].tolist() == [255, 200, 0]
    assert load(tiff_grey(values, 16, 1)).pixels[0, :, 0].tolist() == [0, 55, 255]


def test_the_transparent_value_of_16_bit_pictures_is_white() -> None:
    grey = np.array([[1000, 2000]], dtype=np.uint16)
    assert load(png16(grey, (b"tRNS", (1000).to_bytes(2, "big")))).pixels[0, :, 0].tolist() == [255, 8]
    colour = np.array([[[1000, 2000, 3000], [0, 0, 0]]], dtype=np.uint16)
    key = b"".join(value.to_bytes(2, "big") for value in (1000, 2000, 3000))
    assert load(png16(colour, (b"tRNS", key))).pixels.tolist() == [[[255, 255, 255], [0, 0, 0]]]


def test_floats_from_0_to_1_are_grey_and_others_are_refused() -> None:
    unit = np.array([[0.0, 0.2, 1.0]], dtype=np.float32)
    assert load(encoded(Image.fromarray(unit), "TIFF")).pixels[0, :, 0].tolist() == [0, 51, 255]
    for values in (unit * 300, np.array([[np.nan]], dtype=np.float32), np.array([[5, 70000]], dtype=np.int32)):
        with pytest.raises(ImageError, match=r"unsupported \(TIFF: .* no agreed white\)"):
            load(encoded(Image.fromarray(values), "TIFF"))


def test_grey_one_bit_and_palette_have_three_equal_or_looked_up_channels() -> None:
    np.testing.assert_array_equal(load(encoded(Image.fromarray(RAMP), "PNG")).pixels, np.dstack([RAMP] * 3))
    bits = Image.fromarray(RAMP).point(lambda level: 255 if level > 99 else 0).convert("1")
    np.testing.assert_array_equal(load(encoded(bits, "PNG")).pixels[..., 0], np.where(RAMP > 99, 255, 0))
    palette = Image.fromarray(UPRIGHT).quantize(6)
    np.testing.assert_array_equal(load(encoded(palette, "PNG")).pixels, UPRIGHT)


INKS = (51, 0, 255, 102)  # cyan, magenta, yellow, black: (255-c)·(255-k)/255 = 122, 153, 0
MIXED = [122, 153, 0]


def test_cmyk_is_mixed_the_same_with_adobes_inverted_inks_and_without_a_marker() -> None:
    """An Adobe marker means that inks are stored inverted; without it they are stored as they are."""
    adobe = encoded(Image.new("CMYK", (32, 32), INKS), "JPEG", quality=100)
    assert np.abs(load(adobe).pixels[0, 0].astype(int) - MIXED).max() <= 3
    plain = without_segment(encoded(Image.new("CMYK", (32, 32), tuple(255 - ink for ink in INKS)), "JPEG"), APP14)
    assert b"Adobe" in adobe
    assert b"Adobe" not in plain
    assert np.abs(load(plain).pixels[0, 0].astype(int) - MIXED).max() <= 3
    for data in (adobe, plain):
        assert load(data).notes == ("CMYK without profile shown by plain ink mixing",)


def test_ycck_is_turned_into_inks_first() -> None:
    """In YCCK (Adobe marker, transform 2) the first three channels are cyan, magenta, yellow taken as RGB, in YCbCr."""
    y, cb, cr = (int(value) for value in np.asarray(Image.new("RGB", (1, 1), INKS[:3]).convert("YCbCr"))[0, 0])
    inverted = Image.new("CMYK", (32, 32), (255 - y, 255 - cb, 255 - cr, INKS[3]))  # Pillow stores 255 - ink
    data = encoded(inverted, "JPEG", quality=100)
    at = data.index(b"Adobe") + 11
    ycck = data[:at] + b"\2" + data[at + 1 :]
    assert np.abs(load(ycck).pixels[0, 0].astype(int) - MIXED).max() <= 4


def test_cmyk_tiff_is_stored_as_inks() -> None:
    got = load(encoded(Image.new("CMYK", (4, 4), INKS), "TIFF")).pixels[0, 0]
    assert np.abs(got.astype(int) - MIXED).max() <= 1


def test_cmyk_goes_through_its_profile() -> None:
    data = encoded(Image.new("CMYK", (16, 16), (255, 255, 255, 0)), "JPEG", quality=100, icc_profile=cmyk_profile())
    picture = load(data)
    assert picture.pixels.min() >= 250  # this profile's coloured inks do nothing; plain mixing would give black
    assert picture.notes == ("colour profile converted to sRGB",)
    black = encoded(Image.new("CMYK", (16, 16), (0, 0, 0, 255)), "TIFF", icc_profile=cmyk_profile())
    assert load(black).pixels.max() <= 3


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "AVIF", "HEIF"])
def test_rgb_goes_through_a_profile_that_is_not_srgb(kind: str) -> None:
    options = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    im = Image.new("RGB", (64, 64), (255, 0, 0))
    im.info["icc_profile"] = swapped_profile()
    data = heif(im) if kind == "HEIF" else encoded(im, kind, icc_profile=swapped_profile(), **options)
    picture = load(data)
    assert np.abs(picture.pixels.astype(int) - [0, 255, 0]).max() <= 3
    assert picture.notes == ("colour profile converted to sRGB",)


def test_transparency_survives_a_profile() -> None:
    im = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    im.putpixel((0, 0), (7, 7, 7, 0))
    pixels = load(encoded(im, "PNG", icc_profile=swapped_profile())).pixels
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert np.abs(pixels[0, 1].astype(int) - [0, 255, 0]).max() <= 2


def test_grey_goes_through_its_profile() -> None:
    data = encoded(Image.new("L", (4, 4), 128), "PNG", icc_profile=linear_grey_profile())
    # half the light: 1.055 · 0.502^(1/2.4) − 0.055 = 0.737, times 255 = 188
    assert np.abs(load(data).pixels.astype(int) - 188).max() <= 1


def test_an_srgb_profile_changes_nothing() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    picture = load(encoded(Image.fromarray(COLOURS), "PNG", icc_profile=srgb))
    np.testing.assert_array_equal(picture.pixels, COLOURS)
    assert picture.notes == ()


def test_a_broken_profile_or_one_for_other_pixels_is_ignored() -> None:
    broken = swapped_profile()[:200]
    picture = load(encoded(Image.fromarray(COLOURS), "PNG", icc_profile=broken))
    np.testing.assert_array_equal(picture.pixels, COLOURS)
    assert picture.notes == ("colour profile unreadable, ignored",)
    for profile in (b"x", linear_grey_profile()):
        picture = load(encoded(Image.fromarray(COLOURS), "PNG", icc_profile=profile))
        np.testing.assert_array_equal(picture.pixels, COLOURS)
        assert picture.notes == ()


def test_lab_tiff_is_converted() -> None:
    im = Image.new("LAB", (4, 4), (255, 128, 128))
    data = encoded(im, "TIFF")
    assert load(data).pixels.min() >= 250
