"""Two runs of one protocol, query by query; and many runs, best first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import ProtocolError, UnknownNameError
from lookalike.evaluate.paired import Compared, compare_values
from lookalike.evaluate.saved import SavedRun, load_run


def compare(a: SavedRun, b: SavedRun, *, seed: int = 0) -> dict[str, Compared]:
    """Compare every metric both runs have, paired by query, with interval and permutation p-value.

    Raises:
        ProtocolError: the runs asked other questions; what differs is named.
    """
    _same_protocol(a, b)
    order = {name: row for row, name in enumerate(b.names)}
    rows = np.array([order[name] for name in a.names], dtype=np.int64)
    second = {name: values[rows] for name, values in b.per_query.items()}
    return compare_values(a.per_query, second, groups=a.groups or None, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Place:
    """One line of a leaderboard."""

    run: str
    protocol: str
    encoder: str
    num_evaluated: int
    value: float
    interval: tuple[float, float]


def leaderboard(folders: Iterable[Path], metric: str = "recall@1") -> list[Place]:
    """Order saved runs by a metric, best first, within each protocol: numbers of two protocols are never one list.

    Raises:
        UnknownNameError: no run has that metric; those there are are listed.
    """
    places, known = [], set()
    for folder in folders:
        report = load_run(folder).report
        known |= set(report["metrics"])
        if metric in report["metrics"]:
            places.append(_place(folder, report, metric))
    if not places and known:
        raise UnknownNameError("metric in these runs", metric, sorted(known))
    size = {place.protocol: 0 for place in places}
    for place in places:
        size[place.protocol] += 1
    return sorted(
        places, key=lambda place: (-size[place.protocol], place.protocol, -np.nan_to_num(place.value, nan=-1))
    )


def _place(folder: Path, report: dict[str, Any], metric: str) -> Place:
    nan = float("nan")
    value, interval = report["metrics"][metric], report["intervals"].get(metric, [nan, nan])
    encoder = report["encoder"]["name"] if report["encoder"] else "ready vectors"
    return Place(
        run=str(folder), protocol=report["protocol"]["digest"], encoder=encoder, num_evaluated=report["num_evaluated"],
        value=nan if value is None else value, interval=(interval[0], interval[1]),
    )  # fmt: skip


def _same_protocol(a: SavedRun, b: SavedRun) -> None:
    mine, theirs = a.report["protocol"], b.report["protocol"]
    if mine["digest"] == theirs["digest"]:
        return
    rules = [key for key in mine if key not in ("digest", "ks", "seed", "definition")]
    differing = [f"{key}: {mine[key]!r} != {theirs.get(key)!r}" for key in rules if mine[key] != theirs.get(key)]
    raise ProtocolError(
        f"The runs do not measure the same thing: {'; '.join(differing)}.",
        hint="Run both with the same queries, gallery, relevance and metric.",
    )
