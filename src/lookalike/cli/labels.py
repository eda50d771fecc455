"""Columns for the items of a catalogue: from a table, or from the folders the pictures lie in."""

from __future__ import annotations

import os
from pathlib import Path

from lookalike.catalogue.catalogue import Catalogue
from lookalike.cli import output
from lookalike.datasets.table import read_table

COLUMN = "label"


def apply_table(catalogue: Catalogue, table: Path, *, quiet: bool) -> None:
    """Set the columns of a manifest; rows of pictures the catalogue does not hold are counted.

    Raises:
        InputError: no column of paths, a path twice, a value of another type than the column's.
    """
    root = catalogue.root
    rows = read_table(table, root=root)
    paths = [os.path.relpath(path, root) if root else name for path, name in zip(rows.paths, rows.names, strict=True)]
    done = catalogue.set_columns(dict(rows.columns), paths=paths, missing_ok=True)
    if not quiet:
        output.note(f"columns {', '.join(rows.columns)} set for {done} items")
        if done < len(paths):
            output.note(f"{len(paths) - done} rows of {table} name pictures that are not in the catalogue")


def apply_folders(catalogue: Catalogue) -> int:
    """Give every item that has no label the name of the first folder it lies in; return how many got one."""
    ids = catalogue.ids()
    names = {column.name for column in catalogue.columns()}
    present = catalogue.column(COLUMN, ids) if COLUMN in names else [None] * len(ids)
    fresh = [
        (int(number), path.split("/")[0])
        for number, path, label in zip(ids, catalogue.paths(ids), present, strict=True)
        if label is None and "/" in path
    ]
    if not fresh:
        return 0
    return catalogue.set_columns(
        {COLUMN: [label for _, label in fresh]}, ids=[number for number, _ in fresh], types={COLUMN: "text"}
    )
