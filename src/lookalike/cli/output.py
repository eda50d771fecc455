"""Everything the command line writes: data on stdout, notes, progress and errors on stderr."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TextIO


class Step(Protocol):
    """How far a long job is; `total` is None where nobody knows."""

    @property
    def done(self) -> int:
        """Units finished."""

    @property
    def total(self) -> int | None:
        """Units in all."""

    @property
    def failed(self) -> int:
        """Units that failed."""


class Steps(NamedTuple):
    """A `Step` for jobs that count their own."""

    done: int
    total: int | None
    failed: int


def data(text: str) -> None:
    """Write text to standard output, byte for byte also where a path is not UTF-8."""
    _to_reader(text if text.endswith("\n") else text + "\n")


def _to_reader(text: str) -> None:
    """Write, and where the reader has gone (`lookalike … | head`) leave quietly: it has seen enough."""
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


def raw(text: str) -> None:
    """Write text to standard output as it is, without a line end."""
    _to_reader(text)


def as_json(value: Any) -> None:
    """Write one JSON object, indented; NaN and infinity become null."""
    data(json.dumps(plain(value), indent=2, allow_nan=False))


def as_jsonl(rows: Sequence[Any]) -> None:
    """Write one JSON object a line."""
    for row in rows:
        data(json.dumps(plain(row), allow_nan=False))


def as_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV, the first row's keys as header."""
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    data(buffer.getvalue())


def as_table(rows: Sequence[Mapping[str, Any]], *, right: Sequence[str] = ()) -> None:
    """Write rows as aligned columns, the first row's keys as header; columns named in `right` are right-aligned."""
    if not rows:
        return
    keys = list(rows[0])
    cells = [keys, *[["" if row[key] is None else one_line(str(row[key])) for key in keys] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(keys))]
    for line in cells:
        aligned = [
            cell.rjust(width) if key in right else cell.ljust(width)
            for cell, width, key in zip(line, widths, keys, strict=True)
        ]
        data("  ".join(aligned).rstrip())


def one_line(text: str) -> str:
    r"""Write control characters as escapes: a name with a newline keeps its row, and none commands the terminal.

    >>> one_line("a\nb"), one_line("\x1b[31mred"), one_line("café")
    ('a\\nb', '\\x1b[31mred', 'café')
    """
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def as_rows(rows: Sequence[Mapping[str, Any]], output_format: str) -> None:
    """Write rows in the format of that name: `table`, `json`, `jsonl` or `csv`."""
    if output_format == "json":
        as_json(rows)
    elif output_format == "jsonl":
        as_jsonl(rows)
    elif output_format == "csv":
        as_csv(rows)
    else:
        as_table(rows)


def notes(*, shown: bool) -> None:
    """Say whether `note` writes anything (`-q`: it does not); warnings and errors always do."""
    global _notes_shown
    _notes_shown = shown


_notes_shown = True


def note(text: str) -> None:
    """Write one line to standard error, unless the user asked for quiet."""
    if _notes_shown:
        warning(text)


def warning(text: str) -> None:
    """Write one line to standard error that is needed to understand the exit code: also where quiet was asked for."""
    _write(sys.stderr, text + "\n")


def error(message: str, hint: str = "", *, as_json: bool) -> None:
    """Write an error to standard error: one line, or one JSON object `{error, hint}`."""
    if as_json:
        warning(json.dumps({"error": message, "hint": hint}))
    else:
        warning(f"lookalike: {message} {hint}".rstrip())


@contextlib.contextmanager
def progress(what: str, *, shown: bool) -> Iterator[Callable[[Step], None] | None]:
    """Yield a callback that draws on standard error; None where not shown or where that is no terminal."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def report(step: Step) -> None:
            description = f"{what} ({step.failed} failed)" if step.failed else what
            bar.update(task, completed=step.done, total=step.total, description=description)

        yield report


def plain(value: Any) -> Any:
    """Turn NumPy values, tuples and mappings into plain JSON values; NaN and infinity become None.

    >>> plain({"a": float("nan"), "b": (1, 2)})
    {'a': None, 'b': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write(stream: TextIO, text: str) -> None:
    binary = getattr(stream, "buffer", None)
    if binary is None:  # a captured stream in a notebook or a test
        stream.write(text)
        return
    stream.flush()
    binary.write(text.encode("utf-8", errors="surrogateescape"))
    binary.flush()
