"""Pictures that are not a folder of this machine: the rows of a manifest, and what lies below the URI of a store.

A URI is anything fsspec opens: `s3://bucket/photos`, `gs://…`, `https://…`, `memory://…`; most take a package of
their own. Its version tag, where the store keeps one, stands in the place of a file's time.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lookalike import network
from lookalike.errors import InputError, MissingExtraError, NotFoundError
from lookalike.images.formats import EXTENSIONS
from lookalike.images.load import Failure, not_opened
from lookalike.images.scan import HIDDEN, NO_EXTENSION, Scan, ScannedFile

_TAGS = ("ETag", "etag", "versionId", "generation", "md5Hash")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")
_OF_THIS_MACHINE = frozenset({"file", "local", "memory", "zip", "tar", "libarchive", "data"})
_WITH_HOST = frozenset({"http", "https", "ftp", "sftp", "ssh", "smb", "webdav", "hdfs", "webhdfs"})
"""Protocols of fsspec that name a host after `://`; for the others, such as s3, it is a bucket's name."""


def is_uri(text: str) -> bool:
    """Tell whether a text names something for fsspec rather than a path.

    >>> is_uri("s3://bucket/mug.jpg"), is_uri("photos/mug.jpg")
    (True, False)
    """
    head, found, _ = text.partition("://")
    return bool(found) and head.replace("+", "").replace(":", "").isalnum()


def folder_at(uri: str) -> Callable[[], Scan]:
    """Return what lists the pictures below a URI, by relative path; hidden names and other files are counted."""
    return lambda: _below(uri.rstrip("/"))


def files_of(root: str, names: Sequence[str], paths: Sequence[str]) -> Callable[[], Scan]:
    """Return what looks at the pictures of a manifest, kept under `names`: paths of this machine, or URIs."""
    return lambda: _listed(root, names, paths)


def open_uri(uri: str) -> bytes:
    """Return the bytes behind a URI.

    Raises:
        OSError: they are not there, or not for us.
    """
    system, path = _system(uri)
    try:
        return bytes(system.cat_file(path))
    except OSError:
        raise
    except Exception as error:  # each store has errors of its own; a file that cannot be had is one of many
        raise OSError(f"{type(error).__name__}: {error}") from error


def _below(uri: str) -> Scan:
    system, top = _system(uri)
    try:
        found: Mapping[str, Mapping[str, Any]] = system.find(top, detail=True)
    except OSError as error:
        raise NotFoundError(f"{uri!r} cannot be listed: {error}.", hint="Check the address and its access.") from error
    if not found:
        raise NotFoundError(f"There is nothing below {uri!r}.", hint="Check the address and its access.")
    start = str(system._strip_protocol(top)).rstrip("/") + "/"
    files, skipped = [], Counter[str]()
    for path, info in sorted(found.items()):
        name = path.removeprefix(start)
        extension = os.path.splitext(name)[1].lower()  # noqa: PTH122 - as in a scan
        if any(part.startswith(".") for part in name.split("/")):
            skipped[HIDDEN] += 1
        elif extension not in EXTENSIONS:
            skipped[extension or NO_EXTENSION] += 1
        else:
            files.append(
                ScannedFile(name, str(system.unstrip_protocol(path)), int(info.get("size") or 0), version(info))
            )
    return Scan(uri, tuple(sorted(files)), dict(sorted(skipped.items())), ())


def _listed(root: str, names: Sequence[str], paths: Sequence[str]) -> Scan:
    files: list[ScannedFile] = []
    failed: list[Failure] = []
    for name, path in zip(names, paths, strict=True):
        if is_uri(path):
            network.check(repr(path), _hosts(path))  # not one file that failed: none of them can be told of
        try:
            if is_uri(path):
                system, inside = _system(path)
                info = system.info(inside)
                files.append(ScannedFile(name, path, int(info.get("size") or 0), version(info)))
                continue
            known = os.stat(path)  # noqa: PTH116 - as in a scan
        except (OSError, ValueError) as error:
            why = not_opened(name, error if isinstance(error, OSError) else OSError(str(error)))
            failed.append(Failure(name, why.reason, why.detail))
            continue
        if not stat.S_ISREG(known.st_mode):
            failed.append(Failure(name, "unsupported", "not a file"))
        else:
            files.append(ScannedFile(name, path, known.st_size, known.st_mtime_ns))
    return Scan(root, tuple(sorted(files)), {}, tuple(sorted(failed)))


def version(info: Mapping[str, Any]) -> int:
    """Return a number that changes when the bytes behind a URI do: of its tag, or its time; 0 where it has neither.

    >>> version({"ETag": '"abc"'}) == version({"ETag": '"abc"'}) != version({"ETag": '"abd"'})
    True
    """
    tags = [str(info[name]) for name in _TAGS if info.get(name)]
    if tags:
        return int.from_bytes(hashlib.blake2b(tags[0].encode(), digest_size=7).digest(), "big")
    for name in _TIMES:
        value = info.get(name)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1e9)
        if isinstance(value, int | float):
            return int(value * 1e9)
    return 0


@functools.cache
def _fsspec() -> Any:
    try:
        return importlib.import_module("fsspec")
    except ImportError as error:
        raise MissingExtraError("Reading from an object store", "cluster") from error


def _hosts(uri: str) -> list[str]:
    """Return the hosts behind a URI, which fsspec may chain; one whose name says nothing of a host stands for itself.

    >>> _hosts("zip://a.png::http://localhost:80/z.zip"), _hosts("s3://bucket/mugs"), _hosts("file:///photos")
    (['localhost'], ['s3://bucket/mugs'], [])
    """
    hosts = []
    for part in uri.split("::"):
        protocol, named, _ = part.partition("://")
        if not named or protocol in _OF_THIS_MACHINE:
            continue
        hosts.append(network.host_of(part) if protocol in _WITH_HOST else part)
    return hosts


def _system(uri: str) -> tuple[Any, str]:
    network.check(repr(uri), _hosts(uri))
    library = _fsspec()
    try:
        system, path = library.core.url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise InputError(f"{uri!r} cannot be opened: {error}.", hint="Install the package it names.") from error
    return system, str(path)
