"""What an encoder's name asks for: a model, and the options written behind a question mark."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from lookalike.embed.steps import CROPS
from lookalike.errors import InputError, UnknownNameError

POOLINGS = ("published", "cls", "mean", "gem")
DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = ("auto", "float32", "float16", "bfloat16")
RANDOM = "random"
_IDENTITY = ("weights", "pooling", "size", "crop", "flip")
"""Options that change a vector, and so stand in the card's name; the others only change how it is computed."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A name taken apart, for example `timm:vit_small_patch14_dinov2.lvd142m?crop=pad&flip=yes`.

    Everything that changes a vector can be written into the name, so that a catalogue, which keeps the name, opens
    the same encoder again.
    """

    source: str
    model: str
    weights: str = "published"
    """`published`; the path of a file; or `random`, for tests and measurements of speed."""
    pooling: str = "published"
    """`published`, or one of `cls`, `mean`, `gem` where the network has tokens or a feature map."""
    size: int = 0
    """Side of the network's input in pixels; 0: the published one."""
    crop: str = "published"
    """How a picture that is not square becomes square, see `steps.CROPS`."""
    flip: bool = False
    """Average the vectors of the picture and of its mirror image."""
    device: str = "auto"
    dtype: str = "auto"

    def __post_init__(self) -> None:
        for key, known in (("crop", CROPS), ("pooling", POOLINGS), ("dtype", DTYPES)):
            if (value := getattr(self, key)) not in known:
                raise UnknownNameError(f"{key} of an encoder", value, known)
        if self.device.partition(":")[0] not in DEVICES:
            raise UnknownNameError("device of an encoder", self.device, DEVICES)
        if self.size < 0:
            raise InputError(f"size={self.size}: a network's input has at least 1 pixel a side.")

    @property
    def name(self) -> str:
        """The name without what does not change a vector: the card's name.

        >>> Asked.parse("hf", "org/model?device=cpu&flip=yes").name
        'hf:org/model?flip=yes'
        """
        return self._written(_IDENTITY)

    @property
    def full_name(self) -> str:
        """The name with every option: opens the same encoder on the same device."""
        return self._written((*_IDENTITY, "device", "dtype"))

    def _written(self, keys: tuple[str, ...]) -> str:
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        given = [(key, getattr(self, key)) for key in keys if getattr(self, key) != defaults[key]]
        words = "&".join(f"{key}={'yes' if value is True else value}" for key, value in given)
        return f"{self.source}:{self.model}" + (f"?{words}" if words else "")

    @classmethod
    def parse(cls, source: str, text: str) -> Asked:
        """Read what stands behind `source:` in a name.

        Raises:
            UnknownNameError: an option, or a value of one, in no table.
            InputError: an option without a value, given twice, or a size that is no number.

        >>> Asked.parse("timm", "resnet50.a1_in1k?crop=pad&size=320").size
        320
        """
        model, mark, words = text.rpartition("?")
        if not mark or "=" not in words:  # a path may hold a question mark
            return cls(source=source, model=text)
        values: dict[str, Any] = {}
        for word in words.split("&"):
            key, sign, value = word.partition("=")
            if key not in _OPTIONS:
                raise UnknownNameError("encoder option", key, _OPTIONS)
            if not sign or not value or key in values:
                why = "is given twice" if key in values else "has no value"
                raise InputError(f"The option {key!r} in {f'{source}:{text}'!r} {why}.", hint=f"Write {key}=VALUE.")
            values[key] = value
        size, flip = values.pop("size", "0"), values.pop("flip", "no")
        if not size.isdecimal():
            raise InputError(f"size={size!r} is no whole number of pixels.")
        if flip not in ("yes", "no"):
            raise UnknownNameError("flip of an encoder", flip, ("yes", "no"))
        return cls(source=source, model=model, size=int(size), flip=flip == "yes", **values)


_OPTIONS = tuple(field.name for field in dataclasses.fields(Asked) if field.name not in ("source", "model"))
