"""The words of a filter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

MAX_CHARACTERS = 50_000
"""SQLite refuses a longer pattern for LIKE; no filter a person writes comes near."""


class Token(NamedTuple):
    """One word, and where it starts."""

    kind: Literal["word", "name", "text", "number", "symbol", "end"]
    text: str
    """Without its quotes."""
    start: int
    quote: str = ""


_PATTERN = re.compile(
    r"""\s*(?:
      (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<word>[^\W\d]\w*)
    | (?P<text>'(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<symbol><=|>=|<>|!=|==|[=<>(),])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def tokens(text: str, fail: Callable[[int, str, str], Exception]) -> list[Token]:
    """Split a filter; the last token is the end.

    Raises:
        Exception: what `fail(position, message, hint)` returns, at a character that starts nothing.
    """
    if len(text) > MAX_CHARACTERS:
        raise fail(MAX_CHARACTERS, f"it is longer than {MAX_CHARACTERS} characters", "")
    if odd := _NO_TEXT.search(text):
        raise fail(odd.start(), "it holds a character that is no text", "")
    found: list[Token] = []
    position = 0
    while True:
        match = _PATTERN.match(text, position)
        if match is None:
            raise _stray(text, position, fail)
        kind, raw = match.lastgroup, match.group(match.lastgroup or 0)
        start = match.start(match.lastgroup or 0)
        if kind == "end":
            return [*found, Token("end", "", start)]
        if kind in ("text", "name"):
            quote = raw[0]
            found.append(Token(kind, raw[1:-1].replace(quote * 2, quote), start, quote))  # type: ignore[arg-type]
        else:
            found.append(Token(kind, raw, start))  # type: ignore[arg-type]
        position = match.end()


def _stray(text: str, position: int, fail: Callable[[int, str, str], Exception]) -> Exception:
    start = position + len(text[position:]) - len(text[position:].lstrip())
    if text[start] in "'\"`":
        return fail(start, "a quote is opened and not closed", "Two quotes inside a text stand for one: 'it''s'")
    return fail(start, f"{text[start]!r} means nothing here", "")
