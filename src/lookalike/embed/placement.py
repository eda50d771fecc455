"""On which device and in which precision a network runs, checked against float32 on the processor."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import Vectors
from lookalike.embed.extras import library
from lookalike.embed.rows import normalise, unusable
from lookalike.errors import InputError, LookalikeError

_log = logging.getLogger("lookalike")

TOLERANCES: Mapping[str, float] = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 2e-2}
"""Largest difference of a unit vector's entry that is rounding: about ten times the precision's relative step
(2**-11, 2**-8) through a few dozen layers. A network that overflows in half precision is off by far more."""


@dataclass(frozen=True)
class Placement:
    """A device and a precision."""

    device: str = "cpu"
    dtype: str = "float32"

    def __str__(self) -> str:
        return f"{self.dtype} on {self.device}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run a network inside: no gradients, matrix products in the precision, all else in float32."""
        torch = _torch()
        with torch.inference_mode():
            if self.dtype == "float32":
                yield
                return
            kind = self.device.partition(":")[0]
            with torch.autocast(kind, dtype=getattr(torch, self.dtype)):
                yield


SAFE = Placement()


def wished(device: str, dtype: str) -> Placement:
    """Return the placement asked for; `auto` is a GPU in mixed float16 where there is one, else float32 here.

    Raises:
        InputError: a device that this machine, or this torch, does not have.
    """
    torch = _torch()
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        device = next(name for name in ("cuda", "mps", "cpu") if here[name])
    elif not here[device.partition(":")[0]]:
        raise InputError(
            f"There is no device {device!r} for torch on this machine.",
            hint=f"Here: {', '.join(name for name, there in here.items() if there)}.",
        )
    if dtype == "auto":
        dtype = "float16" if device.startswith("cuda") else "float32"
    return Placement(device, dtype)


def settle(wish: Placement, compute: Callable[[Placement], Vectors], name: str) -> Placement:
    """Return the first of: the wish, float32 on its device, float32 on the processor, that computes what the last does.

    `compute(placement)` returns the vectors of the golden pictures. A step back is said in the log.

    Raises:
        LookalikeError: float32 on the processor gives NaN, infinity or zeros: the weights are broken.
    """
    if wish == SAFE:
        return SAFE
    golden = normalise(compute(SAFE))
    if unusable(golden).any():
        raise LookalikeError(
            f"{name} gives NaN or zeros in float32.", hint="Its weights are damaged; fetch or export them again."
        )
    for placement in dict.fromkeys((wish, Placement(wish.device))):
        if placement == SAFE:
            break
        try:
            worst = float(np.abs(normalise(compute(placement)) - golden).max())
        except (RuntimeError, NotImplementedError) as error:  # an operation the device lacks, or its memory
            _log.warning("%s does not run in %s: %s", name, placement, str(error).partition("\n")[0])
            continue
        if worst <= TOLERANCES[placement.dtype]:
            return placement
        _log.warning("%s in %s is off by %.2g from float32 on the processor; not used", name, placement, worst)
    return SAFE


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether a network failed for want of memory, on any device.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(ValueError("shape"))
    (True, False)
    """
    if isinstance(error, MemoryError):
        return True
    said = str(error).lower()
    known = ("out of memory", "can't allocate memory", "failed to allocate memory", "alloc_failed")
    return isinstance(error, RuntimeError) and any(words in said for words in known)


def _torch() -> Any:
    return library("torch", feature="This encoder", extra="timm")
