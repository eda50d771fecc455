"""Losses by name: one frozen settings class each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lookalike.errors import InputTypeError, UnknownNameError
from lookalike.train.loss import Loss
from lookalike.train.pair_losses import (
    NCA,
    Angular,
    Circle,
    Contrastive,
    FastAP,
    IntraPairVariance,
    LiftedStructure,
    Margin,
    MultiSimilarity,
    NPairs,
    NTXent,
    SupCon,
    Triplet,
    TripletSquared,
    TupletMargin,
)
from lookalike.train.proxy_losses import (
    ArcFace,
    CosFace,
    NormalisedSoftmax,
    ProxyAnchor,
    ProxyNCA,
    SoftTriple,
    SubCenterArcFace,
)

LOSSES: Mapping[str, type[Loss]] = MappingProxyType(
    {
        "triplet": Triplet,
        "triplet-squared": TripletSquared,
        "contrastive": Contrastive,
        "ntxent": NTXent,
        "infonce": NTXent,
        "supcon": SupCon,
        "multi-similarity": MultiSimilarity,
        "circle": Circle,
        "margin": Margin,
        "nca": NCA,
        "angular": Angular,
        "lifted-structure": LiftedStructure,
        "tuplet-margin": TupletMargin,
        "intra-pair-variance": IntraPairVariance,
        "n-pairs": NPairs,
        "fast-ap": FastAP,
        "proxy-nca": ProxyNCA,
        "proxy-anchor": ProxyAnchor,
        "arcface": ArcFace,
        "subcenter-arcface": SubCenterArcFace,
        "cosface": CosFace,
        "normalised-softmax": NormalisedSoftmax,
        "soft-triple": SoftTriple,
    }
)


def make_loss(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Loss:
    """Return the settings of the loss of that name with these options; text is converted to the option's type.

    Raises:
        UnknownNameError: no loss of that name, or no option of that name; the right spellings are listed.
        InputTypeError: an option of the wrong type.
        InputError: an option outside its range.

    >>> make_loss("triplet", {"margin": "0.1"})
    Triplet(margin=0.1, squared_distance=False, swap=False, smooth=False)
    """
    if name not in LOSSES:
        raise UnknownNameError("loss", name, LOSSES)
    fields = {field.name: field for field in dataclasses.fields(LOSSES[name])}
    for option in options:
        if option not in fields:
            raise UnknownNameError(f"option of the {name} loss", option, fields or ["(it has none)"])
    return LOSSES[name](**{key: _convert(name, key, value, fields[key].default) for key, value in options.items()})


def name_of(loss: Loss) -> str:
    """Return the name a loss stands under.

    >>> name_of(make_loss("infonce"))
    'ntxent'
    """
    return next(name for name, kind in LOSSES.items() if kind is type(loss))


_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert(loss: str, option: str, value: Any, default: Any) -> Any:
    """Convert text or a whole number to the type of the option's default."""
    try:
        if isinstance(value, str):
            return _WORDS[value.lower()] if isinstance(default, bool) else type(default)(value)
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
    except (ValueError, KeyError) as error:
        raise _wrong_type(loss, option, value, default) from error
    if type(value) is not type(default):
        raise _wrong_type(loss, option, value, default)
    return value


def _wrong_type(loss: str, option: str, value: Any, default: Any) -> InputTypeError:
    return InputTypeError(
        f"{option}={value!r} of the {loss} loss must be {'yes or no' if isinstance(default, bool) else 'a number'}.",
        hint=f"The default is {default!r}.",
    )
