"""Is a catalogue what it says it is? Database, counts, derived files, bytes on disk, and a sample embedded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lookalike.arrays import Ids
from lookalike.catalogue import cards, generations, indexes, items, view
from lookalike.catalogue.items import Item
from lookalike.catalogue.reading import content_of
from lookalike.embed.pipeline import embed_all
from lookalike.errors import CatalogueError, NotFoundError
from lookalike.index import saved

if TYPE_CHECKING:
    import sqlite3

    from lookalike.catalogue.catalogue import Catalogue

_ROWS = 4_096
_NAMED = 5
TOLERANCE = {"float32": 1e-3, "float16": 3e-3}
"""Largest difference of a component between a stored vector and the same picture embedded today."""


class Problem(NamedTuple):
    """One thing that is not as it should be."""

    check: str
    detail: str


@dataclass(frozen=True)
class Verification:
    """What was looked at, and what was found."""

    checked: Mapping[str, int]
    """Number of things each check looked at."""
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    """What is no fault, such as files that changed since the last sync."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "ok": self.ok,
            "checked": dict(self.checked),
            "problems": [problem._asdict() for problem in self.problems],
            "notes": list(self.notes),
        }


def verify(catalogue: Catalogue, *, sample: int = 32, seed: int = 0) -> Verification:
    """Check a catalogue; `sample` files are hashed and embedded again (0: none), chosen by `seed`.

    Nothing is changed. A file that was edited since the last sync is a note, not a problem: the next sync takes it.
    """
    found: list[Problem] = []
    notes: list[str] = []
    checked: dict[str, int] = {}
    with catalogue.database.reading() as connection:
        for name, check in CHECKS.items():
            problems = list(check(catalogue, connection, checked))
            found.extend(Problem(name, problem) for problem in problems)
            if problems and name in ("integrity", "vectors"):  # what rests on them cannot be judged
                return Verification(checked, tuple(found), tuple(notes))
        chosen = _sample(catalogue, sample, seed)
    found.extend(_embedded_again(catalogue, _unchanged(catalogue, chosen, notes, checked), checked))
    return Verification(checked, tuple(found), tuple(notes))


def _integrity(catalogue: Catalogue, connection: sqlite3.Connection, checked: dict[str, int]) -> Iterator[str]:
    lines = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
    checked["integrity"] = connection.execute("PRAGMA page_count").fetchone()[0]
    if lines != ["ok"]:
        yield from lines
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check").fetchall()[:_NAMED]:
        yield f"row {row} of {table} names a row of {parent} that does not exist"


def _vectors(catalogue: Catalogue, connection: sqlite3.Connection, checked: dict[str, int]) -> Iterator[str]:
    checked["vectors"] = 0
    for encoder in cards.listed(connection):
        width = encoder.card.dim * (2 if encoder.dtype == "float16" else 4)
        rows = connection.execute(f"SELECT item, data FROM {encoder.table} ORDER BY item")
        while batch := rows.fetchmany(_ROWS):
            checked["vectors"] += len(batch)
            wrong = [item for item, data in batch if len(data) != width]
            if wrong:
                yield f"{encoder.card.name}: item {wrong[0]} has {len(wrong)} vectors of another length than {width} B"
                continue
            vectors = items.from_blobs(encoder, [data for _, data in batch])
            lengths = np.linalg.norm(vectors, axis=1)
            bad = ~np.isfinite(lengths) | (lengths == 0)
            if encoder.card.normalised:
                bad |= np.abs(lengths - 1) > 0.01
            for row in np.flatnonzero(bad)[:_NAMED]:
                yield f"{encoder.card.name}: the vector of item {batch[row][0]} has length {lengths[row]}"


def _stamps(catalogue: Catalogue, connection: sqlite3.Connection, checked: dict[str, int]) -> Iterator[str]:
    revision = catalogue.database.revision()
    checked["stamps"] = 0
    for encoder in cards.listed(connection):
        stamp = cards.stamp(connection, encoder)
        if stamp.revision > revision:
            yield f"{encoder.card.name}: vectors of revision {stamp.revision} in a catalogue of revision {revision}"
        for kind, made in connection.execute("SELECT kind, revision FROM derived WHERE encoder = ?", (encoder.id,)):
            checked["stamps"] += 1
            if made > stamp.revision:
                yield f"{encoder.card.name}: the {kind} file has revision {made}, the vectors {stamp.revision}"


