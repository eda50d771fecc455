"""Which doctests can be collected: modules that need an extra are left out where it is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

# Imported only by `train` itself, and only once torch is known to be there.
_NEEDS_TORCH = {"distance", "export", "finetune", "head", "loop", "mining", "objective", "processes", "run"}
_TRAIN = Path(__file__).parent / "src" / "lookalike" / "train"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if collection_path.parent == _TRAIN and collection_path.stem in _NEEDS_TORCH:
        return importlib.util.find_spec("torch") is None or None
    return None
