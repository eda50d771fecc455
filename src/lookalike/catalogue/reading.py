"""The bytes of files: read once, hashed, and decoded from the very bytes that were hashed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lookalike.catalogue.sources import is_uri, open_uri
from lookalike.embed.ordered import ordered_map
from lookalike.images.load import Failure, Picture, load, not_opened
from lookalike.images.scan import ScannedFile

_HELD_BYTES = 64 << 20
"""A larger file is hashed in pieces and decoded from the disk; between the two it may change, which is checked."""
_PIECE = 1 << 20
_YOUNG_NS = 2_000_000_000
"""A file may change twice within one tick of its file system's clock (2 s on FAT): a younger time proves nothing."""


class Fresh(os.PathLike[str]):
    """A file whose bytes have been read: its hash, and the bytes until they are decoded."""

    def __init__(self, file: ScannedFile, content: bytes, data: bytes | None, mtime_ns: int | None) -> None:
        self.file = file
        self.content = content
        self.data = data
        self.mtime_ns = mtime_ns
        """The time that goes with the bytes; None where it is too young to be relied on."""

    def __fspath__(self) -> str:
        return self.file.absolute

    def release(self) -> None:
        """Let go of the bytes."""
        self.data = None

    def unchanged(self) -> bool:
        """Whether the file still is what was hashed; only in doubt where it was too large to hold."""
        try:
            info = Path(self.file.absolute).stat()
        except OSError:
            return False
        return (info.st_size, info.st_mtime_ns) == (self.file.size, self.file.mtime_ns)


class Reader:
    """Reads and hashes files in several threads, in order."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def all(self, files: Sequence[ScannedFile]) -> Iterator[Fresh | Failure]:
        """Yield each file with its hash, or why it cannot be read."""
        return ordered_map(read, files, threads=self._threads, ahead=2 * self._threads)


def read(file: ScannedFile) -> Fresh | Failure:
    """Read and hash one file, or what is behind a URI."""
    try:
        if is_uri(file.absolute):
            return _fetched(file)
        with Path(file.absolute).open("rb") as handle:
            info = os.fstat(handle.fileno())
            now = ScannedFile(file.path, file.absolute, info.st_size, info.st_mtime_ns)
            digest = hashlib.blake2b(digest_size=16)
            young = info.st_mtime_ns > time.time_ns() - _YOUNG_NS
            if info.st_size <= _HELD_BYTES:
                data = handle.read()
                digest.update(data)
                return Fresh(now, digest.digest(), data, None if young else info.st_mtime_ns)
            while piece := handle.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        why = not_opened(file.path, error)
        return Failure(file.path, why.reason, why.detail)
    return Fresh(now, digest.digest(), None, None if young else info.st_mtime_ns)


def _fetched(file: ScannedFile) -> Fresh:
    """Take the bytes behind a URI whole; the version seen when they were listed goes with them, or with older ones.

    (Then the next listing differs from what is kept, and they are read again.)
    """
    data = open_uri(file.absolute)
    content = hashlib.blake2b(data, digest_size=16).digest()
    return Fresh(file._replace(size=len(data)), content, data, file.mtime_ns or None)


def decode(item: Any, short_side: int | None) -> Picture:
    """Decode the bytes that were hashed (a loader for `embed_files`)."""
    return load(item.data if item.data is not None else item.file.absolute, short_side=short_side)


def content_of(path: Path) -> bytes:
    """Return the BLAKE2b hash of a file's bytes."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as handle:
        while piece := handle.read(_PIECE):
            digest.update(piece)
    return digest.digest()
