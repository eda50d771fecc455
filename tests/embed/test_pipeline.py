"""Files to vectors: in order, none shifted by a failure, the same whatever the batch and the threads."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lookalike.arrays import Rgb
from lookalike.embed import pipeline
from lookalike.embed.builtin import BuiltinEncoder
from lookalike.embed.encoder import Card
from lookalike.embed.pipeline import Progress, embed_all, embed_files, encode_all
from lookalike.errors import ImageError, InputError, InputTypeError, ShapeError, UnknownNameError
from lookalike.images.load import Picture


def grey(level: int, size: tuple[int, int] = (4, 5)) -> np.ndarray:
    return np.full((*size, 3), level, dtype=np.uint8)


def level_and_one(images: Sequence[Rgb]) -> np.ndarray:
    """A vector whose direction tells the picture's level: (level, 1)."""
    return np.array([[float(image[0, 0, 0]), 1.0] for image in images])


def levels(vectors: np.ndarray) -> list[int]:
    return [round(row[0] / row[1]) for row in vectors.astype(np.float64)]


class Staged:
    """The batched, staged protocol, recording the batches it saw and the threads it was called from."""

    card = Card(name="staged", weights="1", dim=2, pooling="none")
    short_side = None

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.prepared_in: set[str] = set()
        self.encoded_in: set[str] = set()

    def prepare(self, image: Rgb) -> np.ndarray:
        self.prepared_in.add(threading.current_thread().name)
        return image[:1, :1]

    def encode_prepared(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        self.encoded_in.add(threading.current_thread().name)
        self.batches.append(len(prepared))
        return level_and_one(prepared).astype(np.float32)

    def encode_images(self, images: Sequence[Rgb]) -> np.ndarray:
        return self.encode_prepared([self.prepare(image) for image in images])


class Concurrent(Staged):
    """One picture a call."""

    def encode_one(self, prepared: np.ndarray) -> np.ndarray:
        return level_and_one([prepared])[0].astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["fine", "broken", "zero"]), max_size=25),
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from([level_and_one, Staged, Concurrent]),
)
def test_a_failure_never_shifts_a_row(kinds: list[str], batch_size: int, threads: int, make: type) -> None:
    def zero_for_black(images: Sequence[Rgb]) -> np.ndarray:
        return level_and_one(images) * [[image.any()] for image in images]

    items = [{"fine": grey(10 + i), "broken": b"no picture", "zero": grey(0)}[kind] for i, kind in enumerate(kinds)]
    encoder = zero_for_black if make is level_and_one else make()
    done = embed_all(items, encoder, batch_size=batch_size, threads=threads)
    is_lost = [kind == "broken" or (kind == "zero" and make is level_and_one) for kind in kinds]
    assert done.positions.tolist() == [i for i, lost in enumerate(is_lost) if not lost]
    assert done.failed.tolist() == [i for i, lost in enumerate(is_lost) if lost]
    expected = [10 + i if kinds[i] == "fine" else 0 for i in done.positions]
    assert levels(done.vectors) == expected
    reasons = {"broken": "unknown-format", "zero": "bad-vector"}
    assert [failure.reason for failure in done.failures] == [reasons[kinds[i]] for i in done.failed]
    assert [failure.path for failure in done.failures] == [f"picture {i}" for i in done.failed]


@pytest.mark.parametrize("make", [Staged, Concurrent])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_vectors_and_order_do_not_depend_on_threads_or_batch(make: type, threads: int, batch_size: int) -> None:
    chunks = list(embed_files([grey(i) for i in range(20)], make(), batch_size=batch_size, threads=threads))
    assert [levels(chunk.vectors) for chunk in chunks] == [
        list(range(start, min(start + batch_size, 20))) for start in range(0, 20, batch_size)
    ]
    assert np.concatenate([chunk.positions for chunk in chunks]).tolist() == list(range(20))


