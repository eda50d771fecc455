"""Columns for the items of a catalogue: from a table of paths, or from the folders the pictures lie in."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import NamedTuple

from lookalike.catalogue.catalogue import Catalogue
from lookalike.datasets.table import read_table
from lookalike.errors import InputError

COLUMN = "label"
SETTINGS = "lookalike.toml"


class Labelled(NamedTuple):
    """What a table set: its columns, the items it named, and its rows that name no item."""

    columns: tuple[str, ...]
    items: int
    unknown: int


def label(catalogue: Catalogue) -> int:
    """Set the columns of the table that `lookalike.toml` names for sync, or the first folder as label.

    Returns how many items were given a value.

    Raises:
        InputError: the settings or the table cannot be read, or hold values of another type than the column's.
    """
    table = _table(catalogue.folder)
    return apply_folders(catalogue) if table is None else apply_table(catalogue, table).items


def apply_table(catalogue: Catalogue, table: Path) -> Labelled:
    """Set the columns of a manifest; its paths start at the catalogue's root.

    Raises:
        InputError: no column of paths, a path twice, a value of another type than the column's.
    """
    root = catalogue.root
    rows = read_table(table, root=root)
    paths = [os.path.relpath(path, root) if root else name for path, name in zip(rows.paths, rows.names, strict=True)]
    done = catalogue.set_columns(dict(rows.columns), paths=paths, missing_ok=True)
    return Labelled(tuple(rows.columns), done, len(paths) - done)


def apply_folders(catalogue: Catalogue) -> int:
    r"""Give every item that has no label the name of its first folder; return how many got one.

    A name that is not UTF-8 is written with escapes (`caf\xe9`), because a label is text.
    """
    labelled = any(column.name == COLUMN for column in catalogue.columns())
    ids = catalogue.ids(where=f"{COLUMN} is null" if labelled else None)
    fresh = [
        (int(number), os.fsencode(path.split("/")[0]).decode(errors="backslashreplace"))
        for number, path in zip(ids, catalogue.paths(ids), strict=True)
        if "/" in path
    ]
    if not fresh:
        return 0
    return catalogue.set_columns(
        {COLUMN: [value for _, value in fresh]}, ids=[number for number, _ in fresh], types={COLUMN: "text"}
    )


def _table(folder: Path) -> Path | None:
    path = folder / SETTINGS
    if not path.is_file():
        return None
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8")).get("sync", {}).get("labels")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint="It holds lines such as: k = 20") from error
    return Path(given) if isinstance(given, str) else None
