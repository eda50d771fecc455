"""A folder of class folders: the first folder under the root is the label of every picture below it."""

from __future__ import annotations

import os
from pathlib import Path

from lookalike.datasets.pictures import LabelledPictures
from lookalike.errors import InputError, NotFoundError
from lookalike.images.scan import scan


def read_folder(root: str | os.PathLike[str]) -> LabelledPictures:
    """Read a folder of class folders, at any depth: `root/mug/red/1.jpg` has the label `mug`.

    Pictures directly in the root have no label (None). What the scanner skipped or could not look at is counted in
    `skipped` and listed in `failed`. Rows come in the order of their names.

    Raises:
        NotFoundError: no such folder.
        InputError: not a folder, no pictures, no class folders, or only one.
    """
    folder = Path(root)
    if not folder.exists():
        raise NotFoundError(f"There is no folder {str(folder)!r}.")
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is not a folder.", hint="A folder with one folder a class is expected.")
    found = scan(folder)
    if not found.files:
        passed = f" ({sum(found.skipped.values())} other files were passed over)" if found.skipped else ""
        raise InputError(f"There are no pictures under {str(folder)!r}{passed}.")
    labels = tuple(_label(each.path) for each in found.files)
    classes = sorted({label for label in labels if label is not None})
    if not classes:
        raise InputError(
            f"The {len(labels)} pictures of {str(folder)!r} lie in no class folders, so they have no labels.",
            hint="Put the pictures of each class into a folder of their own, or give a table with a column of labels.",
        )
    if len(classes) == 1:
        raise InputError(
            f"{str(folder)!r} has the single class folder {classes[0]!r}: with one class every answer would be right.",
            hint="Two class folders are needed.",
        )
    return LabelledPictures(
        root=os.path.abspath(folder),  # noqa: PTH100 - resolve() would follow links
        names=tuple(each.path for each in found.files),
        paths=tuple(each.absolute for each in found.files),
        columns={"label": labels},
        skipped=found.skipped,
        failed=found.failed,
    )


def _label(name: str) -> str | None:
    first, slash, _ = name.partition("/")
    return first if slash else None
