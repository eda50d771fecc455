"""transformers' image processors written down as steps."""

from __future__ import annotations

from typing import Any

from lookalike.embed.steps import Steps, as_triple, resampling_name

_RESCALE = 1 / 255


def steps_of(processor: Any) -> Steps | None:
    """Return what a processor does to a picture, or None where `Steps` has no words for it.

    DINOv3's processor scales before it resizes, so that fractions of grey levels stay. Padding, tiling, a crop
    percentage (`crop_pct`) and inputs that are not square have no words. The resampling is Pillow's; the processor's
    own, torchvision's, rounds about one value of 200 to the next grey level (its weights have 16 bits, Pillow's 22).
    """
    asks = {name: getattr(processor, name, None) for name in ("do_resize", "do_rescale", "do_normalize")}
    unusual = ("do_pad", "do_flip_channel_order", "do_image_splitting", "do_thumbnail", "crop_pct", "rescale_offset")
    if not all(asks.values()) or any(getattr(processor, name, None) for name in unusual):
        return None
    if abs(float(processor.rescale_factor) - _RESCALE) > 1e-9:
        return None
    size, crop = _plain(processor.size), _plain(getattr(processor, "crop_size", None))
    cropped = bool(getattr(processor, "do_center_crop", False))
    short, exact = size.get("shortest_edge"), (size.get("height"), size.get("width"))
    if short and not size.get("longest_edge"):
        fit, side = "short", int(short)
    elif exact[0] and exact[0] == exact[1]:
        fit, side = "exact", int(exact[0])
    else:
        return None
    if cropped and (not crop.get("height") or crop["height"] != crop.get("width")):
        return None
    if fit == "short" and not cropped:
        return None  # its output is as long as the picture
    return Steps(
        fit=fit,  # type: ignore[arg-type]
        side=side,
        size=int(crop["height"]) if cropped else side,
        resample=resampling_name(_number(processor.resample)),
        mean=as_triple(processor.image_mean),
        std=as_triple(processor.image_std),
        offset="floor",
        passes="across",
        values="fractional" if "DINOv3" in type(processor).__name__ else "whole",
    )


def _plain(size: Any) -> dict[str, Any]:
    """Return a size as a dictionary; versions differ in the class they hold it in."""
    if size is None:
        return {}
    if isinstance(size, int):
        return {"height": size, "width": size}
    return {key: value for key, value in dict(size).items() if value is not None}


def _number(resample: Any) -> int:
    """Return Pillow's number of a filter that may be Pillow's or torchvision's."""
    named = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
    return named[resample.value] if isinstance(getattr(resample, "value", None), str) else int(resample)
