"""CSV and TSV files as columns of text, with the row of every complaint named."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lookalike.datasets.pictures import Column
from lookalike.errors import InputError, NotFoundError

DELIMITERS = (",", "\t", ";")
FIELD_LIMIT = 1 << 24  # characters; the csv module's own limit of 131,072 is met by long captions
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # what a spreadsheet writes as "Unicode text"


@dataclass(frozen=True, kw_only=True)
class Delimited:
    """A parsed file: columns in file order, and for every row the line of the file on which it ends."""

    columns: dict[str, Column]
    lines: tuple[int, ...]


def read_delimited(path: Path, *, expect: str | None = None, keep_blank: bool = False) -> Delimited:
    """Read a CSV or TSV file with a header into columns of text; an empty cell is None.

    The delimiter is the one of comma, tab and semicolon that yields the column `expect` from the header, else the one
    that yields most columns, comma first. Blank lines are passed over, unless `keep_blank` says that in a file of one
    column they are rows without a value. A byte order mark, UTF-16, either line ending and quoted newlines are read.

    Raises:
        NotFoundError: no such file.
        InputError: not text, no header, a column named twice, an unclosed quote, a row with another number of fields.
    """
    text = _decode(path)
    delimiter = _delimiter(text, expect=expect, path=path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    csv.field_size_limit(FIELD_LIMIT)
    rows: list[list[str]] = []
    lines: list[int] = []
    header: list[str] = []
    try:
        for cells in reader:
            if not header:
                header = _header(cells, path) if cells else header
                continue
            if not cells and not (keep_blank and len(header) == 1):
                continue
            if not cells:
                cells = [""]
            if len(cells) != len(header):
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} fields where the header has {len(header)}.",
                    hint="Put quotes around a value that contains the delimiter.",
                )
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num} is not well-formed: {error}.") from error
    columns = {name: tuple(row[place] or None for row in rows) for place, name in enumerate(header)}
    return Delimited(columns=columns, lines=tuple(lines))


def _decode(path: Path) -> str:
    """Return the text; bytes that are not UTF-8 survive as surrogates, because a file name may hold any bytes."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no file {str(path)!r}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if raw.startswith(_UTF16):
        text = raw.decode("utf-16", errors="replace")
    else:
        text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="surrogateescape")
    if "\0" in text:
        raise InputError(f"{path} is not a text file.", hint="A CSV, a TSV or a Parquet file is expected.")
    if not text.strip():
        raise InputError(f"{path} is empty.", hint="The first line must name the columns.")
    return text


def _delimiter(text: str, *, expect: str | None, path: Path) -> str:
    """Choose by the header alone: a delimiter guessed from the values is wrong for one caption in a thousand."""
    preference = ("\t", *DELIMITERS) if path.suffix.lower() in (".tsv", ".tab") else DELIMITERS
    best, most = preference[0], 0
    for delimiter in preference:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            header = [cell.strip() for cell in next((cells for cells in reader if cells), [])]
        except csv.Error:
            continue
        if expect in header:
            return delimiter
        if len(header) > most:
            best, most = delimiter, len(header)
    return best


def _header(cells: list[str], path: Path) -> list[str]:
    """Return the column names; one without a name (a data frame's row number) is called after its place."""
    names = [cell.strip() or f"column_{place}" for place, cell in enumerate(cells, start=1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{path}: the header names the column {twice[0]!r} more than once.")
    return names
