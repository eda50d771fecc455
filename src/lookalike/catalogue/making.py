"""The first state of a catalogue on disk."""

from __future__ import annotations

import os
from pathlib import Path

from lookalike.catalogue import cards, database, items, schema
from lookalike.catalogue.aside import whole
from lookalike.catalogue.stored_path import stored
from lookalike.embed.encoder import Card
from lookalike.errors import CatalogueError, NotFoundError
from lookalike.index.neighbours import Metric


def existing(root: str | os.PathLike[str]) -> str:
    """Return the absolute path of a folder that must be there."""
    path = os.path.abspath(os.fspath(root))  # noqa: PTH100 - resolve() would follow links
    if not Path(path).exists():
        raise NotFoundError(f"There is no folder {os.fspath(root)!r}.")
    return path


def make(folder: Path, root: str, card: Card, dtype: cards.Dtype, metric: Metric) -> None:
    """Write the first state beside the name and move it there: a killed `create` leaves no half catalogue."""
    try:
        with whole(folder) as out:
            out.mkdir()
            connection = schema.create(out / database.NAME)
            try:
                with schema.translated(folder / database.NAME), schema.transaction(connection):
                    settings = {"metric": metric, "revision": 0}
                    connection.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
                    name = _text(Path(root).name or "root")
                    connection.execute(
                        "INSERT INTO roots VALUES (?, ?, ?)", (items.ROOT, name, stored(root) if root else "")
                    )
                    cards.add(connection, card, dtype, 0)
            finally:
                connection.close()
    except OSError as error:
        raise CatalogueError(f"The catalogue {str(folder)!r} cannot be made: {error.strerror}.") from error


def _text(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()
