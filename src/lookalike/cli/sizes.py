"""Numbers of bytes, items and milliseconds as people write them."""

from __future__ import annotations

import math
from typing import Any

import click

# decimal units, as disks and clouds are sold; binary ones by their own names
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


MOST = 10**15
"""A count above this is a slip of the keyboard; below it the products of counts and bytes stay exact."""


class Bytes(click.ParamType[int]):
    """A number of bytes such as `16GB` or `512MiB`."""

    name = "BYTES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a number and its unit."""
        if isinstance(value, int):
            return value
        text = str(value).strip().upper().replace(" ", "")
        digits = text.rstrip("BIKMGT")
        try:
            return int(float(digits) * UNITS[text[len(digits) :]])
        except (ValueError, KeyError, OverflowError):  # OverflowError: infinity
            self.fail(f"{value!r} is no size such as 16GB or 512MiB.", param, ctx)


class Milliseconds(click.ParamType[float]):
    """A duration such as `50ms` or `0.5s`."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a number and its unit; a bare number is milliseconds."""
        if isinstance(value, float):
            return value
        text = str(value).strip().lower()
        number, factor = (
            (text[:-2], 1.0) if text.endswith("ms") else (text[:-1], 1000.0) if text.endswith("s") else (text, 1.0)
        )
        try:
            time = float(number) * factor
        except ValueError:
            time = math.nan
        if not math.isfinite(time):
            self.fail(f"{value!r} is no duration such as 50ms or 0.5s.", param, ctx)
        return time


class Count(click.ParamType[int]):
    """A whole number such as `1000000`, `1e8` or `1_000_000`."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse; 1e8 counts as whole."""
        if isinstance(value, int):
            return value
        try:
            number = float(str(value).replace("_", "").replace(",", ""))
        except ValueError:
            number = 0.5
        if not 1 <= number <= MOST or number != int(number):
            self.fail(f"{value!r} is no whole number from 1 to {MOST:.0e}.", param, ctx)
        return int(number)


def shown(size: float) -> str:
    """Write bytes for a person.

    >>> shown(80_716_288), shown(512)
    ('80.7 MB', '512 B')
    """
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} B"
