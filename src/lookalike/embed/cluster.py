"""Work spread over processes and machines by Dask: blocks in, results out in order, a bounded number on their way."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from lookalike import network
from lookalike import threads as processors
from lookalike.embed.encoder import Card, Encoder
from lookalike.embed.registry import encoder as resolve
from lookalike.errors import EncoderMismatchError, InputError, LookalikeError, MissingExtraError

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 3
"""Blocks on their way for each task slot: one that runs, one that waits there, one whose result travels."""
_RETRIES = 2
_SLOTS_S = 5.0
CONNECT_S = 15
# Dask has glibc give every freed page back at once. A picture's pages are then new ones, zeroed by the kernel: a third
# more processor time (benchmarks/engines.py), for memory that the next picture takes again.
_NO_TRIMMING = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
_guard = threading.Lock()
_loaded: dict[str, Encoder] = {}


class ClusterError(LookalikeError, RuntimeError):
    """The cluster cannot be reached, lost all its workers, or a block brought several of them down."""


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder as it travels: by name, checked by its card where it arrives; or itself, where it has no name."""

    card: Card
    pickled: bytes | None = None

    @classmethod
    def of(cls, encoder: Encoder) -> EncoderSpec:
        """Describe an encoder: what its name stands for here it stands for there, or the card says it does not."""
        card = encoder.card
        try:
            named = resolve(card.name, normalise=card.normalised).card.digest == card.digest
        except LookalikeError:
            named = False
        if named:
            return cls(card)
        try:
            return cls(card, _cloudpickle().dumps(encoder))
        except Exception as error:
            raise InputError(
                f"The encoder {card.name!r} cannot be sent to other processes: {error}.",
                hint="Name it python:package.module:callable, importable on every worker.",
            ) from error

    def load(self, threads: int) -> Encoder:
        """Return the encoder, once a process.

        Raises:
            EncoderMismatchError: the name stands for another encoder on this machine; the differences are named.
        """
        with _guard:
            if self.card.digest not in _loaded:
                _loaded[self.card.digest] = self._load(threads)
            return _loaded[self.card.digest]

    def _load(self, threads: int) -> Encoder:
        if self.pickled is not None:
            travelled: Encoder = pickle.loads(self.pickled)
            return travelled
        found = resolve(self.card.name, normalise=self.card.normalised, threads=threads)
        if found.card.digest != self.card.digest:
            raise EncoderMismatchError(
                f"A worker has another {self.card.name} (ours first): {'; '.join(self.card.differences(found.card))}.",
                hint="Install the same versions and weights on every worker.",
            )
        return found


class Cluster:
    """Workers of a Dask scheduler: one somewhere else, by its address, or some processes of this machine.

    >>> Cluster.parse("dask"), Cluster.parse("dask:tcp://10.0.0.5:8786")
    ('', 'tcp://10.0.0.5:8786')
    """

    def __init__(self, client: Any, local: Any) -> None:
        self.client = client
        self._local = local
        self._slots, self._asked_at = 0, float("-inf")

    @staticmethod
    def parse(text: str) -> str:
        """Return the scheduler's address in `dask[:ADDRESS]`, empty for a cluster of this machine.

        Raises:
            InputError: anything else.
        """
        kind, _, address = text.partition(":")
        if kind != "dask":
            raise InputError(f"{text!r} is no place to work on.", hint="Write dask, or dask:tcp://scheduler:8786.")
        return address

    @classmethod
    def connect(cls, address: str = "", *, workers: int | None = None, threads: int | None = None) -> Cluster:
        """Join the scheduler at `address`, or start `workers` processes here (one a usable processor where None).

        Raises:
            ClusterError: nobody answers there.
            InputError: the scheduler is on another machine, and none may be asked offline.
            MissingExtraError: dask.distributed is not installed.
        """
        if address:
            network.check(f"The scheduler {address!r}", [network.host_of(address)])
        library = _distributed()
        if not address:
            usable = processors.resolve(threads)
            count = workers or usable
            with importlib.import_module("dask").config.set(_NO_TRIMMING):
                local = library.LocalCluster(
                    n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                )  # fmt: skip
            return cls(library.Client(local, set_as_default=False), local)
        try:
            client = library.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"No Dask scheduler answers at {address!r}: {error}.", hint="Start one with: dask scheduler"
            ) from error
        return cls(client, None)

    @property
    def dashboard(self) -> str:
        """Where a browser can watch; empty where the package behind it, bokeh, is not installed."""
        there = importlib.util.find_spec("bokeh") is not None
        return str(self.client.dashboard_link or "") if there else ""

    @property
    def slots(self) -> int:
        """Tasks that run at the same time; workers come and go, so the scheduler is asked again now and then."""
        if time.monotonic() - self._asked_at > _SLOTS_S:
            self._slots, self._asked_at = self._count(), time.monotonic()
        return self._slots

    def _count(self) -> int:
        found = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["nthreads"]) for worker in found)

    def threads_a_task(self) -> int:
        """Threads a task may use on its own: a processor's share where workers run one task at a time here."""
        return max(1, processors.usable() // max(1, self.slots)) if self._local is not None else 1

    def stream(self, function: Callable[[T], R], blocks: Iterable[T]) -> Generator[R]:
        """Yield `function(block)` in the order of the blocks, whose iterable is read no further than keeps all busy.

        A block whose worker dies is done again by another.

        Raises:
            ClusterError: the connection is lost, or a block brought down several workers.
        """
        waiting: deque[Any] = deque()
        try:
            for block in blocks:
                waiting.append(self.client.submit(function, block, pure=False, retries=_RETRIES))
                while len(waiting) >= _AHEAD * max(1, self.slots):
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            if waiting:
                self.client.cancel(list(waiting), force=True)

    def _result(self, future: Any) -> Any:
        library = _distributed()
        try:
            return future.result()
        except library.KilledWorker as error:
            raise ClusterError(
                f"A block of pictures brought down every worker that tried it: {error}.",
                hint="A worker that runs out of memory dies: give each more of it, or run fewer on a machine.",
            ) from error
        except (OSError, TimeoutError, library.CancelledError) as error:
            if isinstance(error, LookalikeError):
                raise
            raise ClusterError(
                f"The connection to the cluster is lost: {error}.",
                hint="What is committed stays: the same command goes on from there.",
            ) from error
        finally:
            future.release()

    def close(self) -> None:
        """Leave the scheduler; stop the processes started here."""
        self.client.close()
        if self._local is not None:
            self._local.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@functools.cache
def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("distributed", "dask"):
            raise
        raise MissingExtraError("Work on a Dask cluster", "cluster") from error


def _cloudpickle() -> Any:
    return importlib.import_module("cloudpickle")
