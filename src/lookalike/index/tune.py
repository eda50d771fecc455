"""A measured choice of index: settings tried on the caller's own vectors, with queries the index has never seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import as_ids, as_vectors
from lookalike.errors import InputError
from lookalike.index.kinds import TIGHT, Settings, settings_dict, settings_for
from lookalike.index.neighbours import Metric, check_metric
from lookalike.index.trial import Demand, Row, Trial, held_out_split
from lookalike.index.view import EXACT_ROWS

SAMPLE_ROWS = 100_000  # beyond this a seeded sample is measured, and bytes and latency are carried over by rule

GRID: tuple[Settings, ...] = tuple(
    settings_for(kind) for kind in ("flat", "ivf", "ivf-sq8", "ivf-pqfs", "ivf-rabitq", "ivf-pq", "hnsw", "hnsw-sq8")
)


@dataclass(frozen=True)
class TuneReport:
    """Everything measured, and what was chosen."""

    measured: tuple[Row, ...]
    chosen: Row | None
    """The cheapest setting that meets the demands; None where none does."""
    reason: str
    n: int
    d: int
    measured_n: int
    metric: Metric
    demand: Demand
    seed: int

    @property
    def pareto(self) -> tuple[Row, ...]:
        """Rows that no other row beats in overlap, latency and bytes at once."""
        return pareto(self.measured)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "measured": [row.as_dict() for row in self.measured],
            "chosen": None if self.chosen is None else self.chosen.as_dict(),
            "reason": self.reason,
            "n": self.n,
            "dim": self.d,
            "measured_n": self.measured_n,
            "metric": self.metric,
            "demand": dataclasses.asdict(self.demand),
            "seed": self.seed,
        }


def tune(
    vectors: npt.ArrayLike,
    ids: npt.ArrayLike | None = None,
    *,
    recall: float = 0.95,
    latency_ms: float | None = None,
    ram: int | None = None,
    metric: str = "cosine",
    seed: int = 0,
    kinds: Sequence[str] | None = None,
    sample_rows: int = SAMPLE_ROWS,
    progress: Callable[[str, float], None] | None = None,
) -> TuneReport:
    """Measure index kinds on (n, d) vectors and choose the cheapest setting that meets the demands.

    200 vectors (or a tenth) are held out as queries and never indexed. Within each kind, effort is raised until overlap
    with exact search is reached and a step beyond, so that the report shows the trade on both sides of the demand.
    Beyond `sample_rows` a sample is measured; bytes are then computed for the full size (exact where the format
    allows), while overlap is tagged estimated, and so is latency, scaled by what each kind reads: cells by the square
    root of n, graphs by its logarithm, a scan by n. Latency is that of single queries on one thread; what else the
    machine does meanwhile lengthens it. Up to 1,000 vectors only the scan is measured; with `ram`, also codes refined
    with the mapped originals. Cheapest: fewest resident bytes among those within twice the least latency.

    Raises:
        InputError: fewer than 20 vectors, or an impossible demand.
        UnknownNameError: a kind or metric that does not exist.
    """
    demand = Demand(recall=recall, latency_ms=latency_ms, ram=ram)
    chosen_metric = check_metric(metric)
    checked = as_vectors(vectors)
    if len(checked) < 20:
        raise InputError(f"{len(checked)} vectors are too few to tune on; 20 are needed.", hint="Use flat.")
    if ids is not None:
        as_ids(ids, len(checked))
    queries, items = held_out_split(checked, sample_rows, seed)
    bench = Trial(queries, items, len(checked), chosen_metric, demand, seed)
    grid = _grid(len(items), ram) if kinds is None else tuple(settings_for(kind) for kind in kinds)
    rows: list[Row] = []
    for step, asked in enumerate(grid):
        if progress is not None:
            progress(asked.kind, step / len(grid))
        rows.extend(bench.measure(asked))
    if progress is not None:
        progress("done", 1.0)
    chosen, reason = choose(rows, demand)
    return TuneReport(
        tuple(rows), chosen, reason, len(checked), checked.shape[1], len(items), chosen_metric, demand, seed
    )


def _grid(n: int, ram: int | None) -> tuple[Settings, ...]:
    if n <= EXACT_ROWS:  # every kind would answer by a scan
        return GRID[:1]
    return GRID if ram is None else GRID + TIGHT


def choose(rows: Sequence[Row], demand: Demand) -> tuple[Row | None, str]:
    """Return the cheapest row that meets the demand, and why; or None, and what is nearest to it.

    Among the rows that fit, those slower than twice the fastest are dropped and the fewest bytes win: memory is paid
    for all day, and half a millisecond is not. No row beats the choice in overlap, latency and bytes at once. With
    nothing that fits, the reason names the demand that fails and the best value found for it.
    """
    fitting = [row for row in rows if row.fits]
    if fitting:
        fastest = min(row.p50_ms for row in fitting)
        near = [row for row in fitting if row.p50_ms <= 2 * fastest]
        best = min(near, key=lambda row: (row.bytes, row.p50_ms, -row.overlap))
        return best, (
            f"{best.kind} ({_knobs(best)}) meets the demand with {best.bytes:,} bytes and {best.p50_ms:.3f} ms: fewest "
            f"bytes of the {len(near)} settings within twice the least latency ({fastest:.3f} ms), {len(fitting)} of "
            f"{len(rows)} meet it."
        )
    if not rows:
        return None, "No kind of index can be built from these vectors."
    return None, _nearest(rows, demand)


def pareto(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows that no other row equals or beats in overlap, median latency and bytes, and beats in one."""
    listed = list(rows)
    keys = np.array([[-row.overlap, row.p50_ms, row.bytes] for row in listed]).reshape(-1, 3)
    return tuple(
        row
        for row, key in zip(listed, keys, strict=True)
        if not ((keys <= key).all(axis=1) & (keys < key).any(axis=1)).any()
    )


def _knobs(row: Row) -> str:
    values = settings_dict(row.settings)
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None) or "no settings"


def _nearest(rows: Sequence[Row], demand: Demand) -> str:
    best = max(rows, key=lambda row: row.overlap)
    if best.overlap < demand.recall:
        return (
            f"No setting reaches an overlap of {demand.recall:.3f}: the best is {best.kind} with {best.overlap:.3f} "
            f"({_knobs(best)})."
        )
    enough = [row for row in rows if row.overlap >= demand.recall]
    slow = min(enough, key=lambda row: row.p50_ms)
    small = min(enough, key=lambda row: row.bytes)
    limits = []
    if demand.latency_ms is not None:
        limits.append(f"{demand.latency_ms} ms (the fastest, {slow.kind}, needs {slow.p50_ms:.3f} ms)")
    if demand.ram is not None:
        limits.append(f"{demand.ram:,} bytes (the smallest, {small.kind}, needs {small.bytes:,})")
    return f"{len(enough)} settings reach an overlap of {demand.recall:.3f}, none within " + " and ".join(limits) + "."
