"""What every loss says of itself, and how it is built through pytorch-metric-learning."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from lookalike.errors import InputError, MissingExtraError
from lookalike.train.triplets import check_margin


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What every loss says of itself; the fields of a subclass are its options, checked when it is made."""

    library_class: ClassVar[str]
    """Name in `pytorch_metric_learning.losses`."""
    pairs: ClassVar[bool] = True
    """It compares pictures of a batch with each other, so that a miner may choose which."""
    memory: ClassVar[bool] = False
    """It can compare a batch with a queue of earlier vectors."""
    mining: ClassVar[str] = "all"
    """The miner used where none is named."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(type(self).__name__, field.name, getattr(self, field.name))

    @property
    def squared(self) -> bool:
        """The distance is squared before the loss sees it."""
        return False

    @property
    def triplet_margin(self) -> float:
        """Margin at which an epoch's easy, semi-hard and hard triplets are told apart: its own, or 0.2."""
        return 0.2

    def options(self) -> dict[str, Any]:
        """Return the constructor's arguments for pytorch-metric-learning."""
        return dataclasses.asdict(self)

    def build(self, *, classes: int, dim: int) -> Any:
        """Build the torch module; a loss with proxies gets one a class, of `dim` values.

        Raises:
            MissingExtraError: pytorch-metric-learning is not installed.
        """
        try:
            from lookalike.train.metric_learning import losses
        except ImportError as error:
            raise MissingExtraError("Training", "train") from error
        made = {} if self.pairs else {"num_classes": classes, "embedding_size": dim}
        return getattr(losses, self.library_class)(**self.options(), **made)


_POSITIVE = ("temperature", "scale", "alpha", "beta", "gamma", "softmax_scale", "la")
_AT_LEAST_ONE = ("num_bins", "sub_centers", "centers_per_class")


def _check(loss: str, option: str, value: Any) -> None:
    """Refuse an option outside its range."""
    if isinstance(value, bool):
        return
    if not math.isfinite(value):
        raise InputError(f"{option}={value} of {loss} must be a finite number.")
    if option == "margin":
        check_margin(value)
    if option in _POSITIVE and value <= 0:
        raise InputError(f"{option}={value} of {loss} must be above 0.")
    if option in _AT_LEAST_ONE and value < 1:
        raise InputError(f"{option}={value} of {loss} must be at least 1.")
