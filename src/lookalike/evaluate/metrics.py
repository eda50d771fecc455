"""Every metric, by its definition, as a function of the ranks of the relevant items.

A function takes `Ranks` and returns (q,) float64 in [0, 1], NaN where a query is not evaluated; the figure of a run is
the mean over evaluated queries. In the formulas r₁ < r₂ < … are the ranks of the relevant items of one query, R is
their number whether retrieved or not, and hits@K = |{i : rᵢ ≤ K}|.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Ids, Scores, label_key, same_length
from lookalike.errors import CutOffError, InputError, UnknownNameError
from lookalike.evaluate.ranks import Ranks


def recall(ranks: Ranks, k: int) -> Scores:
    """1 where r₁ ≤ K, else 0: at least one relevant item among the first K.

    Musgrave et al., ECCV 2020, call it precision@1 at K = 1; elsewhere hit rate or accuracy@K.
    """
    _check(ranks, k)
    return _mask(ranks, ranks.first <= k)


def cmc(ranks: Ranks, k: int) -> Scores:
    """1 where r₁ ≤ K: the cumulative matching characteristic of re-identification (Gray et al., 2007)."""
    return recall(ranks, k)


def reciprocal_rank(ranks: Ranks) -> Scores:
    """1 / r₁; 0 where no relevant item was retrieved (Voorhees, TREC-8, 1999)."""
    return np.asarray(1.0 / ranks.first)


def precision(ranks: Ranks, k: int) -> Scores:
    """hits@K / K; K stays the divisor where the gallery is smaller (trec_eval's P_K)."""
    _check(ranks, k)
    return _mask(ranks, _hits(ranks, k) / k)


def coverage(ranks: Ranks, k: int) -> Scores:
    """hits@K / R: the share of the relevant items found (trec_eval's recall_K)."""
    _check(ranks, k)
    return _mask(ranks, _over(_hits(ranks, k), ranks.num_relevant))


def r_precision(ranks: Ranks) -> Scores:
    """hits@R / R (Musgrave et al., ECCV 2020, section 3.2)."""
    _whole(ranks, "r-precision", ranks.num_relevant)
    return _mask(ranks, _over(_hits(ranks, ranks.num_relevant), ranks.num_relevant))


def map_at_r(ranks: Ranks) -> Scores:
    """(1/R) · Σ over rᵢ ≤ R of i / rᵢ (Musgrave et al., ECCV 2020, equation 4)."""
    _whole(ranks, "map@r", ranks.num_relevant)
    return _mask(ranks, _over(_precisions(ranks, ranks.num_relevant), ranks.num_relevant))


def average_precision(ranks: Ranks) -> Scores:
    """(1/R) · Σ over all relevant items of i / rᵢ, down the full list (trec_eval's map)."""
    _whole(ranks, "map", ranks.gallery_sizes)
    return _mask(ranks, _over(_precisions(ranks, ranks.gallery_sizes), ranks.num_relevant))


def average_precision_all(ranks: Ranks, k: int) -> Scores:
    """Σ over rᵢ ≤ K of i / rᵢ, divided by R, all relevant items (trec_eval's map_cut_K)."""
    _check(ranks, k)
    return _mask(ranks, _over(_precisions(ranks, k), ranks.num_relevant))


def average_precision_min(ranks: Ranks, k: int) -> Scores:
    """Σ over rᵢ ≤ K of i / rᵢ, divided by min(K, R): a perfect list scores 1 (Weyand et al., CVPR 2020)."""
    _check(ranks, k)
    return _mask(ranks, _over(_precisions(ranks, k), np.minimum(k, ranks.num_relevant)))


def average_precision_hits(ranks: Ranks, k: int) -> Scores:
    """Σ over rᵢ ≤ K of i / rᵢ, divided by hits@K; 0 without a hit.

    The relevant items that were missed cost nothing: a list with one hit at rank 1 scores 1. torchmetrics divides so.
    """
    _check(ranks, k)
    return _mask(ranks, _over(_precisions(ranks, k), _hits(ranks, k)))


def ndcg(ranks: Ranks, k: int) -> Scores:
    """DCG@K / ideal DCG@K, DCG = Σ over rᵢ ≤ K of 1 / log₂(rᵢ + 1) (Järvelin and Kekäläinen, TOIS 2002)."""
    _check(ranks, k)
    gains = _total(ranks, np.where(ranks.ranks <= k, 1 / np.log2(ranks.ranks + 1.0), 0.0))
    most = int(min(k, ranks.num_relevant.max(initial=0)))
    ideal = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(most) + 2.0))])
    return _mask(ranks, _over(gains, ideal[np.minimum(ranks.num_relevant, most)]))


