"""Laws of the scanner: every picture once, in one order, and everything else counted."""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from pathlib import Path

import pytest

from lookalike.errors import InputError, NotFoundError
from lookalike.images.load import load
from lookalike.images.scan import scan

PIXEL = b"P6 1 1 255 abc"
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and odd names of POSIX")
not_root = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")


def put(root: Path, *names: str, content: bytes = PIXEL) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def paths(root: Path) -> list[str]:
    return [file.path for file in scan(root).files]


def test_pictures_come_sorted_by_relative_path_with_slashes(tmp_path: Path) -> None:
    put(tmp_path, "b/2.png", "b/10.png", "a.jpg", "b.jpg", "b/c/1.webp")
    assert paths(tmp_path) == ["a.jpg", "b.jpg", "b/10.png", "b/2.png", "b/c/1.webp"]


def test_size_and_time_of_change_travel_with_the_path(tmp_path: Path) -> None:
    put(tmp_path, "a.ppm")
    os.utime(tmp_path / "a.ppm", ns=(1, 1_700_000_000_123_456_789))
    (file,) = scan(tmp_path).files
    assert (file.size, file.mtime_ns) == (14, 1_700_000_000_123_456_789)
    assert file.absolute == str(tmp_path / "a.ppm")


def test_the_extension_counts_in_any_case_and_a_missing_one_is_looked_up_in_the_bytes(tmp_path: Path) -> None:
    put(tmp_path, "UPPER.JPG", "none", "odd.xyz", "v1.2_final")
    put(tmp_path, "text", "notes.xyz", content=b"just text")
    put(tmp_path, "raw.nef", content=b"II*\0")
    result = scan(tmp_path)
    assert [file.path for file in result.files] == ["UPPER.JPG", "none", "odd.xyz", "v1.2_final"]
    assert result.skipped == {"(no extension)": 1, ".nef": 1, ".xyz": 1}


def test_hidden_files_sidecars_and_system_folders_are_counted_not_listed(tmp_path: Path) -> None:
    put(tmp_path, "a.jpg", "._a.jpg", ".hidden.png", ".git/b.jpg", "__MACOSX/c.jpg", "Thumbs.db")
    result = scan(tmp_path)
    assert [file.path for file in result.files] == ["a.jpg"]
    assert result.skipped == {"(hidden folder)": 2, "(hidden)": 2, ".db": 1}


def test_a_hidden_root_is_scanned_when_it_is_named(tmp_path: Path) -> None:
    put(tmp_path, ".cache/a.jpg")
    assert paths(tmp_path / ".cache") == ["a.jpg"]


def test_a_folder_named_like_a_picture_is_a_folder(tmp_path: Path) -> None:
    put(tmp_path, "x.jpg/inside.png")
    assert paths(tmp_path) == ["x.jpg/inside.png"]


def test_bad_contents_do_not_hide_a_picture_by_name(tmp_path: Path) -> None:
    put(tmp_path, "empty.jpg", content=b"")
    put(tmp_path, "text.jpg", content=b"text")
    assert paths(tmp_path) == ["empty.jpg", "text.jpg"]


