"""What a caller may ask of any encoder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a caller may ask of any encoder."""

    normalise: bool = True
    """Rows of length 1; False keeps the network's own lengths."""
    threads: int | None = None
    """Threads of the encoder itself; None: all usable processors."""
