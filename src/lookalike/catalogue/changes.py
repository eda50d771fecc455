"""What a sync knows of the stored items, and the changes it has yet to write."""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from lookalike.arrays import Vectors
from lookalike.catalogue import cards, items
from lookalike.catalogue.items import ROOT, File, Item
from lookalike.catalogue.reading import Fresh
from lookalike.catalogue.stored_path import shown, stored
from lookalike.catalogue.view import View
from lookalike.images.load import Failure, Picture
from lookalike.images.scan import Scan, ScannedFile

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue

Kind: TypeAlias = Literal["added", "updated", "moved", "removed", "unchanged"]
KINDS: tuple[Kind, ...] = ("added", "updated", "moved", "removed", "unchanged")
UNRELIABLE = b""
"""The content of an item whose bytes are not known: it equals no hash, so the file is read at every sync."""


class Stored(NamedTuple):
    """A file with its vector."""

    path: str
    file: File
    vector: Vectors
    replaces: bool
    """The item had other bytes before: the vectors of other encoders no longer show it."""


class Renamed(NamedTuple):
    """An item whose file has another name now."""

    id: int
    path: str
    mtime_ns: int | None


class Touched(NamedTuple):
    """An item whose file has another time and the same bytes."""

    id: int
    size: int
    mtime_ns: int | None


@dataclass
class Changes:
    """What the next commit writes."""

    renamed: list[Renamed] = field(default_factory=list)
    touched: list[Touched] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    """Paths that no longer fail."""

    def __len__(self) -> int:
        return sum(len(part) for part in (self.renamed, self.touched, self.stored, self.failed, self.removed)) + len(
            self.forgotten
        )

    def drop_known_failures(self, known: Known) -> None:
        """Leave out failures that are stored already, so that a sync without news commits nothing."""
        self.failed = [failure for failure in self.failed if failure not in known.failures]

    def write(self, catalogue: Catalogue) -> None:
        """Write all of it in one transaction."""
        encoder = catalogue.stored
        with catalogue.database.commit() as connection:
            revision = catalogue.database.revision()
            items.delete(connection, self.removed, revision)
            for row in self.renamed:
                items.rename(connection, row.id, row.path, row.mtime_ns, revision)
            for touched in self.touched:
                items.touch(connection, touched.id, touched.size, touched.mtime_ns)
            ids = [items.put(connection, row.path, row.file, revision) for row in self.stored]
            replaced = [number for number, row in zip(ids, self.stored, strict=True) if row.replaces]
            failing = list(items.ids_of(connection, [failure.path for failure in self.failed]).values())
            for other in cards.listed(connection):
                items.drop_vectors(connection, other, failing, revision)
                if other.id != encoder.id:
                    items.drop_vectors(connection, other, replaced, revision)
            vectors = np.stack([row.vector for row in self.stored]) if self.stored else np.empty((0, 1), np.float32)
            items.put_vectors(connection, encoder, ids, vectors, revision)
            connection.executemany("UPDATE items SET content = x'', size = NULL, mtime_ns = NULL WHERE id = ?",
                                   [(number,) for number in failing])  # fmt: skip
            healed = [*(row.path for row in self.stored), *self.forgotten]
            connection.executemany(
                "DELETE FROM failures WHERE root = ? AND path = ?", [(ROOT, stored(path)) for path in healed]
            )
            connection.executemany(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)",
                [(ROOT, stored(path), reason, _text(detail)) for path, reason, detail in self.failed],
            )


def _text(detail: str) -> str:
    return detail.encode(errors="backslashreplace").decode()


