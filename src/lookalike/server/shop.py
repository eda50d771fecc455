"""The catalogue as the server holds it: opened once an encoder, for reading, shared by all requests."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.named import open_named
from lookalike.errors import NotFoundError
from lookalike.server.settings import Settings

T = TypeVar("T")
_KEPT = 24
"""Columns, legends and maps kept in memory; each is a few bytes an item."""

_COUNTED = 1_000


class Shop:
    """Catalogues by encoder, and what was computed of them, until the revision changes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._guard = threading.Lock()
        self._open: dict[str | None, Catalogue] = {}
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._counts: dict[Hashable, int] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self.store()  # what cannot be opened is refused before anything listens

    def store(self, encoder: str | None = None) -> Catalogue:
        """Return the catalogue with this encoder (the one served, or its first, where None), open for reading.

        Raises:
            EncoderMismatchError: it has no vectors of this encoder.
        """
        name = encoder or self.settings.encoder
        with self._guard:
            if name not in self._open:
                self._open[name] = self._opened(name, readonly=True, threads=self.settings.search_threads)
            return self._open[name]

    def writable(self, encoder: str | None = None) -> Catalogue:
        """Open the catalogue for writing; the caller closes it."""
        return self._opened(encoder or self.settings.encoder, readonly=False, threads=self.settings.threads)

    def _opened(self, name: str | None, *, readonly: bool, threads: int | None) -> Catalogue:
        """Open by name: the one `serve` was started with is loaded and compared, one of a request only looked up."""
        folder = self.settings.catalogue
        if name == self.settings.encoder:
            return open_named(folder, name, readonly=readonly, threads=threads)
        return Catalogue.open(folder, encoder=name, readonly=readonly, threads=threads)

    def kept(self, store: Catalogue, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned for this key at this revision, made once, also when many ask together."""
        whole = (store.card.digest, store.revision, key)
        with self._guard:
            if whole in self._kept:
                self._kept.move_to_end(whole)
                found: T = self._kept[whole]
                return found
            lock = self._making.setdefault(whole, threading.Lock())
        with lock:
            with self._guard:
                if whole in self._kept:
                    made: T = self._kept[whole]
                    return made
            try:
                made = make()
            finally:
                with self._guard:
                    self._making.pop(whole, None)
            with self._guard:
                self._kept[whole] = made
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return made

    def count(self, store: Catalogue, where: str | None) -> int:
        """Return how many items pass a filter, counted once a revision."""
        if where is None:
            return len(store)
        key = (store.card.digest, store.revision, where)
        found = self._counts.get(key)
        if found is None:
            if len(self._counts) >= _COUNTED:
                self._counts.clear()
            found = self._counts[key] = len(store.ids(where=where))
        return found

    @property
    def runs(self) -> Path:
        """Where this server saves evaluations."""
        return self.settings.runs or self.settings.catalogue / "runs"

    @property
    def trained(self) -> Path:
        """Where this server saves training runs."""
        return self.settings.catalogue / "trained"

    @functools.cached_property
    def shown(self) -> str:
        """The catalogue as commands name it."""
        return str(self.settings.catalogue)

    def close(self) -> None:
        """Let go of the files."""
        with self._guard:
            for catalogue in self._open.values():
                catalogue.close()
            self._open.clear()


def existing(folder: Path) -> Path:
    """Return the folder of a catalogue.

    Raises:
        NotFoundError: there is none.
    """
    if not (folder / "catalogue.db").is_file():
        raise NotFoundError(
            f"There is no catalogue at {str(folder)!r}.", hint="Make one: lookalike index NAME.la FOLDER"
        )
    return folder
