"""True scores of what an engine found, their order, and whether more must be fetched to know it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lookalike.arrays import Ids, Scores, Vectors
from lookalike.index.exact import topk
from lookalike.index.neighbours import Metric, pair_scores

SLACK = 16
"""Candidates fetched beyond k: what the engine's float32 distances could have put on the wrong side of k."""
# Distances of an engine are float32 (and the query float16 with half precision): scores this near may stand either way.
_MARGIN = {"float32": 1e-5, "float16": 2e-3}


def ranked(query: Vectors, ids: Ids, vectors: Vectors, metric: Metric) -> tuple[Ids, Scores]:
    """Order candidates by their score in float64, best first, equal scores in id order."""
    if not len(ids):
        return ids, np.empty(0, np.float64)
    scores = pair_scores(query, vectors, metric)
    order = np.lexsort((ids, scores if metric == "l2" else -scores))
    return ids[order], scores[order]


def undecided(scores: Scores, k: int, dtype: str) -> bool:
    """Tell whether an item beyond the last of these ranked candidates might belong among the first k.

    It might where the last is as good as the k-th, to the precision of the engine's distances.

    >>> undecided(np.array([0.9, 0.8, 0.5]), 2, "float32"), undecided(np.array([0.9, 0.8, 0.8]), 2, "float32")
    (False, True)
    """
    margin = _MARGIN[dtype] * float(np.abs(scores).max(initial=1e-12))
    return abs(float(scores[k - 1] - scores[-1])) <= margin


def best_of(
    blocks: Iterable[tuple[Ids, Vectors]], queries: Vectors, k: int, metric: Metric, threads: int | None
) -> list[tuple[Ids, Scores]]:
    """Return the exact k best of vectors that stream by, for each of (q, d) queries."""
    best: list[tuple[Ids, Scores]] = [(np.empty(0, np.int64), np.empty(0, np.float64))] * len(queries)
    for ids, vectors in blocks:
        if len(ids):
            found = topk(queries, vectors, min(k, len(ids)), metric=metric, ids=ids, threads=threads)
            best = [_joined(old, new, k, metric) for old, new in zip(best, found, strict=True)]
    return best


def _joined(a: tuple[Ids, Scores], b: tuple[Ids, Scores], k: int, metric: Metric) -> tuple[Ids, Scores]:
    ids, scores = (np.concatenate(pair) for pair in zip(a, b, strict=True))
    order = np.lexsort((ids, scores if metric == "l2" else -scores))[:k]
    return ids[order], scores[order]


def in_order(wanted: Ids, found: Sequence[int] | Ids, vectors: Vectors) -> tuple[Vectors, Ids]:
    """Return (n, d) vectors in the wanted order, and the wanted ids that were not found."""
    have = np.asarray(found, np.int64)
    sorter = np.argsort(have, kind="stable")
    have = have[sorter]
    at = np.searchsorted(have, wanted)
    inside = np.minimum(at, max(len(have) - 1, 0))
    present = have[inside] == wanted if len(have) else np.zeros(len(wanted), np.bool_)
    missing = wanted[~present]
    return (vectors[sorter[inside]] if not len(missing) else vectors[:0]), missing
