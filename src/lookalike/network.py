"""Whether another machine may be asked: `--offline`, or LOOKALIKE_OFFLINE, leaves only this one."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from lookalike.errors import InputError

VARIABLE = "LOOKALIKE_OFFLINE"
_TRUE = {"1", "ON", "YES", "TRUE"}
_forbidden = 0
"""How many callers forbid it now: of the whole process, as threads that read pictures are to hold to it too."""


@contextlib.contextmanager
def forbidden() -> Iterator[None]:
    """Let nothing in this process ask another machine until this ends."""
    global _forbidden
    _forbidden += 1
    try:
        yield
    finally:
        _forbidden -= 1


def is_forbidden() -> bool:
    """Tell whether other machines are left alone."""
    return _forbidden > 0 or os.environ.get(VARIABLE, "").upper() in _TRUE


def is_here(host: str) -> bool:
    """Tell whether a host is this machine: localhost, a loopback address, or the path of a Unix socket.

    >>> is_here("localhost"), is_here("127.0.0.2"), is_here("::1"), is_here("/run/postgresql")
    (True, True, True, True)
    >>> is_here("db.example"), is_here("10.0.0.5"), is_here("localhost.example"), is_here("")
    (False, False, False, False)
    """
    if host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Return the host a URL or `HOST:PORT` names, empty where it names none.

    >>> host_of("tcp://10.0.0.5:8786"), host_of("[::1]:8786"), host_of("http://[")
    ('10.0.0.5', '::1', '')
    """
    try:
        return urlsplit(f"//{url.rpartition('://')[2]}").hostname or ""
    except ValueError:
        return ""


def check(shown: str, hosts: Sequence[str]) -> None:
    """Let what lies at these hosts be asked; `shown` names it and holds no secret.

    Raises:
        InputError: one of them is not this machine, and other machines are not to be asked.
    """
    if is_forbidden() and not all(map(is_here, hosts)):
        raise InputError(
            f"{shown} is not on this machine, and nothing else may be asked offline.",
            hint=f"Leave --offline and {VARIABLE} out, or name something that is here.",
        )
