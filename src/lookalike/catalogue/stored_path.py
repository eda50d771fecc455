"""A path as the database keeps it: text where it is UTF-8, its bytes where it is not."""

from __future__ import annotations

import os

from lookalike.errors import InputError


def stored(path: str) -> str | bytes:
    r"""Return what goes into the database.

    Raises:
        InputError: empty, with a NUL, or no path of this system.

    >>> stored("mugs/ü.jpg"), stored(os.fsdecode(b"mugs/\xff.jpg"))
    ('mugs/ü.jpg', b'mugs/\xff.jpg')
    """
    if not path or "\0" in path:
        raise InputError(f"{path!r} is not a path.")
    try:
        path.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(path)
        except UnicodeEncodeError:
            raise InputError(f"{path!r} is not a path of this system.") from None
    return path


def shown(value: str | bytes) -> str:
    """Return the path as Python's own functions take it; bytes that are not UTF-8 become surrogates."""
    return value if isinstance(value, str) else os.fsdecode(value)
