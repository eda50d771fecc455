"""A label for new pictures: the name of the first folder they lie in, as `lookalike sync` gives it."""

from __future__ import annotations

from lookalike.catalogue.catalogue import Catalogue

COLUMN = "label"


def apply_folders(catalogue: Catalogue) -> int:
    """Give every item that has no label the name of its first folder; return how many got one."""
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