def inverse_negative_penalty(ranks: Ranks) -> Scores:
    """R / r_R, R over the rank of the last relevant item (mINP; Ye et al., TPAMI 2021, equation 12)."""
    _whole(ranks, "minp", ranks.gallery_sizes)
    counts = np.diff(ranks.offsets)
    last = np.full(len(ranks), np.inf)
    last[counts > 0] = ranks.ranks[ranks.offsets[1:][counts > 0] - 1]
    return _mask(ranks, np.where(counts == ranks.num_relevant, ranks.num_relevant / last, 0.0))


def precision_recall_curve(ranks: Ranks, levels: int = 101) -> tuple[Scores, Scores]:
    """Return (levels,) recall levels from 0 to 1 and the mean interpolated precision at each.

    Interpolated: the best precision at that recall or any higher one, max over i ≥ ⌈level·R⌉ of i / rᵢ (Manning,
    Raghavan and Schütze, Introduction to Information Retrieval, section 8.4). NaN where nothing was evaluated.
    """
    _whole(ranks, "the precision-recall curve", ranks.gallery_sizes)
    curve = InterpolatedPrecision(levels)
    curve.add(ranks)
    return np.linspace(0, 1, levels), curve.mean


class InterpolatedPrecision:
    """Sums the interpolated precision of block after block of queries, so that no block has to be kept."""

    def __init__(self, levels: int = 101) -> None:
        self.total, self.count = np.zeros(levels), 0

    def add(self, ranks: Ranks) -> None:
        """Add the evaluated queries of one block, in order: blocks of another size give the same sum, bit by bit."""
        levels = len(self.total)
        self.count += int(ranks.evaluated.sum())
        for query in np.flatnonzero(ranks.evaluated).tolist():
            row, wanted = ranks[query], ranks.num_relevant[query]
            if not len(row):
                continue
            best = np.maximum.accumulate((np.arange(1, len(row) + 1) / row)[::-1])[::-1]
            # i/R >= level, decided in whole hundredths: ceil(0.07 * 100) would be 8
            need = np.maximum(-(-np.arange(levels) * wanted // (levels - 1)), 1)
            self.total += np.where(need <= len(row), best[np.minimum(need, len(row)) - 1], 0.0)

    @property
    def mean(self) -> Scores:
        """(levels,) the mean precision at each level of recall; NaN where nothing was evaluated."""
        return self.total / self.count if self.count else np.full(len(self.total), np.nan)


@dataclass(frozen=True)
class Definition:
    """One row of the table: how a metric is computed, whether it needs all ranks, and what it says in words."""

    function: Callable[..., Scores]
    first_only: bool
    """It needs the first relevant item alone."""
    words: str


METRICS: Mapping[str, Definition] = {
    "recall@K": Definition(
        recall, True, "share of evaluated queries with at least one relevant item among their first K"
    ),
    "cmc@K": Definition(cmc, True, "cumulative matching characteristic: recall@K under re-identification's name"),
    "mrr": Definition(reciprocal_rank, True, "mean of 1 / rank of the first relevant item"),
    "precision@K": Definition(precision, False, "mean share of relevant items among the first K"),
    "coverage@K": Definition(coverage, False, "mean share of a query's relevant items found among the first K"),
    "r-precision": Definition(r_precision, False, "mean share of relevant items among the first R, R relevant in all"),
    "map@r": Definition(map_at_r, False, "mean average precision over the first R, divided by R"),
    "map": Definition(average_precision, False, "mean average precision over the full list"),
    "map@K/all": Definition(
        average_precision_all, False, "average precision over the first K, divided by all relevant"
    ),
    "map@K/min": Definition(
        average_precision_min, False, "average precision over the first K, divided by the smaller of K and relevant"
    ),
    "map@K/hits": Definition(
        average_precision_hits, False, "average precision over the first K, divided by hits found"
    ),
    "ndcg@K": Definition(ndcg, False, "discounted cumulative gain over the first K, divided by the best possible"),
    "minp": Definition(inverse_negative_penalty, False, "mean of R / rank of the last relevant item"),
}


def find(name: str) -> tuple[Definition, tuple[int, ...]]:
    """Return the table row of a metric name, and its K where it has one.

    Raises:
        UnknownNameError: no such metric; the right spellings are listed.

    >>> find("map@100/min")[1]
    (100,)
    """
    match = re.search(r"@(\d+)", name)
    pattern = re.sub(r"@\d+", "@K", name, count=1)
    if pattern not in METRICS or (match is None and "@K" in name):
        raise UnknownNameError("metric", name, METRICS)
    return METRICS[pattern], (int(match.group(1)),) if match else ()


def needs_all(names: Iterable[str]) -> bool:
    """Return whether any of the metrics needs more than the first relevant item."""
    return not all(find(name)[0].first_only for name in names)


def per_query(ranks: Ranks, name: str) -> Scores:
    """Return (q,) values of the named metric, NaN where a query is not evaluated.

    Raises:
        UnknownNameError: no such metric.
        CutOffError: K beyond the lists the ranks come from.
        InputError: K below 1, or the metric needs ranks that were not counted.
    """
    definition, arguments = find(name)
    if ranks.first_only and not definition.first_only:
        raise InputError(f"{name} needs the ranks of all relevant items; only the first was counted.")
    return definition.function(ranks, *arguments)


def summarise(ranks: Ranks, names: Sequence[str]) -> dict[str, float]:
    """Return the mean over evaluated queries of each named metric; NaN where no query was evaluated."""
    return {name: mean(per_query(ranks, name)) for name in names}


def measure(blocks: Iterable[Ranks], names: Sequence[str]) -> dict[str, Scores]:
    """Return (q,) values of each metric from blocks of ranks, so that all ranks never stand in memory together."""
    for name in names:
        find(name)
    columns: dict[str, list[Scores]] = {name: [] for name in names}
    for ranks in blocks:
        for name in names:
            columns[name].append(per_query(ranks, name))
    return {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in columns.items()}


def mean(values: Scores) -> float:
    """Return the mean of the values that are not NaN, or NaN where there are none.

    The sum is exactly rounded, so that the order of the queries changes no digit.
    """
    kept = values[~np.isnan(values)]
    return math.fsum(kept) / kept.size if kept.size else float("nan")


def per_class(values: Scores, labels: Sequence[Any] | npt.NDArray[Any]) -> dict[str, tuple[float, int]]:
    """Return, for each label in alphabetical order, the mean of its evaluated queries and their number.

    Raises:
        ShapeError: not one label a query.

    >>> per_class(np.array([1.0, 0.0, np.nan]), ["cat", "cat", "dog"])
    {'cat': (0.5, 2), 'dog': (nan, 0)}
    """
    same_length(values=values, labels=labels)
    names = np.array([label_key(label) or "" for label in labels])
    if not names.size:
        return {}
    found, codes = np.unique(names, return_inverse=True)
    members = np.split(values[np.argsort(codes, kind="stable")], np.cumsum(np.bincount(codes))[:-1])
    counted = (int((~np.isnan(kept)).sum()) for kept in members)
    return {name: (mean(kept), n) for name, kept, n in zip(found.tolist(), members, counted, strict=True)}


def _check(ranks: Ranks, k: int) -> None:
    if k < 1:
        raise InputError(f"K={k}: a cut-off is at least 1.")
    if ranks.depth is not None and k > ranks.depth and (ranks.gallery_sizes > ranks.depth).any():
        raise CutOffError(k, ranks.depth)


def _whole(ranks: Ranks, name: str, needed: Ids) -> None:
    if ranks.depth is not None and (needed[ranks.evaluated] > ranks.depth).any():
        raise InputError(
            f"{name} looks {int(needed[ranks.evaluated].max())} places deep; the lists end after {ranks.depth}.",
            hint=f"Use a metric with a cut-off, such as map@{ranks.depth}/all, or retrieve more.",
        )


def _hits(ranks: Ranks, k: int | Ids) -> Scores:
    limit = k if isinstance(k, int) else k[ranks.rows]
    return _total(ranks, (ranks.ranks <= limit).astype(np.float64))


def _precisions(ranks: Ranks, k: int | Ids) -> Scores:
    rows = ranks.rows
    place = np.arange(len(rows)) - ranks.offsets[:-1][rows] + 1
    limit = k if isinstance(k, int) else k[rows]
    return _total(ranks, np.where(ranks.ranks <= limit, place / ranks.ranks, 0.0))


def _total(ranks: Ranks, values: Scores) -> Scores:
    return np.bincount(ranks.rows, weights=values, minlength=len(ranks)).astype(np.float64)


def _over(values: Scores, divisor: Ids | Scores) -> Scores:
    return np.asarray(np.divide(values, divisor, out=np.zeros(len(values)), where=np.asarray(divisor) > 0))


def _mask(ranks: Ranks, values: Scores | np.ndarray) -> Scores:
    return np.where(ranks.evaluated, values, np.nan).astype(np.float64)