@dataclass
class Known:
    """The stored items as the sync found them, by path and by content."""

    files: dict[str, Item]
    """Items of files, by path; items brought as ready vectors are not among them unless their file appears."""
    ready: dict[str, Item]
    view: View
    live: set[int]
    failures: set[Failure]
    scanned: set[str] = field(default_factory=set)
    content: dict[bytes, list[Item]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def load(cls, catalogue: Catalogue) -> Known:
        """Read the present state; the caller holds the writer's lock."""
        with catalogue.database.reading() as connection:
            every = items.everything(connection)
            rows = connection.execute("SELECT path, reason, detail FROM failures").fetchall()
        seen = catalogue.view()
        known = cls(
            files={item.path: item for item in every if item.file.content is not None},
            ready={item.path: item for item in every if item.file.content is None},
            view=seen,
            live=set(seen.ids.tolist()),
            failures={Failure(shown(path), reason, detail) for path, reason, detail in rows},
        )
        for item in known.files.values():
            if item.file.content:
                known.content[item.file.content].append(item)
        return known

    @property
    def failing(self) -> set[str]:
        """Paths that failed last time."""
        return {failure.path for failure in self.failures}

    def as_stored(self, file: ScannedFile) -> bool:
        """Whether the file need not be opened: it has a vector, and its size and time are as stored."""
        self.scanned.add(file.path)
        item = self.files.get(file.path)
        return (
            item is not None
            and item.id in self.live
            and item.file.mtime_ns == file.mtime_ns
            and item.file.size == file.size
        )

    def settle(self, fresh: Fresh, pending: Changes) -> Kind | None:
        """Note a file whose vector is known by its bytes and say what it is; None where it must be embedded."""
        item = self.files.get(fresh.file.path)
        if item is not None and item.file.content == fresh.content and item.id in self.live:
            time_changed = (item.file.size, item.file.mtime_ns) != (fresh.file.size, fresh.mtime_ns)
            if time_changed:
                pending.touched.append(Touched(item.id, fresh.file.size, fresh.mtime_ns))
            return "unchanged"
        lost = self.lost(fresh) if item is None else None
        if lost is not None:
            pending.renamed.append(Renamed(lost.id, fresh.file.path, fresh.mtime_ns))
            self.files[fresh.file.path] = replace(self.files.pop(lost.path), path=fresh.file.path)
            if lost.id in self.live:
                return "moved"
        twins = [twin for twin in self.content.get(fresh.content, ()) if twin.id in self.live]
        if not twins:
            return None
        source = twins[0]
        vector = self.view.rows(np.array([source.id], dtype=np.int64))[0]
        file = File(
            content=fresh.content,
            size=fresh.file.size,
            mtime_ns=fresh.mtime_ns,
            width=source.file.width,
            height=source.file.height,
            frames=source.file.frames,
        )
        pending.stored.append(Stored(fresh.file.path, file, vector, self.replaces(fresh)))
        return self.kind(fresh)

    def lost(self, fresh: Fresh) -> Item | None:
        """Return the item of these bytes whose own file is gone: its file has moved here."""
        if fresh.file.path in self.ready:
            return None
        rivals = [
            twin
            for twin in self.content.get(fresh.content, ())
            if twin.path not in self.scanned and self.files.get(twin.path) is twin
        ]
        return min(rivals, key=lambda twin: twin.id not in self.live, default=None)

    def kind(self, fresh: Fresh) -> Kind:
        """Whether a file that gets a vector is added or updated."""
        item = self.files.get(fresh.file.path) or self.ready.get(fresh.file.path)
        return "updated" if item is not None and item.id in self.live else "added"

    def replaces(self, fresh: Fresh) -> bool:
        """Whether the item at this path had other bytes before."""
        item = self.files.get(fresh.file.path) or self.ready.get(fresh.file.path)
        return item is not None and item.file.content != fresh.content

    def store(self, fresh: Fresh, vector: Vectors, picture: Picture) -> Stored:
        """Join a file with its vector; one that changed between hash and decoding must be read again next time."""
        reliable = fresh.data is not None or fresh.unchanged()
        width, height = picture.size
        file = File(
            content=fresh.content if reliable else UNRELIABLE,
            size=fresh.file.size,
            mtime_ns=fresh.mtime_ns if reliable else None,
            width=width,
            height=height,
            frames=picture.frames,
        )
        return Stored(fresh.file.path, file, vector, self.replaces(fresh))

    def kept_from_us(self, scan: Scan) -> tuple[Failure, ...]:
        """Stored files that are there and may not be opened: without a known extension the scanner passes over them."""
        listed = {file.path for file in scan.files} | {failure.path for failure in scan.failed}
        missing = {path: os.path.join(scan.root, path) for path in self.files if path not in listed}  # noqa: PTH118
        return tuple(
            Failure(path, "permission", os.strerror(errno.EACCES))
            for path, absolute in missing.items()
            if os.path.isfile(absolute) and not os.access(absolute, os.R_OK)  # noqa: PTH113
        )

    def gone(self, scan: Scan) -> list[int]:
        """Ids of the items whose files are no longer there; what lies below an unreadable folder may be."""
        unseen = [failure.path + "/" for failure in scan.failed]
        failed = {failure.path for failure in scan.failed}
        return [
            item.id
            for path, item in self.files.items()
            if path not in self.scanned and path not in failed and not any(map(path.startswith, unseen))
        ]
