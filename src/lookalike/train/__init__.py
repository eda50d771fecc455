"""Labels to better vectors: sampling, mining, losses, a head or a whole backbone, and the run that is an encoder.

Nothing below `train` imports it, and everything here but the training itself works without torch:
`lookalike.train.triplets` needs numpy alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lookalike.errors import MissingExtraError

if TYPE_CHECKING:
    from lookalike.train.losses import LOSSES, make_loss
    from lookalike.train.material import Material
    from lookalike.train.records import EpochRecord
    from lookalike.train.run import train
    from lookalike.train.settings import Backbone, HeadSettings, Settings
    from lookalike.train.trained import Trained

__all__ = [
    "LOSSES",
    "Backbone",
    "EpochRecord",
    "HeadSettings",
    "Material",
    "Settings",
    "Trained",
    "make_loss",
    "train",
]

_HOME = {
    "LOSSES": "losses",
    "Backbone": "settings",
    "EpochRecord": "records",
    "HeadSettings": "settings",
    "Material": "material",
    "Settings": "settings",
    "Trained": "trained",
    "make_loss": "losses",
    "train": "run",
}
_EXTRA = ("torch", "pytorch_metric_learning", "accelerate")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for.

    Raises:
        MissingExtraError: torch, pytorch-metric-learning or accelerate is not installed.
    """
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise MissingExtraError("Training", "train") from error
