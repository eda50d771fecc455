"""Every error lookalike raises on purpose.

    LookalikeError
    ├── InputError            (ValueError)         a value the caller gave is refused
    │   ├── ShapeError                             an array has the wrong shape or length
    │   ├── NonFiniteError                         NaN, infinity or a zero vector, rows named
    │   ├── CutOffError                            a k outside what was retrieved
    │   ├── ImageError                             one picture cannot be read: path, reason, detail
    │   ├── EncoderMismatchError                   vectors of two encoders would be mixed
    │   └── ProtocolError                          two runs, or two settings, cannot be compared
    ├── InputTypeError        (TypeError)          an argument of the wrong type
    ├── UnknownNameError      (LookupError)        a name that is in no table; the right ones are listed
    ├── NotFoundError         (FileNotFoundError)  a path that is not there
    ├── CatalogueError        (RuntimeError)       a store that cannot be opened, locked or written
    └── MissingExtraError     (ImportError)        an optional dependency; the extra is named

Each also derives from the built-in a caller would catch, and carries a `hint`: the next step, in one sentence.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LookalikeError(Exception):
    """Base of every error raised on purpose; `hint` is the next step, or empty."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InputError(LookalikeError, ValueError):
    """A value the caller gave is refused."""


class ShapeError(InputError):
    """An array has the wrong shape, or two that belong together have different lengths."""


class NonFiniteError(InputError):
    """A vector holds NaN or infinity, or has length zero; the rows are named."""


class CutOffError(InputError):
    """A cut-off k lies outside what was retrieved."""

    def __init__(self, k: int, depth: int) -> None:
        super().__init__(
            f"k={k} is outside 1..{depth}: {depth} candidates were retrieved per query.",
            hint=f"Retrieve at least {k}, or ask for a smaller k." if k > depth else "Ask for k of at least 1.",
        )


class ImageError(InputError):
    """One picture cannot be read: `path`, `reason` (a code of `images.load.REASONS`) and `detail`."""

    def __init__(self, path: str, reason: str, detail: str = "") -> None:
        super().__init__(f"{path!r}: {reason}" + (f" ({detail})" if detail else ""))
        self.path = path
        self.reason = reason
        self.detail = detail


class EncoderMismatchError(InputError):
    """Vectors of two different encoders, preprocessings, dimensions or metrics would be mixed."""


class ProtocolError(InputError):
    """Two runs, or two settings of one run, do not measure the same thing."""


class InputTypeError(LookalikeError, TypeError):
    """An argument has the wrong type."""


class UnknownNameError(LookalikeError, LookupError):
    """A name that stands in no table; the closest right spellings come first.

    >>> str(UnknownNameError("metric", "cosin", ["cosine", "ip", "l2"]))
    "There is no metric named 'cosin'. Did you mean 'cosine'? Known: cosine, ip, l2."
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = list(known)
        close = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
        guess = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
        listed = f"Known: {', '.join(names)}." if names else "There are none."
        super().__init__(f"There is no {kind} named {name!r}.", hint=guess + listed)


class NotFoundError(LookalikeError, FileNotFoundError):
    """A path that is not there."""


class CatalogueError(LookalikeError, RuntimeError):
    """A catalogue cannot be opened, locked, read or written."""


class MissingExtraError(LookalikeError, ImportError):
    """An optional dependency is not installed; `extra` names the group that brings it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency that is not installed.",
            hint=f"Install it with: pip install 'lookalike[{extra}]'",
        )
        self.extra = extra
