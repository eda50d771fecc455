"""Which doctests can be collected: modules that need an extra are left out where it is not installed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

_TRAIN = Path(__file__).parent / "src" / "lookalike" / "train"
_TORCH = re.compile(r"^(?:import|from) torch\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the modules of `train` that import torch as they load, where there is no torch."""
    if collection_path.parent != _TRAIN or collection_path.suffix != ".py" or importlib.util.find_spec("torch"):
        return None
    needs = _TORCH.search(collection_path.read_text(encoding="utf-8"))
    return True if needs or collection_path.name in ("export.py", "metric_learning.py") else None
