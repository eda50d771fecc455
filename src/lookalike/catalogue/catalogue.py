"""A catalogue on disk: items, their vectors by one encoder or several, and answers to queries."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from lookalike.arrays import Ids
from lookalike.catalogue import cards, columns, database, generations, indexes, items, making, view, where
from lookalike.catalogue.backup import backup
from lookalike.catalogue.cards import StoredEncoder
from lookalike.catalogue.database import Database
from lookalike.catalogue.editing import Editing
from lookalike.catalogue.items import Item
from lookalike.catalogue.searching import Searching
from lookalike.catalogue.stored_path import shown
from lookalike.catalogue.sync import SyncResult, sync
from lookalike.catalogue.verify import Verification, verify
from lookalike.catalogue.work import Work
from lookalike.embed.encoder import Card, Encoder
from lookalike.embed.pipeline import Progress
from lookalike.embed.registry import EncoderLike
from lookalike.embed.registry import encoder as resolve
from lookalike.errors import CatalogueError, EncoderMismatchError, InputError, UnknownNameError
from lookalike.images.load import Failure
from lookalike.images.scan import Scan
from lookalike.index.kinds import Settings, settings_of
from lookalike.index.neighbours import Metric, check_metric


class Catalogue(Searching, Editing):
    """The pictures of a folder (or ready vectors) and their vectors, kept in a directory that survives anything.

    Make one with `create`, open one with `open`; both are context managers. Reading is safe from several threads and
    processes, also while another process writes; one process writes at a time.

    >>> import tempfile, numpy as np
    >>> from lookalike.embed.encoder import Card
    >>> card = Card(name="toy", weights="1", dim=2, pooling="none")
    >>> with tempfile.TemporaryDirectory() as folder, Catalogue.create(f"{folder}/shop.la", encoder=card) as shop:
    ...     _ = shop.upsert(["a.jpg", "b.jpg"], np.array([[1, 0], [0, 1]]), columns={"label": ["mug", "cup"]})
    ...     shop.search(np.array([1, 0]), k=1)[0][0], shop.ids(where="label = 'cup'").tolist()
    (Candidate(path='a.jpg', score=1.0), [2])
    """

    def __init__(
        self, base: Database, encoder: StoredEncoder, metric: Metric, maker: Encoder | None, threads: int | None
    ) -> None:
        self.database = base
        self.stored = encoder
        self._metric = metric
        self._maker = maker
        self._loading = threading.Lock()
        self.threads = threads
        self._view: view.View | None = None
        self._index: indexes.Open | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        root: str | os.PathLike[str] | None = None,
        encoder: EncoderLike | Card = "builtin:effnet-lite0",
        metric: str = "cosine",
        dtype: str = "float32",
        normalise: bool = True,
        threads: int | None = None,
    ) -> Catalogue:
        """Make an empty catalogue of the pictures below `root`; `sync` fills it, or `upsert` where root is None.

        `dtype` is how vectors are stored, `float32` or `float16` (half the bytes, three digits). `normalise=False`
        asks the encoder for raw lengths, for which `ip` and `l2` differ from `cosine`.

        Raises:
            CatalogueError: something is already there, or it cannot be written.
            NotFoundError: no folder `root`.
            UnknownNameError: an encoder, metric or dtype in no table.
        """
        folder = Path(path)
        checked, kept = check_metric(metric), cards.check_dtype(dtype)
        maker = None if isinstance(encoder, Card) else resolve(encoder, normalise=normalise, threads=threads)
        card = encoder if isinstance(encoder, Card) else maker.card if maker is not None else None
        if card is None:
            raise InputError("A catalogue needs an encoder or a card.")
        top = making.existing(root) if root is not None else ""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CatalogueError(
                f"{str(folder)!r} exists and is not empty.",
                hint="Open it, or sync it: lookalike sync; or choose another name.",
            )
        making.make(folder, top, card, kept, checked)
        return cls.open(folder, encoder=maker if maker is not None else card, threads=threads)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        encoder: EncoderLike | Card | None = None,
        metric: str | None = None,
        readonly: bool = False,
        threads: int | None = None,
    ) -> Catalogue:
        """Open a catalogue with the encoder asked for, or its first.

        `threads` hold for decoding, the encoder and search (all usable processors where None).
        Where the folder cannot be written it opens for reading, and refuses to write by name.

        Raises:
            NotFoundError: no catalogue at `path`.
            EncoderMismatchError: no vectors of this encoder (preprocessing, dimension, …) or metric; differences named.
            CatalogueError: damaged, made by a newer version, or not readable.
        """
        folder = Path(path)
        base = Database(folder, readonly=readonly or not os.access(folder, os.W_OK))
        try:
            with base.reading() as connection:
                known = cards.listed(connection)
                own = check_metric(str(database.setting(connection, "metric")))
            if metric is not None and check_metric(metric) != own:
                raise EncoderMismatchError(
                    f"The catalogue {str(folder)!r} was made for the metric {own!r}, not {metric!r}.",
                    hint="A metric is chosen once: open it without one, or make another catalogue.",
                )
            named = encoder if encoder is None or isinstance(encoder, str | Card) else resolve(encoder, threads=threads)
            maker = None if named is None or isinstance(named, str | Card) else named
            return cls(base, cards.choose(known, named, str(folder)), own, maker, threads)
        except BaseException:
            base.close()
            raise

    def close(self) -> None:
        """Let go of the files. Later calls raise CatalogueError."""
        self._view = self._index = None
        self.database.close()

    def __enter__(self) -> Catalogue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Catalogue({str(self.folder)!r}, encoder={self.card.name!r}, metric={self.metric!r})"

    @property
    def folder(self) -> Path:
        """Where the catalogue is."""
        return self.database.folder

    @property
    def readonly(self) -> bool:
        """Whether it was opened for reading only."""
        return self.database.readonly

    @property
    def revision(self) -> int:
        """Number of the last commit."""
        return self.database.revision()

    @property
    def metric(self) -> Metric:
        """The metric chosen when the catalogue was made."""
        return self._metric

    @property
    def card(self) -> Card:
        """Card of the encoder it was opened with."""
        return self.stored.card

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.stored.card.dim

    @property
    def encoder(self) -> Encoder:
        """The encoder itself, loaded when first needed.

        Raises:
            EncoderMismatchError: what loads under this name today makes other vectors than those stored.
            UnknownNameError: it was an object or a function; open the catalogue with it.
        """
        with self._loading:  # several threads may ask at once, and a model is large
            if self._maker is None:
                try:
                    maker = resolve(self.card.name, normalise=self.card.normalised, threads=self.threads)
                except UnknownNameError as error:
                    error.hint += " If it was an object, open the catalogue with it (--encoder python:MODULE:OBJECT)."
                    raise
                cards.choose([self.stored], maker, str(self.folder))
                self._maker = maker
            return self._maker

    @property
    def root(self) -> Path | None:
        """The folder the paths start from; None for a catalogue of ready vectors."""
        with self.database.reading() as connection:
            path = shown(connection.execute("SELECT path FROM roots WHERE id = ?", (items.ROOT,)).fetchone()[0])
        return Path(path) if path else None

    def sync(
        self,
        *,
        strict: bool = False,
        allow_empty: bool = False,
        batch_size: int = 32,
        progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
        source: Callable[[], Scan] | None = None,
        work: Work | None = None,
    ) -> SyncResult:
        """Bring the catalogue up to date with its folder; see `lookalike.catalogue.sync.sync`."""
        return sync(
            self,
            strict=strict,
            allow_empty=allow_empty,
            batch_size=batch_size,
            progress=progress,
            cancel=cancel,
            source=source,
            work=work,
        )

    def verify(self, *, sample: int = 32, seed: int = 0) -> Verification:
        """Check database, counts, derived files, and a sample of files; see `lookalike.catalogue.verify.verify`."""
        return verify(self, sample=sample, seed=seed)

    def backup(self, destination: str | os.PathLike[str]) -> Path:
        """Copy the catalogue to a new folder while it is in use; see `lookalike.catalogue.backup.backup`."""
        return backup(self, destination)

    def refresh(self) -> None:
        """Write the derived vector file now, so that the next process starts at once; `sync` does it where it pays."""
        with self.database.writing("refresh"):
            view.remake(self.database, self.stored)

    def build_index(
        self, kind: str | Settings = "hnsw", *, seed: int = 0, progress: Callable[[int], None] | None = None
    ) -> indexes.IndexInfo | None:
        """Build an approximate index and use it from now on; `flat` goes back to exact search (and returns None).

        Items that come or change later are found at once, exactly, beside the index; `sync` rebuilds it once that
        costs more than it saves. The same seed builds the same index.

        Raises:
            UnknownNameError: no such kind.
            InputTypeError: neither a kind nor its settings.
            InputError: nothing to index, or settings that are impossible for these vectors.
            CatalogueError: it cannot be written; what answered before still does.
        """
        settings = settings_of(kind)
        with self.database.writing("build index"):
            if settings.kind == "flat":
                generations.forget(self.database, self.stored, indexes.KIND)
            else:
                indexes.make(
                    self.database,
                    self.stored,
                    self.metric,
                    settings,
                    seed=seed,
                    progress=progress,
                )
        return self.index_info()

    def index_info(self) -> indexes.IndexInfo | None:
        """What index answers, with the overlap with exact search measured when it was built; None: search is exact."""
        return indexes.info(self.database, self.stored)

    def cards(self) -> list[Card]:
        """Cards of every encoder that has vectors here, first added first."""
        with self.database.reading() as connection:
            return [encoder.card for encoder in cards.listed(connection)]

    def columns(self) -> list[columns.Column]:
        """The user's columns."""
        with self.database.reading() as connection:
            return columns.listed(connection)

    def column(self, name: str, ids: Ids | None = None) -> list[where.Value]:
        """Values of a column, user's or built-in, for these items (all live ones where None), None where missing."""
        with self.database.reading() as connection:
            wanted = self.ids() if ids is None else ids
            field = columns.BUILTIN.get(name) or columns.named(connection, name).stored_field
            found = items.values_of(connection, field.sql, wanted)
        return columns.read([found.get(int(number)) for number in wanted], field.type)

    def items(self, ids: Ids | None = None) -> list[Item]:
        """Everything kept of these items (all live ones where None), in this order."""
        with self.database.reading() as connection:
            wanted = self.ids() if ids is None else ids
            found = items.by_id(connection, wanted)
        for number in wanted:
            if int(number) not in found:
                raise InputError(f"The store holds no item {int(number)}.")
        return [found[int(number)] for number in wanted]

    def failures(self) -> list[Failure]:
        """Files of the last sync that have no vector, and why."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT path, reason, detail FROM failures ORDER BY path").fetchall()
        return [Failure(shown(path), reason, detail) for path, reason, detail in rows]

    def files(self, ids: Ids) -> list[Path]:
        """Absolute paths of these items.

        Raises:
            InputError: the catalogue holds ready vectors without a folder.
        """
        root = self.root
        if root is None:
            raise InputError("This catalogue has no folder of pictures.", hint="Set one with set_root.")
        return [root / path for path in self.paths(ids)]

    @contextmanager
    def writing(self, purpose: str, *, wait: float = 0.0) -> Iterator[None]:
        """Hold the writer's lock over several changes."""
        with self.database.writing(purpose, wait=wait):
            yield
