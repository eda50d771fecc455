"""Slow, literal definitions the fast code is compared with."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np


def lane_sum(terms: np.ndarray) -> float:
    """The numpy twin of the kernels' sums: four lanes, the rest in lane 0."""
    full = len(terms) // 4 * 4
    lanes = [0.0] * 4
    for k in range(full):
        lanes[k % 4] += float(terms[k])
    for k in range(full, len(terms)):
        lanes[0] += float(terms[k])
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


def key(a: np.ndarray, b: np.ndarray, metric: str) -> float:
    """Higher is better."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    if metric == "l2":
        return -lane_sum((a - b) ** 2)
    if metric == "ip":
        return lane_sum(a * b)
    return lane_sum(a * b) / (math.sqrt(lane_sum(a * a)) * math.sqrt(lane_sum(b * b)))


def ranking(
    query: np.ndarray, gallery: np.ndarray, removed: Collection[int], metric: str, ids: Sequence[int] | None = None
) -> list[int]:
    """Gallery positions, best first, ties by id, removed ones left out."""
    ids = range(len(gallery)) if ids is None else ids
    kept = [item for item in range(len(gallery)) if item not in removed]
    return sorted(kept, key=lambda item: (-key(query, gallery[item], metric), ids[item]))


def relevant_ranks(order: Sequence[int], relevant: Collection[int]) -> list[int]:
    return [place for place, item in enumerate(order, start=1) if item in relevant]


def average_precision(flags: Sequence[int], depth: int, divisor: int) -> Fraction:
    total = Fraction(0)
    for place in range(1, min(depth, len(flags)) + 1):
        if flags[place - 1]:
            total += Fraction(sum(flags[:place]), place)
    return total / divisor if divisor else Fraction(0)


def ndcg(flags: Sequence[int], k: int, relevant: int) -> float:
    gain = sum(flag / math.log2(place + 1) for place, flag in enumerate(flags[:k], start=1))
    return gain / sum(1 / math.log2(place + 1) for place in range(1, min(k, relevant) + 1))


def interpolated(flags: Sequence[int], relevant: int, level: Fraction) -> Fraction:
    """Best precision among the depths whose recall reaches the level."""
    best = Fraction(0)
    for depth in range(1, len(flags) + 1):
        hits = sum(flags[:depth])
        if Fraction(hits, relevant) >= level:
            best = max(best, Fraction(hits, depth))
    return best
