"""A folder to the list of its pictures, in one order on every machine.

Pictures are the files with a known extension, and those with none or an unknown one whose first bytes are a picture's.
Hidden files and folders (also macOS's `._` sidecars) are passed over, everything passed over is counted, and a folder
named like a picture is a folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lookalike.errors import InputError, NotFoundError
from lookalike.images.formats import EXTENSIONS, PREFIX, sniff
from lookalike.images.load import Failure, not_opened

_OTHERS = (
    "ai arw avi bak bin bz2 c cfg cpp cr2 cr3 css csv db dng doc docx eps exe gz h h5 html ini ipynb jar js json jsonl "
    "lock log m4a mat md mkv mov mp3 mp4 mpg nef npy npz onnx orf parquet pdf pef pkl ppt pptx pt pth py pyc raf rar "
    "raw rst rw2 safetensors sh so sqlite srw svg tar tgz tmp toml ts tsv txt wav webm xls xlsx xml xmp xz yaml yml "
    "zip zst"
)
NOT_PICTURES = frozenset(f".{name}" for name in _OTHERS.split(" "))
"""Not opened to look whether they are pictures; camera raw files would pass for TIFF and show their thumbnail."""

HIDDEN, HIDDEN_FOLDER, NO_EXTENSION, SEEN = "(hidden)", "(hidden folder)", "(no extension)", "(link to what is listed)"
_SYSTEM_FOLDERS = frozenset({"__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information"})


class ScannedFile(NamedTuple):
    """One picture by name: `path` is relative to the root, with `/`; `size` is in bytes."""

    path: str
    absolute: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Scan:
    """What a folder holds: pictures sorted by path, files passed over by extension, what could not be looked at."""

    root: str
    files: tuple[ScannedFile, ...]
    skipped: Mapping[str, int]
    failed: tuple[Failure, ...]


def scan(
    root: str | os.PathLike[str] | os.PathLike[bytes],
    *,
    follow_links: bool = True,
    leave_out: str | os.PathLike[str] | None = None,
) -> Scan:
    """List the pictures at or below `root`, sorted by relative path.

    A `root` that is a file is its only picture, whatever its name. Names are kept as they are, byte for byte: those
    that are not UTF-8 as Python's surrogates, and two that differ in Unicode normalisation only as two.

    The folder `leave_out`, where it lies below, is not looked into, and nothing in it is counted.

    The surprise: links are followed after everything that is really there, and only to what is not listed already, so
    that loops end and no file is listed twice by way of a link. Two hard links are two files.

    Raises:
        NotFoundError: there is no such path.
        InputError: neither a folder nor a file, or a folder that may not be listed.
    """
    name = os.fsdecode(root)
    top = os.path.abspath(name)  # noqa: PTH100 - resolve() would follow links
    try:
        info = os.stat(top)  # noqa: PTH116 - Path() is slower and adds nothing here
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise InputError(f"{name!r} cannot be looked at: {error.strerror}.") from error
        raise NotFoundError(f"There is no file or folder {name!r}.") from error
    if not name:
        raise NotFoundError("The path of the folder is empty.")
    if stat.S_ISREG(info.st_mode):
        only = ScannedFile(os.path.basename(top), top, info.st_size, info.st_mtime_ns)  # noqa: PTH119
        return Scan(top, (only,), {}, ())
    if not stat.S_ISDIR(info.st_mode):
        raise InputError(f"{name!r} is neither a folder nor a file.")
    if not os.access(top, os.R_OK | os.X_OK):
        raise InputError(f"The folder {name!r} may not be listed.", hint="Grant read and search permission on it.")
    walk = _Walk(top, follow_links)
    if leave_out is not None:
        with contextlib.suppress(OSError):  # not there: nothing to leave out
            own = os.stat(leave_out)  # noqa: PTH116
            walk.folders.add((own.st_dev, own.st_ino))
    walk.all()
    return Scan(top, tuple(sorted(walk.files)), dict(sorted(walk.skipped.items())), tuple(sorted(walk.failed)))


@dataclass
class _Walk:
    """The state of one scan; `links` wait until everything that is really there has been listed."""

    root: str
    follow_links: bool
    files: list[ScannedFile] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    failed: list[Failure] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    folders: set[tuple[int, int]] = field(default_factory=set)
    inodes: set[tuple[int, int]] = field(default_factory=set)

    def all(self) -> None:
        self.tree("", self.root)
        while self.links:
            # shortest way first, so that a file behind several links gets the same path on every machine
            waiting, self.links = sorted(self.links, key=lambda link: (link[0].count("/"), link[0])), []
            for path, absolute in waiting:
                self.link(path, absolute)

    def tree(self, path: str, absolute: str) -> None:
        """List a folder and all that is really below it."""
        stack = [(path, absolute)]
        while stack:
            path, absolute = stack.pop()
            try:
                info = os.stat(absolute)  # noqa: PTH116
                key = (info.st_dev, info.st_ino)
                if key in self.folders:
                    continue
                self.folders.add(key)
                with os.scandir(absolute) as found:
                    entries = list(found)
            except OSError as error:
                self.fail(path, error)
                continue
            for entry in entries:
                below = f"{path}/{entry.name}" if path else entry.name
                if entry.name.startswith(".") or entry.name in _SYSTEM_FOLDERS:
                    self.skipped[HIDDEN_FOLDER if entry.is_dir(follow_symlinks=False) else HIDDEN] += 1
                elif entry.is_symlink():
                    self.links.append((below, entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    stack.append((below, entry.path))
                else:
                    self.file(below, entry.path, entry)

    def link(self, path: str, absolute: str) -> None:
        """Follow one link to a file or a folder that is not listed yet."""
        if not self.follow_links:
            self.skipped["(link)"] += 1
            return
        try:
            info = os.stat(absolute)  # noqa: PTH116
        except OSError as error:
            if _extension(path) in EXTENSIONS:
                self.fail(path, error)
            else:
                self.skipped[_extension(path) or NO_EXTENSION] += 1
            return
        key = (info.st_dev, info.st_ino)
        if key in self.folders or key in self.inodes:
            self.skipped[SEEN] += 1
        elif stat.S_ISDIR(info.st_mode):
            self.tree(path, absolute)
        else:
            self.file(path, absolute, info)

    def file(self, path: str, absolute: str, entry: os.DirEntry[str] | os.stat_result) -> None:
        extension = _extension(path)
        if extension not in EXTENSIONS and (extension in NOT_PICTURES or not _looks_like_a_picture(absolute)):
            self.skipped[extension or NO_EXTENSION] += 1
            return
        try:
            info = entry if isinstance(entry, os.stat_result) else entry.stat(follow_symlinks=False)
        except OSError as error:
            self.fail(path, error)
            return
        if not stat.S_ISREG(info.st_mode):
            self.failed.append(Failure(path, "unsupported", "a pipe, socket or device, not a file"))
            return
        self.inodes.add((info.st_dev, info.st_ino))
        self.files.append(ScannedFile(path, absolute, info.st_size, info.st_mtime_ns))

    def fail(self, path: str, error: OSError) -> None:
        why = not_opened(path, error)
        self.failed.append(Failure(path, why.reason, why.detail))


def _extension(path: str) -> str:
    return os.path.splitext(path)[1].lower()  # noqa: PTH122 - Path() would cost half the time of a scan


def _looks_like_a_picture(absolute: str) -> bool:
    """Recognise a picture by its first bytes; a file that may not be opened is none."""
    try:
        descriptor = os.open(absolute, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and sniff(os.read(descriptor, PREFIX)) is not None
    except OSError:
        return False
    finally:
        os.close(descriptor)
