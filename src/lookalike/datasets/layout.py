"""What the readers of published layouts share: finding their files, and lines of fields."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lookalike.datasets.pictures import Column, LabelledPictures
from lookalike.errors import InputError, NotFoundError


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A published layout: its title, the folder its archive unpacks to, and the files it must have."""

    title: str
    folder: str
    tree: str
    """what is expected, in one line"""

    def find(self, root: str | os.PathLike[str], *needed: str) -> Path:
        """Return the folder that holds everything in `needed`: `root`, or `folder` inside it.

        Raises:
            NotFoundError: something is missing; it is named, with the layout expected.
        """
        given = Path(root)
        tried = (given, given / self.folder)
        for folder in tried:
            if all((folder / name).exists() for name in needed):
                return Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
        nearest = tried[1] if tried[1].is_dir() else given
        missing = [name for name in needed if not (nearest / name).exists()]
        what = f"{', '.join(missing)} is missing" if nearest.is_dir() else "there is no such folder"
        raise NotFoundError(f"{str(nearest)!r} is not {self.title}: {what}.", hint=f"Expected: {self.tree}")

    def pictures(self, root: Path, names: Sequence[str], columns: Mapping[str, Column]) -> LabelledPictures:
        """Return the pictures at names relative to the root.

        Raises:
            InputError: there are none.
        """
        if not names:
            raise InputError(f"{str(root)!r} lists no pictures of {self.title}.", hint=f"Expected: {self.tree}")
        paths = tuple(os.path.normpath(root / name) for name in names)
        return LabelledPictures(root=str(root), names=tuple(names), paths=paths, columns=columns)


def lines(path: Path, fields: int, *, skip: int = 0) -> Iterator[list[str]]:
    """Yield the blank-separated fields of each line after the first `skip`; the last field keeps its blanks.

    Raises:
        InputError: a line with fewer fields; it is named.
    """
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file, start=1):
            if number <= skip or not line.strip():
                continue
            found = line.strip().split(maxsplit=fields - 1)
            if len(found) != fields:
                raise InputError(f"{path}: line {number} has {len(found)} fields where {fields} are expected.")
            yield found


def whole(text: str, path: Path) -> int:
    """Read a whole number, or say in which file it is none.

    Raises:
        InputError: not a whole number.
    """
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{path}: {text!r} is no whole number.") from error
