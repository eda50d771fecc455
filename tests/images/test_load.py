"""Laws of the loader: upright pixels, or one reason."""

from __future__ import annotations

import gc
import importlib
import inspect
import io
import os
import pkgutil
import stat
import struct
import sys
import threading
import tracemalloc
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image

from lookalike.errors import ImageError, InputError
from lookalike.images import guard
from lookalike.images.formats import FORMATS
from lookalike.images.load import MAX_PIXELS, REASONS, load

from .pictures import UPRIGHT, encoded, exif, heif, png, psd, stored

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="pipes and descriptors of POSIX")


def reason(source: object, **options: object) -> str:
    with pytest.raises(ImageError) as caught:
        load(source, **options)  # type: ignore[arg-type]
    assert caught.value.reason in REASONS
    return caught.value.reason


def gradient(width: int = 240, height: int = 320) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x + y) * 255 // (width + height)], axis=-1)
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_every_orientation_comes_out_upright(kind: str, orientation: int) -> None:
    im = Image.fromarray(stored(UPRIGHT, orientation))
    options = {"lossless": True} if kind == "WEBP" else {}
    picture = load(encoded(im, kind, exif=exif(orientation), **options))
    np.testing.assert_array_equal(picture.pixels, UPRIGHT)
    assert picture.size == (3, 2)
    assert picture.notes == (() if orientation == 1 else (f"EXIF orientation {orientation} applied",))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("short_side", [None, 30])
def test_every_orientation_of_a_jpeg_comes_out_upright_at_any_scale(orientation: int, short_side: int | None) -> None:
    big = np.repeat(np.repeat(UPRIGHT, 64, axis=0), 64, axis=1)
    data = encoded(Image.fromarray(stored(big, orientation)), "JPEG", exif=exif(orientation), quality=95, subsampling=0)
    picture = load(data, short_side=short_side)
    assert picture.size == (192, 128)
    assert picture.pixels.shape == ((128, 192, 3) if short_side is None else (32, 48, 3))
    step = picture.pixels.shape[0] // 2
    centres = picture.pixels[step // 2 :: step, step // 2 :: step]
    assert np.abs(centres.astype(int) - UPRIGHT).max() <= 6


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["HEIF", "AVIF"])
def test_a_turned_phone_picture_is_turned_once(kind: str, orientation: int) -> None:
    """HEIF and AVIF turn by properties of the container; the EXIF orientation beside them is not applied again."""
    big = np.repeat(np.repeat(UPRIGHT, 64, axis=0), 64, axis=1)
    im = Image.fromarray(stored(big, orientation))
    block = exif(orientation).tobytes()
    data = heif(im, exif=block, quality=95) if kind == "HEIF" else encoded(im, kind, exif=block, quality=95)
    assert orientation in {1, 2, 4} or b"irot" in data
    picture = load(data)
    assert picture.size == (192, 128)
    assert np.abs(picture.pixels[32::64, 32::64].astype(int) - UPRIGHT).max() <= 6


def test_a_damaged_exif_block_is_noted() -> None:
    picture = load(encoded(Image.fromarray(UPRIGHT), "PNG", exif=b"garbage here"))
    np.testing.assert_array_equal(picture.pixels, UPRIGHT)
    assert picture.notes == ("EXIF block unreadable, ignored",)


@pytest.mark.parametrize(
    ("kind", "count", "value"),
    [
        (3, 1, b"\0\0"),
        (3, 1, b"\x09\0"),
        (2, 4, b"six\0"),
        (7, 1, b"\6"),
        (11, 1, b"\0\0\xc0\x40"),
    ],
)
def test_an_orientation_that_is_no_number_of_the_table_is_ignored(kind: int, count: int, value: bytes) -> None:
    block = b"II*\0\x08\0\0\0\1\0" + struct.pack("<HHI", 0x0112, kind, count) + value.ljust(4, b"\0") + bytes(4)
    picture = load(encoded(Image.fromarray(UPRIGHT), "PNG", exif=block))
    np.testing.assert_array_equal(picture.pixels, UPRIGHT)


