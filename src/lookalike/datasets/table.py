"""A manifest: one row a picture, with a column of paths and any other columns; CSV, TSV or Parquet."""

from __future__ import annotations

import os
from pathlib import Path

from lookalike.datasets.delimited import read_delimited
from lookalike.datasets.parquet import read_parquet
from lookalike.datasets.pictures import Column, LabelledPictures, spelling
from lookalike.errors import InputError, NotFoundError, ShapeError

PARQUET_SUFFIXES = (".parquet", ".pq")
TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".txt", *PARQUET_SUFFIXES)


def read_table(
    path: str | os.PathLike[str], *, path_column: str = "path", root: str | os.PathLike[str] | None = None
) -> LabelledPictures:
    """Read a manifest of pictures: a column of paths, and every other column as text.

    Relative paths start at `root`, or at the table's own folder. Surrounding blanks of a value are dropped and an empty
    cell is None; the text "NA" is a label like any other. A picture that does not exist is not an error here: it is
    reported by name, with the reason `missing`, when the pictures are read.

    Raises:
        NotFoundError: no such table.
        InputError: no column `path_column` (the columns are listed), a row without a path, a path twice (both rows are
            named), no rows, rows of unequal length, or a label that is not UTF-8.
        MissingExtraError: a Parquet file without the `parquet` extra.
    """
    table = Path(path)
    columns, places = _read_columns(table, expect=path_column)
    if path_column not in columns:
        raise InputError(
            f"{table} has no column {path_column!r}.",
            hint=f"{spelling(path_column, columns, kind='columns')} Name the one that holds the paths.",
        )
    base = Path(os.path.abspath(root if root is not None else table.parent))  # noqa: PTH100 - resolve() follows links
    names = _names(columns.pop(path_column), table=table, base=base, places=places, column=path_column)
    if not names:
        raise InputError(f"{table} has a header and no rows.", hint="Each further line describes one picture.")
    return LabelledPictures(
        root=str(base),
        names=names,
        paths=tuple(os.path.normpath(base / name) for name in names),
        columns={name: _clean(name, values, table=table, places=places) for name, values in columns.items()},
    )


def read_label_columns(path: str | os.PathLike[str], n: int | None) -> dict[str, Column]:
    r"""Read the labels of n ready vectors: a table with a header and one row a vector, in their order.

    Where n is None any number of rows is right.

    In a table of a single column a blank line is a vector without a label.

    Raises:
        NotFoundError: no such table.
        ShapeError: another number of rows than vectors; both are named.
        InputError: a table that cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.csv").write_text("label,camera\nmug,1\nmug,2\nlamp,\n")
    ...     read_label_columns(Path(folder, "labels.csv"), 3)
    {'label': ('mug', 'mug', 'lamp'), 'camera': ('1', '2', None)}
    """
    table = Path(path)
    columns, places = _read_columns(table, keep_blank=True)
    length = len(places)
    while n is not None and length > n and all(values[length - 1] is None for values in columns.values()):
        length -= 1  # blank lines at the end of the file
    if n is not None and length != n:
        raise ShapeError(
            f"{table} has {length} rows for {n} vectors.", hint="It needs a header and then one row a vector, in order."
        )
    return {name: _clean(name, values[:n], table=table, places=places) for name, values in columns.items()}


def _read_columns(
    table: Path, *, expect: str | None = None, keep_blank: bool = False
) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Return the columns, and for each row the words that point a person at it."""
    if not table.exists():
        raise NotFoundError(f"There is no file {str(table)!r}.")
    if table.suffix.lower() in PARQUET_SUFFIXES:
        columns = read_parquet(table)
        return columns, tuple(f"row {row}" for row in range(1, len(next(iter(columns.values()), ())) + 1))
    found = read_delimited(table, expect=expect, keep_blank=keep_blank)
    return found.columns, tuple(f"line {line}" for line in found.lines)


def _names(values: Column, *, table: Path, base: Path, places: tuple[str, ...], column: str) -> tuple[str, ...]:
    """Return each row's path as written, after checking that none is empty and none comes twice."""
    seen: dict[str, str] = {}
    names: list[str] = []
    for value, place in zip(values, places, strict=True):
        if value is None or not value.strip():
            raise InputError(f"{table}: {place} has no {column}.")
        target = os.path.normpath(base / value)  # "./a.jpg" and "a.jpg" are one picture
        if target in seen:
            raise InputError(
                f"{table}: {value!r} stands on {seen[target]} and on {place}.",
                hint="A picture may be listed once, or it would find itself.",
            )
        seen[target] = place
        names.append(value)
    return tuple(names)


def _clean(name: str, values: Column, *, table: Path, places: tuple[str, ...]) -> Column:
    """Drop the blanks around each value, and refuse text that no report could print."""
    cleaned: list[str | None] = []
    for value, place in zip(values, places, strict=False):
        if value is not None and any("\ud800" <= char <= "\udfff" for char in value):
            raise InputError(f"{table}: the {name} on {place} is not UTF-8.", hint="Save the table as UTF-8.")
        cleaned.append((value.strip() or None) if value is not None else None)
    return tuple(cleaned)
