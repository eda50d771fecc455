"""Which metrics a run computes: all of them, or those asked for."""

from __future__ import annotations

from collections.abc import Sequence

from lookalike.errors import UnknownNameError
from lookalike.evaluate.metrics import METRICS, find

ALWAYS = ("map@r", "r-precision", "map", "mrr", "minp")


def metric_names(cuts: Sequence[int]) -> list[str]:
    """Name what every report holds: recall at each K, the full-list metrics, and the rest at the largest K.

    >>> metric_names([1, 10])[:3]
    ['recall@1', 'recall@10', 'map@r']
    """
    deep = max(cuts)
    by_depth = (f"precision@{deep}", f"coverage@{deep}", f"ndcg@{deep}", f"map@{deep}/all", f"map@{deep}/min")
    return [*(f"recall@{k}" for k in cuts), *ALWAYS, *by_depth]


def expanded(names: Sequence[str], cuts: Sequence[int]) -> list[str]:
    """Write out what was asked for: recall at each K first, then each name, `ndcg` and `map/min` at each K.

    Where every name needs the first right answer alone (recall, cmc, mrr), nothing else is counted, which is much
    quicker where classes are large.

    Raises:
        UnknownNameError: no such metric.

    >>> expanded(["mrr", "ndcg", "map@5/min"], [1, 10])
    ['recall@1', 'recall@10', 'mrr', 'ndcg@1', 'ndcg@10', 'map@5/min']
    """
    found = [f"recall@{k}" for k in cuts]
    for name in names:
        if name in METRICS or "@" in name:
            find(name)
            found.append(name)
        else:
            found.extend(_at_each(name, cuts))
    return list(dict.fromkeys(found))


def _at_each(name: str, cuts: Sequence[int]) -> list[str]:
    stem, slash, divisor = name.partition("/")
    pattern = f"{stem}@K{slash}{divisor}"
    if pattern not in METRICS:
        raise UnknownNameError("metric", name, METRICS)
    return [pattern.replace("@K", f"@{k}") for k in cuts]
