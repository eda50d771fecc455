"""The paper's equations written down word for word with Python sets: slow, obvious, and compared with everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest


def literal_k_reciprocal(distances, k1, k2, lambda_value, *, strict=False, queries=1):
    """Final distances (queries, n - queries) by equations 1 to 12 of Zhong et al.; every row divided by its maximum."""
    d = np.maximum(np.asarray(distances, dtype=np.float64), 0)
    n = len(d)
    k1 = min(k1, n - 1)
    k2 = min(k2, k1)
    scaled = [[d[p][g] / (max(d[p]) or 1.0) if p != g else 0.0 for g in range(n)] for p in range(n)]
    order = [[p, *sorted((g for g in range(n) if g != p), key=lambda g, p=p: (d[p][g], g))] for p in range(n)]

    def nearest(p, k):
        return order[p][: k + 1]

    def reciprocal(p, k):
        return {g for g in nearest(p, k) if p in nearest(g, k)}

    def expanded(p):
        own = reciprocal(p, k1)
        grown = set(own)
        for q in own:
            half = reciprocal(q, round(k1 / 2))
            share = 3 * len(own & half)
            if share > 2 * len(half) or (share == 2 * len(half) and not strict):
                grown |= half
        return grown

    feature = []
    for p in range(n):
        members = expanded(p)
        row = [np.exp(-scaled[p][g]) if g in members else 0.0 for g in range(n)]
        feature.append([value / sum(row) for value in row])
    if k2 > 1:
        feature = [[sum(feature[q][g] for q in order[p][:k2]) / k2 for g in range(n)] for p in range(n)]
    final = np.empty((queries, n - queries))
    for p in range(queries):
        for g in range(queries, n):
            low = sum(min(a, b) for a, b in zip(feature[p], feature[g], strict=True))
            high = sum(max(a, b) for a, b in zip(feature[p], feature[g], strict=True))
            final[p, g - queries] = (1 - lambda_value) * (1 - low / high) + lambda_value * scaled[p][g]
    return final


@pytest.fixture(scope="session")
def literal() -> Callable[..., np.ndarray]:
    return literal_k_reciprocal