def _derived(catalogue: Catalogue, connection: sqlite3.Connection, checked: dict[str, int]) -> Iterator[str]:
    checked["derived"] = 0
    for encoder in cards.listed(connection):
        generation = generations.current(catalogue.database, encoder, view.KIND)
        if generation is None:
            continue
        mapped = view.mapped(generation, encoder.card.dim)
        if mapped is None:
            yield f"{encoder.card.name}: the vector file in {generation.folder.name} is damaged; a sync writes it anew"
            continue
        ids, vectors = mapped
        live = np.flatnonzero(~view.gone(connection, encoder, ids, generation.stamp.revision))
        checked["derived"] += len(live)
        for start in range(0, len(live), _ROWS):
            rows = live[start : start + _ROWS]
            for number, vector in zip(ids[rows], vectors[rows], strict=True):
                blob = connection.execute(f"SELECT data FROM {encoder.table} WHERE item = ?", (int(number),)).fetchone()
                if blob is None or not np.array_equal(items.from_blobs(encoder, [blob[0]])[0], vector):
                    yield f"{encoder.card.name}: the file's vector of item {number} is not the stored one"
                    return


def _indexes(catalogue: Catalogue, connection: sqlite3.Connection, checked: dict[str, int]) -> Iterator[str]:
    checked["indexes"] = 0
    for encoder in cards.listed(connection):
        made = generations.current(catalogue.database, encoder, indexes.KIND)
        if made is None:
            continue
        checked["indexes"] += 1
        try:
            rows = len(saved.load(made.folder / indexes.KIND).indexed_ids)
        except (CatalogueError, NotFoundError) as error:
            yield f"{encoder.card.name}: {error.message} A sync builds the index anew."
            continue
        if rows != made.details["items"]:
            yield f"{encoder.card.name}: the index holds {rows} rows and was made of {made.details['items']}"


CHECKS: Mapping[str, Callable[[Catalogue, Any, dict[str, int]], Iterator[str]]] = {
    "integrity": _integrity,
    "vectors": _vectors,
    "stamps": _stamps,
    "derived": _derived,
    "indexes": _indexes,
}


def _sample(catalogue: Catalogue, size: int, seed: int) -> list[Item]:
    ids: Ids = catalogue.ids()
    if len(ids) > size:
        ids = np.sort(np.random.default_rng(seed).choice(ids, size, replace=False))
    return [item for item in catalogue.items(ids) if item.file.content]


def _unchanged(
    catalogue: Catalogue, chosen: list[Item], notes: list[str], checked: dict[str, int]
) -> list[tuple[Item, Path]]:
    """Return the sampled items whose bytes are still those that were embedded; note the others."""
    root = catalogue.root
    if root is None or not chosen:
        return []
    same, gone, edited = [], 0, 0
    for item in chosen:
        try:
            current = content_of(root / item.path)
        except OSError:
            gone += 1
            continue
        if current == item.file.content:
            same.append((item, root / item.path))
        else:
            edited += 1
    checked["hashes"] = len(chosen)
    if gone or edited:
        notes.append(f"Of {len(chosen)} sampled files {edited} changed and {gone} went since the last sync.")
    return same


def _embedded_again(catalogue: Catalogue, same: list[tuple[Item, Path]], checked: dict[str, int]) -> Iterator[Problem]:
    if not same:
        return
    done = embed_all([path for _, path in same], catalogue.encoder, threads=catalogue.threads)
    checked["embedded again"] = len(same)
    for failure in done.failures[:_NAMED]:
        yield Problem("embedded again", f"{failure.path!r} can no longer be read: {failure.reason}")
    ids = np.array([same[int(position)][0].id for position in done.positions], dtype=np.int64)
    stored = catalogue.vectors(ids)
    apart = np.abs(stored - done.vectors).max(axis=1, initial=0)
    scale = np.abs(stored).max(axis=1, initial=1)
    limit = TOLERANCE[catalogue.stored.dtype]
    for row in np.flatnonzero(~(apart <= limit * scale))[:_NAMED]:
        path = same[int(done.positions[row])][0].path
        yield Problem(
            "embedded again", f"{path!r} differs by {apart[row]:.2g} from its stored vector (limit {limit:g})"
        )
