"""How the server runs: where it listens, who may ask, and how much."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from lookalike.errors import InputError
from lookalike.threads import usable

TOKEN_VARIABLE = "LOOKALIKE_TOKEN"
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything `lookalike serve` decides before it listens.

    Raises:
        InputError: it would be reachable from other machines without a token, or a limit is below 1.

    >>> Settings(catalogue=Path("shop.la"), host="0.0.0.0")
    Traceback (most recent call last):
    ...
    lookalike.errors.InputError: Listening on '0.0.0.0' lets other machines in, and there is no token. Give one of at \
least 16 characters with --token or LOOKALIKE_TOKEN, or listen on 127.0.0.1.
    """

    catalogue: Path
    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free one."""
    token: str | None = None
    hosts: tuple[str, ...] = ()
    """Further names the server may be called by; only with a token."""
    runs: Path | None = None
    """Where runs are looked for and saved; the catalogue's own folder where None."""
    encoder: str | None = None
    threads: int | None = None
    """Of one search and of a job; where None a job takes all processors, and searches share them."""
    max_body: int = 8 << 20
    """Bytes of a JSON request."""
    max_upload: int = 32 << 20
    """Bytes of a multipart request, all pictures together."""
    max_pixels: int = 64_000_000
    """Of one uploaded picture."""
    body_seconds: float = 30.0
    """A request that has not arrived by then is dropped."""
    answer_seconds: float = 60.0
    """A search that has not been answered by then is given up."""
    parallel: int = field(default_factory=lambda: max(2, min(8, usable())))
    """Searches computed at the same time; others wait."""
    waiting: int = 200
    """Searches that may wait; beyond it they are refused with 503."""

    @property
    def search_threads(self) -> int:
        """Threads of one search: all searches together use the processors once, which is what 50 clients need."""
        return self.threads or max(1, usable() // self.parallel)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port={self.port} is outside 0..65535.", hint="0 takes any free port.")
        for name in ("max_body", "max_upload", "max_pixels", "body_seconds", "answer_seconds", "parallel"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name}={getattr(self, name)} must be above 0.")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise InputError(
                "The token holds characters that no header or address can carry.", hint="Use letters and digits."
            )
        if is_loopback(self.host):
            return
        if self.token is None:
            raise InputError(
                f"Listening on {self.host!r} lets other machines in, and there is no token.",
                hint=f"Give one of at least {_SHORTEST_TOKEN} characters with --token or {TOKEN_VARIABLE}, "
                "or listen on 127.0.0.1.",
            )
        if len(self.token) < _SHORTEST_TOKEN:
            raise InputError(
                f"A token of {len(self.token)} characters can be guessed.",
                hint=f"Give at least {_SHORTEST_TOKEN}: python -c 'import secrets; print(secrets.token_urlsafe())'",
            )


def is_loopback(host: str) -> bool:
    """Tell whether a name or address reaches this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("shop.example")
    (True, True, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
