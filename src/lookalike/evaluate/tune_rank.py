"""Settings of re-ranking chosen on one part of the identities and reported, once, on the other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.arrays import label_key
from lookalike.errors import InputError
from lookalike.evaluate.metrics import mean, per_query
from lookalike.evaluate.question import ask
from lookalike.evaluate.report import Report
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side
from lookalike.evaluate.staged import Stages, staged_ranks

FEW_IDENTITIES = 4  # two to choose on and two to report on, at the least


@dataclass(frozen=True)
class Trial:
    """One setting and what it reached on the validation queries."""

    stages: Stages
    value: float


@dataclass(frozen=True)
class Chosen:
    """Every trial on the validation queries, the best of them, and its report on the test queries."""

    metric: str
    trials: tuple[Trial, ...]
    best: Trial
    plain: float
    """The metric on the validation queries without any stage."""
    report: Report
    """On the test queries only, with the plain run beside it; the plain run itself where no trial was better."""


def tune_rank(
    queries: Side,
    gallery: Side,
    trials: Sequence[Stages],
    *,
    by: str,
    optimise: str = "map",
    validation: float = 0.5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **protocol: Any,
) -> Chosen:
    """Try each setting on the queries of some identities, and report the best on the queries of the others.

    Whole identities (column `by`) go to one part or the other, by a hash of seed and name, so that no picture of an
    identity that chose the settings is measured. The gallery is the same for both. `protocol` is handed to `measure`.

    Raises:
        InputError: no trials, fewer than four identities, a share outside (0, 1), or an unknown metric.
    """
    if not trials:
        raise InputError("There is nothing to choose from: name at least one setting.")
    if not 0 < validation < 1:
        raise InputError(f"validation={validation} is outside 0..1.", hint="0.5 chooses on one half.")
    choosing, reporting = _parts(queries, by, validation, seed)
    declared = {name: protocol[name] for name in ("relevance", "camera", "metric", "ks", "split") if name in protocol}
    question = ask(choosing, gallery, seed=seed, **declared)

    def value(stages: Stages) -> float:
        """Score a trial by its metric alone; intervals are for the one report that counts."""
        found = staged_ranks(
            question.queries, question.gallery, question.truth, stages, metric=question.protocol.metric,
            threads=protocol.get("threads"),
        )  # fmt: skip
        return mean(per_query(found.ranks, optimise))

    plain = value(Stages())
    done = []
    for number, stages in enumerate(trials):
        done.append(Trial(stages, value(stages)))
        if progress is not None:
            progress(number + 1, len(trials))
    best = max(done, key=lambda trial: np.nan_to_num(trial.value, nan=-1.0))
    report = measure(reporting, gallery, stages=best.stages if best.value > plain else None, seed=seed, **protocol)
    return Chosen(optimise, tuple(done), best, plain, report)


def _parts(queries: Side, by: str, validation: float, seed: int) -> tuple[Side, Side]:
    keys = [label_key(value) for value in queries.column(by)]
    names = sorted({key for key in keys if key is not None}, key=lambda key: _hash(seed, key))
    if len(names) < FEW_IDENTITIES:
        raise InputError(
            f"Column {by!r} holds {len(names)} identities; choosing and reporting needs {FEW_IDENTITIES} at least."
        )
    count = min(max(round(validation * len(names)), 2), len(names) - 2)
    chosen = set(names[:count])
    inside = np.array([key in chosen for key in keys])
    known = np.array([key is not None for key in keys])
    return queries.having(queries.ids[inside]), queries.having(queries.ids[known & ~inside])


def _hash(seed: int, name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8, key=str(seed).encode()).digest()
