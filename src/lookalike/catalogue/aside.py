"""Files that appear whole or not at all: written beside their name, then moved there."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from lookalike.catalogue.lock import WriterLock

_LOCK = "writing.lock"
_OUT = "out"


@contextlib.contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Yield a path to write a file or a folder at; at the end of the block it is moved to `target`.

    After an exception nothing is left. What a killed run left beside the target is cleared away by the next one; a run
    that is still at work is known by its lock.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{_plain(target.name)}.*.writing"):
        if WriterLock(left / _LOCK).owner() is None and (left / _LOCK).exists():
            shutil.rmtree(left, ignore_errors=True)
    place = target.parent / f".{target.name}.{secrets.token_hex(4)}.writing"
    place.mkdir()
    lock = WriterLock(place / _LOCK)
    try:
        with lock.holding("writing"):
            yield place / _OUT
            if target.is_dir():
                target.rmdir()  # only an empty one was let through
            (place / _OUT).rename(target)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _plain(name: str) -> str:
    """Keep the characters of a name from meaning anything to glob."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)