@posix_only
@pytest.mark.parametrize(
    "name",
    ["кот.jpg", "猫.jpg", "🐈.jpg", 'it\'s "one".jpg', "two\nlines.jpg", "-rf.jpg", " lead.jpg", "a\\b.jpg", "%41.jpg"],
)
def test_a_picture_of_any_name_is_listed_and_read(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    (file,) = scan(tmp_path).files
    assert file.path == name
    assert load(file.absolute).pixels.tolist() == [[[97, 98, 99]]]


@posix_only
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS refuses names that are not UTF-8")
def test_a_name_that_is_not_utf_8_is_listed_read_and_named_in_errors(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.ppm"))).write_bytes(PIXEL)
    (file,) = scan(tmp_path).files
    assert os.fsencode(file.path) == b"caf\xe9.ppm"
    assert load(file.absolute).size == (1, 1)
    Path(file.absolute).write_bytes(b"")
    with pytest.raises(ValueError, match=r"caf\\udce9\.ppm.*empty") as caught:
        load(file.absolute)
    str(caught.value).encode("utf-8")  # can be printed


@posix_only
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS normalises names")
def test_two_names_that_differ_only_in_unicode_normalisation_are_two_pictures(tmp_path: Path) -> None:
    names = [unicodedata.normalize(form, "é.jpg") for form in ("NFC", "NFD")]
    put(tmp_path, *names)
    assert sorted(paths(tmp_path)) == sorted(names)


@posix_only
def test_loops_of_links_end(tmp_path: Path) -> None:
    put(tmp_path, "a/b/1.jpg")
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "a/self").symlink_to("self")
    (tmp_path / "a/here").symlink_to(".")
    (tmp_path / "x.jpg").symlink_to("y.jpg")
    (tmp_path / "y.jpg").symlink_to("x.jpg")
    result = scan(tmp_path)
    assert [file.path for file in result.files] == ["a/b/1.jpg"]
    assert [(failure.path, failure.reason) for failure in result.failed] == [("x.jpg", "missing"), ("y.jpg", "missing")]
    assert result.skipped == {"(link to what is listed)": 2, "(no extension)": 1}


@posix_only
def test_what_links_point_to_is_listed_once_and_what_is_really_there_keeps_its_name(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    put(root, "real.jpg")
    put(outside, "deep/1.jpg", "2.jpg")
    (root / "a_link.jpg").symlink_to(root / "real.jpg")
    (root / "b").symlink_to(outside)
    (root / "c").symlink_to(outside / "deep")
    (root / "d.jpg").symlink_to(outside / "2.jpg")
    result = scan(root)
    # d.jpg is reached in the same round as b, later in the order; c points into b
    assert [file.path for file in result.files] == ["b/2.jpg", "b/deep/1.jpg", "real.jpg"]
    assert result.skipped == {"(link to what is listed)": 3}
    assert [file.path for file in scan(root, follow_links=False).files] == ["real.jpg"]
    assert scan(root, follow_links=False).skipped == {"(link)": 4}


@posix_only
def test_two_hard_links_are_two_files(tmp_path: Path) -> None:
    put(tmp_path, "a.jpg")
    (tmp_path / "b.jpg").hardlink_to(tmp_path / "a.jpg")
    assert paths(tmp_path) == ["a.jpg", "b.jpg"]


@posix_only
def test_a_dangling_link_is_a_failure_only_where_its_name_is_a_pictures(tmp_path: Path) -> None:
    (tmp_path / "gone.jpg").symlink_to("nowhere.jpg")
    (tmp_path / "gone.txt").symlink_to("nowhere.txt")
    result = scan(tmp_path)
    assert [(failure.path, failure.reason) for failure in result.failed] == [("gone.jpg", "missing")]
    assert result.skipped == {".txt": 1}


@posix_only
def test_a_pipe_is_neither_waited_for_nor_listed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    os.mkfifo(tmp_path / "pipe")
    result = scan(tmp_path)
    assert result.files == ()
    assert [(failure.path, failure.reason) for failure in result.failed] == [("pipe.jpg", "unsupported")]


@posix_only
@not_root
def test_a_folder_that_may_not_be_listed_is_named_and_the_rest_is_listed(tmp_path: Path) -> None:
    put(tmp_path, "open/1.jpg", "shut/2.jpg")
    (tmp_path / "shut").chmod(0)
    try:
        result = scan(tmp_path)
        with pytest.raises(InputError, match="may not be listed"):
            scan(tmp_path / "shut")
    finally:
        (tmp_path / "shut").chmod(stat.S_IRWXU)
    assert [file.path for file in result.files] == ["open/1.jpg"]
    assert [(failure.path, failure.reason) for failure in result.failed] == [("shut", "permission")]


@posix_only
def test_a_folder_that_the_system_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "open/1.jpg", "shut/2.jpg")
    real = os.scandir

    def refusing(path: str) -> object:  # root, who runs many a test, may list everything
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    result = scan(tmp_path)
    assert [file.path for file in result.files] == ["open/1.jpg"]
    assert result.failed == (("shut", "permission", "Permission denied"),)


def test_a_file_as_root_is_its_only_picture_whatever_its_name(tmp_path: Path) -> None:
    put(tmp_path, "notes.txt")
    (file,) = scan(tmp_path / "notes.txt").files
    assert (file.path, file.absolute) == ("notes.txt", str(tmp_path / "notes.txt"))


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    result = scan(tmp_path)
    assert (result.files, result.skipped, result.failed) == ((), {}, ())


@pytest.mark.parametrize("name", ["nowhere", "a\0b"])
def test_a_missing_root_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="There is no file or folder"):
        scan(tmp_path / name)


def test_the_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(NotFoundError, match="empty"):
        scan("")


@posix_only
def test_a_pipe_as_root_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a folder nor a file"):
        scan(tmp_path / "pipe")


def test_ten_thousand_files_are_listed_with_a_call_or_two_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in range(20):
        put(tmp_path, *(f"{folder}/{i}.jpg" for i in range(20)), content=b"")
    calls = {"open": 0, "stat": 0}
    for name in calls:
        real = getattr(os, name)

        def counting(*args: object, _real: object = real, _name: str = name, **options: object) -> object:
            calls[_name] += 1
            return _real(*args, **options)  # type: ignore[operator]

        monkeypatch.setattr(os, name, counting)
    assert len(scan(tmp_path).files) == 400
    assert calls == {"open": 0, "stat": 22}  # one look at a folder, none into a file with a known extension
