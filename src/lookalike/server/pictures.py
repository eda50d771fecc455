"""Pictures of items: small ones, made once for each content, and the files themselves."""

from __future__ import annotations

import contextlib
import hashlib
import mimetypes
import os
import secrets
from pathlib import Path
from urllib.parse import quote

from fastapi import Request, Response

from lookalike.catalogue.catalogue import Catalogue
from lookalike.errors import CatalogueError, ImageError
from lookalike.images.formats import PREFIX, sniff
from lookalike.images.thumbnails import thumbnail
from lookalike.server.binary import tagged
from lookalike.server.items import one, version
from lookalike.server.problems import RefusedError
from lookalike.server.shop import Shop

SIZES = (64, 96, 160, 256, 384, 640, 1024, 2048)
"""Longer sides that are made; another is rounded up, so that asking for every number fills no disk."""
FOLDER = "thumbnails"
_LARGEST_FILE = 512 << 20
_FOR_EVER = "private, max-age=31536000, immutable"


def small(request: Request, shop: Shop, number: int, side: int, wanted: str | None) -> Response:
    """Return a small picture of an item; it may be kept for ever where the asker named its bytes.

    Raises:
        RefusedError: no such item, or no picture behind it (404).
        ImageError: the file cannot be read any more.
    """
    store = shop.store()
    size = next(each for each in SIZES if each >= side)
    content = store.items(one(store, number))[0].file.content
    tag = f"{version(content)}-{size}"
    if content is not None:
        kept = _kept(shop, content, size)
        with contextlib.suppress(OSError):
            return _answer(request, kept.read_bytes(), tag, wanted == version(content))
    path = _file(store, number)
    data = _read(path)
    same = content is not None and hashlib.blake2b(data, digest_size=16).digest() == content
    made = thumbnail(data, size, max_pixels=shop.settings.max_pixels * 4)
    if same and content is not None:
        _keep(_kept(shop, content, size), made)
        return _answer(request, made, tag, wanted == version(content))
    # The file is no longer what was synced: its picture is shown, and kept by nobody under the old name.
    return _answer(request, made, hashlib.blake2b(made, digest_size=8).hexdigest(), False)


def original(request: Request, shop: Shop, number: int) -> Response:
    """Return the file of an item as an attachment, only where its first bytes are those of a picture.

    Raises:
        RefusedError: no such item, no file (404), or no picture (415).
    """
    store = shop.store()
    one(store, number)
    path = _file(store, number)
    data = _read(path)
    row = sniff(data[:PREFIX])
    if row is None:
        raise RefusedError(415, f"The file of item {number} is no picture any more.", hint="Run: lookalike sync")
    kind = mimetypes.guess_type(f"x.{row.name.lower()}")[0] or "application/octet-stream"
    name = quote(path.name.encode("utf-8", "surrogateescape"))
    tag = hashlib.blake2b(data, digest_size=16).hexdigest()
    disposition = f"attachment; filename*=UTF-8''{name}"
    return tagged(request, data, tag, media_type=kind, Content_Disposition=disposition)


def prune(shop: Shop) -> int:
    """Delete the small pictures of bytes that no item has any more; return how many there were."""
    folder = shop.settings.catalogue / FOLDER
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return 0
    live = {item.file.content.hex() for item in shop.store().items() if item.file.content}
    gone = [path for path in folder.glob("*/*.webp") if path.name.partition("-")[0] not in live]
    for path in gone:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(gone)


def _answer(request: Request, content: bytes, tag: str, for_ever: bool) -> Response:
    caching = {"Cache_Control": _FOR_EVER} if for_ever else {}
    return tagged(request, content, tag, media_type="image/webp", **caching)


def _kept(shop: Shop, content: bytes, size: int) -> Path:
    name = content.hex()
    return shop.settings.catalogue / FOLDER / name[:2] / f"{name}-{size}.webp"


def _keep(path: Path, content: bytes) -> None:
    """Write whole or not at all; a folder that cannot be written costs time, not pictures."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        aside.write_bytes(content)
        aside.replace(path)


def _file(store: Catalogue, number: int) -> Path:
    """Return the file of an item, always below the root."""
    root = store.root
    if root is None:
        raise RefusedError(
            404, "This catalogue holds ready vectors and no pictures.", hint="Set its folder: Catalogue.set_root"
        )
    path = store.paths(one(store, number))[0]
    if os.path.isabs(path) or ".." in path.replace("\\", "/").split("/"):  # noqa: PTH117 - it may not be UTF-8
        raise CatalogueError(f"The path of item {number} leaves the folder of pictures.", hint="Run: lookalike verify")
    return root / path


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise RefusedError(404, f"There is no file {path.name!r} any more.", hint="Run: lookalike sync")
        if path.stat().st_size > _LARGEST_FILE:
            raise ImageError(path.name, "too-large", f"more than {_LARGEST_FILE >> 20} MB")
        return path.read_bytes()
    except OSError as error:
        raise ImageError(path.name, "permission", error.strerror or "") from error
