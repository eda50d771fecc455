"""One figure as a script measured it, and the line of JSON in which it is handed on."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OURS = "lookalike"
MEASURED, EXACT = "measured", "exact"
"""Measured: time and memory, another number on every run. Exact: the same on every run and every machine."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of one contender. Figures of one run with the same key stand in one row of the table, side by side."""

    key: str
    """`script.name`, the same at every size."""
    what: str
    """The figure in words, with the size it was measured at."""
    value: float | None
    """None where it could not be measured; `note` says why."""
    unit: str
    who: str = OURS
    kind: str = MEASURED
    small: bool = False
    """Measured at a smaller size than the one that was promised."""
    note: str = ""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Give a script the option by which the table is made."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="append every figure to this file, a line each")


def write(path: Path | None, figures: Iterable[Figure]) -> None:
    """Append figures to a file; nothing where no file was asked for."""
    if path is None:
        return
    with path.open("a", encoding="utf-8") as file:
        for figure in figures:
            file.write(json.dumps(dataclasses.asdict(figure), ensure_ascii=False) + "\n")


def read(path: Path) -> list[Figure]:
    """Return the figures of a file, in their order; none where there is no file."""
    if not path.exists():
        return []
    return [Figure(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