def test_the_built_in_encoder_gives_the_same_bits_at_any_thread_count(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    paths = []
    for number in range(9):
        paths.append(tmp_path / f"{number}.jpg")
        Image.fromarray(generator.integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(paths[-1])
    one = encode_all(paths, batch_size=1, threads=1)
    for batch_size, threads in ((4, 2), (32, 3), (2, 1)):
        np.testing.assert_array_equal(encode_all(paths, batch_size=batch_size, threads=threads), one)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_and_its_exif_rotated_twin_give_the_same_vector(tmp_path: Path, orientation: int) -> None:
    stored_as = {  # how an upright picture lies in a file with this orientation (EXIF 2.32, table 6)
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: a.swapaxes(0, 1)[::-1],
        7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
        8: lambda a: a.swapaxes(0, 1)[:, ::-1],
    }
    upright = np.random.default_rng(5).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(upright).save(tmp_path / "upright.png")
    turned = Image.fromarray(np.ascontiguousarray(stored_as[orientation](upright)))
    turned.save(tmp_path / "turned.png", exif=exif)
    with Image.open(tmp_path / "turned.png") as opened:
        vectors = encode_all([tmp_path / "upright.png", tmp_path / "turned.png", opened, upright], threads=1)
    np.testing.assert_array_equal(vectors, np.repeat(vectors[:1], 4, axis=0))


def test_paths_bytes_arrays_and_pillow_images_are_the_same_picture(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.fromarray(grey(77)).save(buffer, "PNG")
    (tmp_path / "a.png").write_bytes(buffer.getvalue())
    flat = np.full((4, 5), 77, dtype=np.uint8)
    opaque = np.dstack([grey(77), np.full((4, 5), 255, dtype=np.uint8)])
    items = [
        str(tmp_path / "a.png"),
        tmp_path / "a.png",
        buffer.getvalue(),
        grey(77),
        flat,
        opaque,
        Image.fromarray(grey(77)),
        Image.fromarray(flat),
    ]
    assert levels(encode_all(items, level_and_one)) == [77] * 8


def test_one_opened_file_may_stand_in_the_list_many_times(tmp_path: Path) -> None:
    Image.fromarray(grey(60, (300, 300))).save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as opened:
        assert levels(encode_all([opened] * 40, level_and_one, threads=4)) == [60] * 40


def test_a_cut_file_behind_a_pillow_image_is_a_failure(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (50, 50, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:3000])
    with Image.open(tmp_path / "a.png") as opened:
        [failure] = embed_all([opened], level_and_one).failures
    assert (failure.path, failure.reason) == ("picture 0", "truncated")


@pytest.mark.parametrize("side", [700, 1000, 1600, 3100])
def test_a_photograph_decoded_at_reduced_scale_keeps_its_vector(shared: Path, tmp_path: Path, side: int) -> None:
    source = min((shared / "data" / "dreambooth30" / "images").rglob("*.jpg"))
    with Image.open(source) as opened:
        large = np.asarray(opened.convert("RGB").resize((side, side), Image.Resampling.LANCZOS)).astype(np.float64)
    sensor = np.random.default_rng(4).normal(0, 4, (side, side, 1))
    Image.fromarray((large + sensor).clip(0, 255).astype(np.uint8)).save(tmp_path / "large.jpg", quality=90)
    with Image.open(tmp_path / "large.jpg") as opened:
        reduced, full = encode_all([tmp_path / "large.jpg", opened])
    assert reduced @ full > 0.994


def test_hidden_colour_under_transparency_does_not_reach_the_vector() -> None:
    hidden = np.dstack([grey(20), np.zeros((4, 5), dtype=np.uint8)])
    assert levels(encode_all([hidden, Image.fromarray(hidden)], level_and_one)) == [255, 255]


@pytest.mark.parametrize(
    "wrong", [np.zeros((4, 5, 2), np.uint8), np.zeros((4, 5, 3)), np.zeros((0, 5, 3), np.uint8), np.zeros(4, np.uint8)]
)
def test_an_array_that_is_no_picture_is_a_failure_with_its_shape(wrong: np.ndarray) -> None:
    done = embed_all([grey(1), wrong, grey(3)], level_and_one)
    assert levels(done.vectors) == [1, 3]
    [failure] = done.failures
    assert (failure.path, failure.reason) == ("picture 1", "unsupported")
    assert str(wrong.shape) in failure.detail


def test_something_that_is_no_picture_at_all_is_refused() -> None:
    with pytest.raises(InputTypeError, match="not int") as caught:
        encode_all([grey(1), 5], level_and_one)  # type: ignore[list-item]
    assert "while encoding 'picture 1'" in caught.value.__notes__[0]


@pytest.mark.parametrize("one", ["a.jpg", b"\xff\xd8", Path("a.jpg")])
def test_a_single_path_is_not_taken_for_a_list_of_letters(one: object) -> None:
    with pytest.raises(InputTypeError, match=r"Write \[path\]"):
        encode_all(one)  # type: ignore[arg-type]


def test_encode_all_names_what_failed_because_rows_must_stay_aligned(tmp_path: Path) -> None:
    missing = [tmp_path / f"{number}.jpg" for number in range(7)]
    with pytest.raises(
        InputError, match=r"7 of 8 pictures have no vector: .*0\.jpg'?: missing.*; and 2 more"
    ) as caught:
        encode_all([grey(1), *missing], level_and_one)
    assert "embed_all" in caught.value.hint


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e300])
@pytest.mark.parametrize("unit_rows", [True, False])
def test_a_useless_vector_is_reported_by_the_name_of_its_file(tmp_path: Path, value: float, unit_rows: bool) -> None:
    Image.fromarray(grey(0)).save(tmp_path / "black.png")

    def bad_for_black(images: Sequence[Rgb]) -> np.ndarray:
        return np.where([[image.any()] for image in images], level_and_one(images), value)

    encoder = pipeline.resolve_encoder(bad_for_black, normalise=unit_rows)
    done = embed_all([grey(8), tmp_path / "black.png", grey(9)], encoder)
    assert levels(done.vectors) == [8, 9]
    assert [(failure.path, failure.reason) for failure in done.failures] == [
        (str(tmp_path / "black.png"), "bad-vector")
    ]


def test_what_the_loader_says_about_a_picture_comes_with_its_vector(tmp_path: Path) -> None:
    frames = [Image.new("L", (9, 7), level) for level in (50, 60, 70)]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    [chunk] = embed_files([tmp_path / "none.jpg", tmp_path / "moving.gif"], level_and_one)
    [picture] = chunk.pictures
    assert (chunk.positions.tolist(), chunk.failed.tolist()) == ([1], [0])
    assert (picture.size, picture.frames, picture.format) == ((9, 7), 3, "GIF")
    assert picture.pixels.size == 0


def test_a_loader_of_ones_own_may_refuse_and_may_say_more() -> None:
    class Hashed(Picture):
        pass

    def loader(item: object, short_side: int | None) -> Picture:
        if item == "b":
            raise ImageError("b", "missing", "by rule")
        return Hashed(grey(3), (5, 4), 1, "", (f"hash of {item}",))

    [chunk] = embed_files(["a", "b", "c"], level_and_one, loader=loader)
    assert [(type(picture), picture.notes) for picture in chunk.pictures] == [
        (Hashed, ("hash of a",)),
        (Hashed, ("hash of c",)),
    ]
    assert chunk.failures == (("b", "missing", "by rule"),)


def test_progress_ends_at_the_total_and_counts_failures() -> None:
    seen: list[Progress] = []
    items = [grey(1), b"", grey(2), b"", grey(3)]
    list(embed_files(items, level_and_one, batch_size=2, progress=seen.append))
    assert seen == [(2, 5, 1), (4, 5, 2), (5, 5, 2)]
    seen.clear()
    list(embed_files(iter(items), level_and_one, batch_size=4, progress=seen.append))
    assert seen == [(4, None, 2), (5, None, 2)]


@pytest.mark.parametrize("make", [lambda: level_and_one, Staged, Concurrent])
def test_memory_does_not_grow_with_the_number_of_pictures(make) -> None:
    alive = peak = 0
    lock = threading.Lock()

    def gone() -> None:
        nonlocal alive
        with lock:
            alive -= 1

    def loader(item: object, short_side: int | None) -> Picture:
        nonlocal alive, peak
        pixels = grey(1)
        weakref.finalize(pixels, gone)
        with lock:
            alive += 1
            peak = max(peak, alive)
        return Picture(pixels, (5, 4), 1, "")

    count = sum(len(chunk.vectors) for chunk in embed_files(range(300), make(), batch_size=4, threads=2, loader=loader))
    assert count == 300
    # the batch that is collected and the one before it, what runs ahead (batch_size + threads), one a thread
    assert peak <= 4 + 4 + (4 + 2) + 2


def test_large_pictures_make_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "BATCH_BYTES", 250_000)
    sizes = []

    def note_sizes(images: Sequence[Rgb]) -> np.ndarray:
        sizes.append(sum(image.nbytes for image in images))
        return level_and_one(images)

    items = [grey(i, (200, 200)) for i in range(20)]  # 120,000 B each
    assert levels(encode_all(items, note_sizes, batch_size=16)) == list(range(20))
    assert max(sizes) == 360_000  # the third picture passes the limit and ends the batch


