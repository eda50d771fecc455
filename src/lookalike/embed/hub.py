"""Where model files lie on this machine, and what to say where they do not.

Encoders are always opened from local files: looking a file up opens no socket and imports no model library, so a
missing one is named at once. Only `pull` (in `embed/download.py`) goes out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.embed.extras import installed
from lookalike.errors import NotFoundError

_TRUE = {"1", "ON", "YES", "TRUE"}
OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "LOOKALIKE_OFFLINE")


class MissingWeightsError(NotFoundError):
    """A model whose files are not on this machine; `name` is the encoder's."""

    def __init__(self, name: str, missing: str, looked: Sequence[str | Path], how: str) -> None:
        places = ", ".join(repr(str(place)) for place in looked)
        super().__init__(f"{name} is not on this machine: {missing} is missing; looked in {places}.", hint=how)
        self.name = name
        self.looked = tuple(str(place) for place in looked)


@dataclass(frozen=True)
class Repo:
    """A repository of the Hugging Face hub, as a name writes it: `ORG/NAME` or `ORG/NAME@REVISION`."""

    id: str
    revision: str = "main"

    @classmethod
    def parse(cls, text: str) -> Repo:
        """Take `ORG/NAME@REVISION` apart.

        >>> Repo.parse("facebook/dinov2-base@abc123")
        Repo(id='facebook/dinov2-base', revision='abc123')
        """
        name, _, revision = text.partition("@")
        return cls(name, revision or "main")

    @property
    def folder(self) -> Path:
        """The repository's folder in the hub's cache, there or not."""
        return hub_cache() / f"models--{self.id.replace('/', '--')}"

    def snapshot(self) -> Path | None:
        """Return the folder of the wanted revision's files, or None where it was never fetched."""
        pointer = self.folder / "refs" / self.revision
        with contextlib.suppress(OSError):
            commit = pointer.read_text(encoding="utf-8").strip()
            if (found := self.folder / "snapshots" / commit).is_dir():
                return found
        direct = self.folder / "snapshots" / self.revision
        return direct if direct.is_dir() else None

    def file(self, *names: str) -> Path | None:
        """Return the first of these files that is there."""
        if (folder := self.snapshot()) is None:
            return None
        return next((folder / name for name in names if (folder / name).is_file()), None)


def hub_cache() -> Path:
    """Return the hub's cache folder by its own environment variables (huggingface_hub, `constants.py`)."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if value := os.environ.get(variable):
            return Path(value).expanduser()
    if value := os.environ.get("HF_HOME"):
        return Path(value).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "huggingface" / "hub"


def torch_cache() -> Path:
    """Return torch's folder of downloaded checkpoints by its own environment variables (`torch.hub.get_dir`)."""
    if value := os.environ.get("TORCH_HOME"):
        return Path(value).expanduser() / "hub" / "checkpoints"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "torch" / "hub" / "checkpoints"


def own_cache() -> Path:
    """Return our own folder of derived files: `LOOKALIKE_CACHE`, or `lookalike` in the user's cache."""
    if value := os.environ.get("LOOKALIKE_CACHE"):
        return Path(value).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "lookalike"


def is_offline() -> bool:
    """Tell whether the environment forbids the network, by any of the usual variables."""
    return any(os.environ.get(variable, "").upper() in _TRUE for variable in OFFLINE_VARIABLES)


def how_to_supply(name: str, *, folder: str = "") -> str:
    """Return the sentence that says how a missing model comes here."""
    other = f" Without a network, {folder}." if folder else ""
    return f"Fetch it once, with a network, by: lookalike models pull {name}.{other}"


def is_path(text: str) -> bool:
    """Tell whether a model is written as a path: absolute, `./`, `../`, `~`, or an existing folder or file.

    >>> is_path("/models/dino"), is_path("./dino"), is_path("facebook/dinov2-base")
    (True, True, False)
    """
    return text.startswith(("/", "./", "../", "~", ".\\", "..\\")) or Path(text).is_absolute() or Path(text).exists()


@contextlib.contextmanager
def local_only() -> Iterator[None]:
    """Hold the model libraries to files that are here; what they miss is an error instead of a request."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    constants = _hub_constants()
    offline = getattr(constants, "HF_HUB_OFFLINE", None)
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # the variable is read once, at import
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if constants is not None:
            constants.HF_HUB_OFFLINE = offline


def _hub_constants() -> Any:
    if not installed("huggingface_hub"):
        return None
    import importlib

    return importlib.import_module("huggingface_hub.constants")
