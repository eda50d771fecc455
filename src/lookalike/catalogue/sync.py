"""A folder into a catalogue: only new and changed bytes are embedded, and a kill costs one chunk.

Every scanned file ends in exactly one of added, updated, moved, unchanged, failed. Bytes decide: a file whose size and
time are as stored is not opened; one whose time changed is hashed, and embedded only if its hash is another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from lookalike import threads as processors
from lookalike.catalogue import changes, indexes, view
from lookalike.catalogue.changes import Changes, Known
from lookalike.catalogue.reading import Fresh
from lookalike.catalogue.work import Here, Work
from lookalike.embed.pipeline import Chunk, Progress
from lookalike.errors import CatalogueError, ImageError, InputError, NotFoundError
from lookalike.images.load import Failure
from lookalike.images.scan import Scan, ScannedFile, scan

if TYPE_CHECKING:
    from lookalike.catalogue.catalogue import Catalogue

COMMIT_ROWS = 256
COMMIT_S = 2.0
"""What a kill can cost: a chunk is committed at this many files or after this long, whichever comes first."""


@dataclass(frozen=True, kw_only=True)
class SyncResult:
    """What a sync did. The first four and `unchanged` and `failed` are all scanned files; `removed` are those gone."""

    added: int
    updated: int
    moved: int
    removed: int
    unchanged: int
    failed: tuple[Failure, ...]
    items: int
    """Live items now."""
    revision: int
    skipped: Mapping[str, int]
    """Files that are no pictures, by extension."""
    cancelled: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        counts = {name: getattr(self, name) for name in ("added", "updated", "moved", "removed", "unchanged")}
        return {
            **counts,
            "failed": [failure._asdict() for failure in self.failed],
            "items": self.items,
            "revision": self.revision,
        }

    def __str__(self) -> str:
        counts = {name: getattr(self, name) for name in ("added", "updated", "moved", "removed", "unchanged")}
        return " · ".join(f"{name} {count:,}" for name, count in {**counts, "failed": len(self.failed)}.items())


def sync(
    catalogue: Catalogue,
    *,
    strict: bool = False,
    allow_empty: bool = False,
    batch_size: int = 32,
    progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    source: Callable[[], Scan] | None = None,
    work: Work | None = None,
) -> SyncResult:
    """Bring a catalogue up to date with its folder.

    Committed a chunk at a time, so that a killed or interrupted run repeats at most one chunk; with `strict` all is
    one commit, and the first file that fails undoes it. `cancel` is asked between chunks: what is embedded by then is
    kept, nothing is removed, and the result says so. `source` lists the files where they are not those of the
    catalogue's folder (a manifest, an object store); `work` reads and embeds them where not this process does.

    The surprise: a file that can no longer be read loses its vector, because its old bytes are gone; its id and
    columns stay until the file itself is gone.

    Raises:
        CatalogueError: somebody else is writing, or the folder is empty though the catalogue is not (an unmounted
            drive looks like that; `allow_empty` says it is meant).
        NotFoundError: the folder is not there.
        ImageError: a file failed, with `strict`.
    """
    listed = source or _folder(catalogue)
    threads = processors.resolve(catalogue.threads)
    with catalogue.database.writing("sync"):
        known = Known.load(catalogue)
        found = _without(listed(), str(catalogue.folder.absolute()))
        found = replace(found, failed=(*found.failed, *known.kept_from_us(found)))
        if known.files and not found.files and not allow_empty:
            raise CatalogueError(
                f"The folder {found.root!r} holds no pictures, and the catalogue {len(known.files)} of it.",
                hint="If it is an unmounted drive, mount it; if the pictures are gone, say so with allow_empty "
                "(--allow-empty).",
            )
        run = _Run(
            catalogue,
            known,
            found,
            strict=strict,
            progress=progress,
            cancel=cancel or (lambda: False),
            work=work or Here(threads),
            batch_size=batch_size,
        )
        if strict:
            with catalogue.database.commit():
                run.all()
        else:
            run.all()
        result = run.result()
        catalogue.database.settle()
        view.refresh(catalogue.database, catalogue.stored)
        indexes.refresh(catalogue.database, catalogue.stored, catalogue.metric)
    return result


@dataclass
class _Run:
    """One sync: files go in by the generator `unseen`, vectors come back by `take`, `commit` writes both."""

    catalogue: Catalogue
    known: Known
    scan: Scan
    strict: bool
    progress: Callable[[Progress], None] | None
    cancel: Callable[[], bool]
    work: Work
    batch_size: int
    pending: Changes = field(default_factory=Changes)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(changes.KINDS, 0))
    failed: list[Failure] = field(default_factory=list)
    sent: list[Fresh] = field(default_factory=list)
    cancelled: bool = False
    committed_at: float = field(default_factory=time.monotonic)

    def all(self) -> None:
        """Read, embed and store what is new; then take out what is gone."""
        for failure in self.scan.failed:
            self.fail(failure)
        fresh = self.unseen()
        first = next(fresh, None)
        if first is not None:  # a sync that embeds nothing does not load the encoder either
            items = chain([first], fresh)
            for chunk in self.work.embed(items, self.catalogue.encoder, self.batch_size):
                self.take(chunk)
                self.report()
                self.cancelled = self.cancelled or self.cancel()
                if self.cancelled:
                    break
                if len(self.pending) >= COMMIT_ROWS or time.monotonic() - self.committed_at > COMMIT_S:
                    self.commit()
        self.report()
        if not self.cancelled:
            self.pending.removed = self.known.gone(self.scan)
            self.counts["removed"] = sum(number in self.known.live for number in self.pending.removed)
            self.pending.forgotten = sorted(self.known.failing - {failure.path for failure in self.failed})
        self.commit()

    def unseen(self) -> Iterator[Fresh]:
        """Yield the files whose bytes must go through the encoder; settle all others on the way."""
        look = []
        for file in self.scan.files:
            if self.known.as_stored(file):
                self.counts["unchanged"] += 1
            else:
                look.append(file)
        self.report()
        for fresh in self.work.read(look, all_new=not self.known.content):
            if self.cancel():
                self.cancelled = True
                return
            if isinstance(fresh, Failure):
                self.fail(fresh)
                continue
            kind = self.known.settle(fresh, self.pending)
            if kind is None:
                self.sent.append(fresh)
                yield fresh
            else:
                self.counts[kind] += 1

    def take(self, chunk: Chunk) -> None:
        """Note the vectors and failures of some files that went through the encoder."""
        for position, vector, picture in zip(chunk.positions, chunk.vectors, chunk.pictures, strict=True):
            fresh = self.sent[int(position)]
            self.counts[self.known.kind(fresh)] += 1
            self.pending.stored.append(self.known.store(fresh, vector, picture))
            fresh.release()
        for position, failure in zip(chunk.failed, chunk.failures, strict=True):
            fresh = self.sent[int(position)]
            self.fail(Failure(fresh.file.path, failure.reason, failure.detail))
            fresh.release()

    def fail(self, failure: Failure) -> None:
        """Note a file without a vector."""
        if self.strict:
            raise ImageError(*failure)
        self.failed.append(failure)
        self.pending.failed.append(failure)

    def commit(self) -> None:
        """Write what is pending, if anything is."""
        self.pending.drop_known_failures(self.known)
        if self.pending:
            self.pending.write(self.catalogue)
            self.pending = Changes()
        self.committed_at = time.monotonic()

    def report(self) -> None:
        """Tell the caller how far this is."""
        if self.progress is not None:
            settled = sum(count for kind, count in self.counts.items() if kind != "removed")
            total = len(self.scan.files) + len(self.scan.failed)
            self.progress(Progress(settled + len(self.failed), total, len(self.failed)))

    def result(self) -> SyncResult:
        """Count what was done."""
        return SyncResult(
            **self.counts,
            failed=tuple(sorted(self.failed)),
            items=len(self.catalogue),
            revision=self.catalogue.revision,
            skipped=self.scan.skipped,
            cancelled=self.cancelled,
        )


def _folder(catalogue: Catalogue) -> Callable[[], Scan]:
    root = catalogue.root
    if root is None:
        raise InputError("This catalogue holds ready vectors and has no folder to sync.", hint="Set one with set_root.")
    if not root.exists():
        raise NotFoundError(
            f"The folder of this catalogue, {str(root)!r}, is not there.",
            hint="Mount it, or say where it is now: set_root, or lookalike sync --root FOLDER.",
        )
    return lambda: scan(root, leave_out=catalogue.folder)


def _without(found: Scan, catalogue: str) -> Scan:
    """Leave out the catalogue itself where it lies inside the folder of pictures."""
    prefix = catalogue.rstrip("/\\")
    files: tuple[ScannedFile, ...] = tuple(
        file for file in found.files if not (file.absolute.startswith(prefix) and file.absolute[len(prefix)] in "/\\")
    )
    return Scan(found.root, files, found.skipped, found.failed)