def test_an_encoder_in_batches_runs_in_the_callers_thread_and_prepares_in_others() -> None:
    encoder = Staged()
    list(embed_files([grey(i) for i in range(20)], encoder, batch_size=8, threads=2))
    assert encoder.batches == [8, 8, 4]
    assert encoder.encoded_in == {threading.current_thread().name}
    assert threading.current_thread().name not in encoder.prepared_in


def test_one_thread_does_everything_in_the_callers() -> None:
    encoder = Staged()
    list(embed_files([grey(i) for i in range(5)], encoder, threads=1))
    assert encoder.prepared_in == encoder.encoded_in == {threading.current_thread().name}


def test_decoding_goes_on_while_the_network_runs() -> None:
    started = 0
    during = []

    class Slow(Staged):
        def prepare(self, image: Rgb) -> np.ndarray:
            nonlocal started
            started += 1
            return super().prepare(image)

        def encode_prepared(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
            time.sleep(0.1)
            during.append(started)
            return super().encode_prepared(prepared)

    list(embed_files([grey(i) for i in range(40)], Slow(), batch_size=10, threads=2))
    assert during[0] >= 20  # a whole batch was prepared while the first one was encoded


def test_an_error_of_the_encoder_reaches_the_caller_with_the_files_named_and_no_thread_left() -> None:
    def fails(images: Sequence[Rgb]) -> np.ndarray:
        raise ZeroDivisionError("a bug in the model")

    with pytest.raises(ZeroDivisionError, match="a bug in the model") as caught:
        list(embed_files([grey(1)] * 9, fails, batch_size=4, threads=2))
    assert caught.value.__notes__ == ["while encoding 'picture 0', 'picture 1', 'picture 2' and 1 more"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lookalike-embed")]


def test_rows_of_changing_length_are_refused() -> None:
    def changing(images: Sequence[Rgb]) -> np.ndarray:
        return np.ones((len(images), int(images[0][0, 0, 0])))

    with pytest.raises(ShapeError, match="3 columns, and 2 in the batch before"):
        encode_all([grey(2), grey(3)], changing, batch_size=1)


def test_impossible_settings_are_refused_before_anything_is_read() -> None:
    with pytest.raises(InputError, match="batch_size=0"):
        embed_files([], batch_size=0, encoder=level_and_one)
    with pytest.raises(InputError, match="threads=0"):
        embed_files([], threads=0, encoder=level_and_one)
    with pytest.raises(UnknownNameError, match="builtin:effnet-lite0"):
        embed_files([], "builtin:nothing")


def test_ready_vectors_stand_for_their_pictures_row_by_row() -> None:
    ready = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert encode_all(["a.jpg", "b.jpg"], ready).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ShapeError, match="2 ready vectors for 3 pictures"):
        encode_all(["a.jpg", "b.jpg", "c.jpg"], ready)
    with pytest.raises(InputError, match="cannot encode pictures"):
        embed_files(["a.jpg"], ready)


def test_no_pictures_give_no_rows_of_the_right_width() -> None:
    assert encode_all([], level_and_one).shape == (0, 2)
    assert encode_all([]).shape == (0, 1280)
    assert embed_all([b""], BuiltinEncoder()).vectors.shape == (0, 1280)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_an_endless_run(threads: int) -> None:
    code = (
        "import itertools, numpy as np, sys, threading\n"
        "from lookalike.embed.pipeline import embed_files\n"
        "endless = itertools.repeat(np.zeros((300, 300, 3), np.uint8))\n"
        "try:\n"
        f"    for chunk in embed_files(endless, 'builtin:effnet-lite0', batch_size=4, threads={threads}):\n"
        "        print('chunk', flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    print('left', threading.active_count(), flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "chunk\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)  # not a speed limit: without the stop it would never end
        finally:
            process.kill()
    assert out.splitlines()[-1] == "left 1"
    assert process.returncode == 0