def test_a_damaged_exif_block_costs_nothing_but_the_orientation() -> None:
    plain = encoded(gradient(), "JPEG")
    for block in (
        b"",
        b"II",
        b"II*\0\xff\xff\xff\xff",
        b"MM\0*\0\0\0\x08\xff\xff" + b"\x01\x12" * 40,
        bytes(range(200, 256)),
    ):
        segment = b"Exif\0\0" + block
        data = plain[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + plain[2:]
        np.testing.assert_array_equal(load(data).pixels, load(plain).pixels)


@pytest.mark.parametrize(
    ("short_side", "shape"),
    [
        (1, (40, 30)),
        (30, (40, 30)),
        (31, (80, 60)),
        (60, (80, 60)),
        (61, (160, 120)),
        (121, (320, 240)),
        (999, (320, 240)),
    ],
)
def test_the_reduced_jpeg_is_the_smallest_whose_short_side_suffices(short_side: int, shape: tuple[int, int]) -> None:
    picture = load(encoded(gradient(), "JPEG"), short_side=short_side)
    assert picture.pixels.shape[:2] == shape
    assert picture.size == (240, 320)


@pytest.mark.parametrize("scale", [2, 4, 8])
def test_a_reduced_decode_is_a_full_decode_resized(scale: int) -> None:
    data = encoded(gradient(), "JPEG", quality=95)
    reduced = load(data, short_side=240 // scale).pixels
    full = Image.fromarray(load(data).pixels).resize((240 // scale, 320 // scale), Image.Resampling.BOX)
    assert np.abs(reduced.astype(int) - np.asarray(full)).max() <= 4


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "TIFF", "BMP"])
def test_only_jpeg_is_reduced(kind: str) -> None:
    assert load(encoded(gradient(), kind), short_side=10).pixels.shape == (320, 240, 3)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_format_gives_the_colours_that_went_in(row: object) -> None:
    name = row.name  # type: ignore[attr-defined]
    im = Image.new("RGB", (64, 64), (200, 100, 50))
    data = {"PSD": lambda: psd(np.asarray(im)), "HEIF": lambda: heif(im)}.get(name, lambda: encoded(im, name))()
    picture = load(data)
    # Pillow writes every size a Mac icon can have, enlarged where it must be
    assert (picture.format, picture.size, picture.frames) == (name, (1024, 1024) if name == "ICNS" else (64, 64), 1)
    assert np.abs(picture.pixels.astype(int) - [200, 100, 50]).max() <= 4
    assert picture.pixels.flags.c_contiguous
    assert picture.pixels.flags.writeable  # torch warns on arrays that are not


@pytest.mark.parametrize("kind", [row.name for row in FORMATS])
def test_half_a_file_is_never_passed_off_as_a_picture(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    im = Image.fromarray(noise)
    data = {"PSD": lambda: psd(noise), "HEIF": lambda: heif(im)}.get(kind, lambda: encoded(im, kind))()
    assert reason(data[: len(data) // 2]) == "truncated"
    if kind != "ICNS":  # whose last picture is not the one shown
        assert reason(data[: len(data) * 9 // 10]) == "truncated"


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF", "MPO", "AVIF"])
def test_an_animation_is_its_first_frame_and_counts_its_frames(kind: str) -> None:
    first, *others = (Image.new("RGB", (40, 30), colour) for colour in ((250, 0, 0), (0, 250, 0), (0, 0, 250)))
    picture = load(encoded(first, kind, save_all=True, append_images=others))
    assert picture.frames == 3
    assert np.abs(picture.pixels.astype(int) - [250, 0, 0]).max() <= 4


def test_a_gif_cut_after_its_first_frame_still_shows_it() -> None:
    frames = [Image.fromarray(np.full((40, 40, 3), level, dtype=np.uint8)) for level in (0, 120, 240)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert load(data[:-20]).pixels.max() == 0


def test_bytes_after_the_end_of_a_picture_change_nothing() -> None:
    for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"):
        data = encoded(gradient(), kind)
        np.testing.assert_array_equal(load(data + bytes(5000)).pixels, load(data).pixels)


def test_a_file_is_what_its_bytes_say_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(encoded(gradient(), "JPEG"))
    assert load(tmp_path / "photo.png").format == "JPEG"
    assert load(str(tmp_path / "photo.png")).format == "JPEG"
    assert load(PathOfBytes(os.fsencode(tmp_path / "photo.png"))).format == "JPEG"


class PathOfBytes:
    def __init__(self, path: bytes) -> None:
        self.path = path

    def __fspath__(self) -> bytes:
        return self.path


def test_every_reason_for_a_path(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_bytes(b"not a picture")
    (tmp_path / "zeros.jpg").write_bytes(bytes(100))
    (tmp_path / "page.jpg").write_bytes(b"%PDF-1.7")
    (tmp_path / "x.jpg").mkdir()
    assert reason(tmp_path / "nowhere.jpg") == "missing"
    assert reason(tmp_path / "text.jpg" / "below.jpg") == "missing"
    assert reason(tmp_path / ("n" * 300)) == "missing"
    assert reason("a\0b.jpg") == "missing"
    assert reason("") == "missing"
    assert reason(tmp_path / "empty.jpg") == "empty"
    assert reason(b"") == "empty"
    assert reason(tmp_path / "text.jpg") == "unknown-format"
    assert reason(tmp_path / "zeros.jpg") == "unknown-format"
    assert reason(tmp_path / "page.jpg") == "unsupported"
    assert reason(tmp_path / "x.jpg") == "unsupported"


@posix_only
def test_a_pipe_is_refused_without_waiting_and_a_loop_of_links_is_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    assert reason(tmp_path / "pipe.jpg") == "unsupported"
    assert reason("/dev/zero") == "unsupported"
    assert reason(tmp_path / "loop.jpg") == "missing"


@posix_only
def test_a_file_the_system_keeps_shut_gives_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shut.jpg"
    path.write_bytes(b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything; let the system refuse all the same

        def refusing(*_: object, **__: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refusing)
    assert reason(path) == "permission"
    path.chmod(stat.S_IRWXU)


def test_an_error_names_the_path_and_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines.jpg"
    path.write_bytes(b"hello world")
    with pytest.raises(ImageError) as caught:
        load(path)
    assert str(caught.value) == f"{str(path)!r}: unknown-format (it begins with b'hello wo')"
    assert "\n" not in str(caught.value)


def test_a_variant_that_no_decoder_here_knows_is_unsupported_and_a_damaged_one_truncated() -> None:
    data = bytearray(encoded(gradient(64, 64), "JPEG"))
    frame = data.index(b"\xff\xc0")
    twelve_bits = bytes(data[: frame + 4]) + b"\x0c" + bytes(data[frame + 5 :])
    assert reason(twelve_bits) == "unsupported"
    bad_sum = bytearray(encoded(gradient(64, 64), "PNG"))
    bad_sum[30] ^= 1  # the checksum of the header
    assert reason(bytes(bad_sum)) == "truncated"
    text = zlib.compress(bytes(3_000_000))  # a text of 3 MB that would be unpacked in passing
    assert reason(png(1, 1, 8, 0, b"\0\0", (b"zTXt", b"Comment\0\0" + text))) == "too-large"


@pytest.mark.parametrize("name", ["short_side", "max_pixels"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}=0: at least 1 pixel"):
        load(b"", **{name: 0})


def test_a_bomb_is_refused_from_its_header() -> None:
    rows = b"".join(b"\0" + bytes(3750) for _ in range(2))  # 30,000 x 30,000 one-bit pixels, most of them missing
    bomb = png(30_000, 30_000, 1, 0, rows)
    with pytest.raises(ImageError, match="30000 x 30000 is 900,000,000 pixels, the limit is 200,000,000") as caught:
        load(bomb)
    assert caught.value.reason == "too-large"


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "ICO", "AVIF"])
def test_the_limit_holds_to_the_pixel_in_every_format(kind: str) -> None:
    data = encoded(Image.new("RGB", (64, 64)), kind)
    assert load(data, max_pixels=4096).size == (64, 64)
    assert reason(data, max_pixels=4095) == "too-large"
    assert reason(data, max_pixels=4095, short_side=8) == "too-large"


@pytest.mark.parametrize("theirs", [None, 1, 10**12])
def test_our_limit_does_not_depend_on_pillows(theirs: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", theirs)
    for kind in ("PNG", "GIF", "WEBP", "TIFF", "ICO"):
        assert load(encoded(Image.new("RGB", (64, 64)), kind)).size == (64, 64)
    bomb = (
        b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0)
    )
    assert reason(bomb + b"\x02\x02\x4c\x01\0;") == "too-large"


def test_the_largest_phone_picture_is_within_the_limit() -> None:
    assert 16_320 * 12_240 <= MAX_PIXELS < 900_000_000


def test_pillow_warns_others_as_before_and_never_us() -> None:
    broken = bytearray(encoded(gradient(64, 64), "TIFF"))
    count_at = int.from_bytes(broken[4:8], "little")
    entries = int.from_bytes(broken[count_at : count_at + 2], "little")
    for i in range(entries):
        at = count_at + 2 + 12 * i
        if int.from_bytes(broken[at : at + 2], "little") == 262:  # two photometric values where one is expected
            continue
        if int.from_bytes(broken[at : at + 2], "little") == 284:
            broken[at + 4 : at + 8] = struct.pack("<I", 2)
    data = bytes(broken)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load(data)
    assert caught == []
    with pytest.warns(UserWarning, match="too many entries"), Image.open(io.BytesIO(data)) as im:
        im.load()


def test_every_pillow_module_that_warns_while_reading_is_known() -> None:
    used = {row.module for row in FORMATS if row.module.startswith("PIL.")}
    used |= {f"PIL.{name}" for name in ("Image", "ImageFile", "ImageOps", "ImagePalette", "MpoImagePlugin", "ImageCms")}
    assert used <= {f"PIL.{module.name}" for module in pkgutil.iter_modules(PIL.__path__)}
    warning = {name for name in used if "warnings.warn(" in inspect.getsource(importlib.import_module(name))}
    assert warning <= set(guard.WARNING_MODULES)


@posix_only
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open descriptors in /proc")
def test_no_file_stays_open(tmp_path: Path) -> None:
    files = []
    for row in FORMATS:
        if row.name in {"PSD", "HEIF"}:
            continue
        moving = row.name in {"GIF", "TIFF", "WEBP"}
        frames = {"save_all": True, "append_images": [gradient(64, 64)]} if moving else {}
        data = encoded(gradient(64, 64), row.name, **frames)
        for name, content in (("whole", data), ("part", data[: len(data) // 3])):
            files.append(tmp_path / f"{name}.{row.name}")
            files[-1].write_bytes(content)
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = []
    for path in files:
        try:
            kept.append(load(path))
        except ImageError as error:
            kept.append(error)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert sum(isinstance(each, ImageError) for each in kept) == len(files) // 2


def test_memory_does_not_grow_with_the_number_of_files() -> None:
    good, bad = encoded(gradient(), "JPEG"), encoded(gradient(), "PNG")[:3000]

    def some(n: int) -> int:
        for _ in range(n):
            load(good)
            assert reason(bad) == "truncated"
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        settled = some(10)
        assert some(60) - settled < 50_000  # one picture is 230,400 bytes
    finally:
        tracemalloc.stop()


def test_threads_read_the_same_pixels_as_one(tmp_path: Path) -> None:
    sources = [
        encoded(gradient(120 + i, 90), kind) for i in range(4) for kind in ("JPEG", "PNG", "WEBP", "GIF", "TIFF")
    ]
    alone = [load(source) for source in sources]
    barrier = threading.Barrier(4)

    def work(_: int) -> list[bool]:
        barrier.wait(timeout=30)
        return [
            bool((load(source).pixels == expected.pixels).all())
            for source, expected in zip(sources, alone, strict=True)
        ]

    with ThreadPoolExecutor(4) as pool:
        for same in pool.map(work, range(4)):
            assert all(same)
