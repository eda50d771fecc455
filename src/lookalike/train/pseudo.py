"""Labels without labels: pictures that are each other's near neighbours, or several looks at one picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Codes, Rgb, Vectors, as_vectors, factorise, unit
from lookalike.embed.encoder import Encoder
from lookalike.errors import InputError, ShapeError
from lookalike.evaluate.relevance import Column
from lookalike.index.exact import topk
from lookalike.train.augment import augmented

_PAIRS = 200_000
"""Random pairs the threshold is measured on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Guessed labels, and what they rest on."""

    codes: Codes
    """(n,) group of each picture, -1 where it has no mutual near neighbour."""
    threshold: float
    """Cosine from which two pictures count as near."""
    measured: bool
    """The threshold comes from these vectors rather than from the caller."""
    too_large: int
    """Groups of more than `largest` pictures, taken apart into single pictures: chains of them are no identity."""

    @property
    def groups(self) -> int:
        """Number of groups of at least two pictures."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def covered(self) -> float:
        """Share of the pictures that got a label."""
        return float((self.codes >= 0).mean()) if self.codes.size else 0.0


def near_duplicates(
    vectors: npt.ArrayLike,
    *,
    neighbours: int = 3,
    rare: float = 1e-4,
    threshold: float | None = None,
    largest: int = 50,
    seed: int = 0,
) -> Groups:
    """Group pictures that are among each other's nearest in the frozen space, (n, d) vectors.

    Two pictures are joined where each is among the `neighbours` nearest of the other and their cosine reaches the
    threshold: the cosine that a share of `rare` of unrelated pairs would reach, measured on these vectors, because a
    cosine of 0.8 means nothing from one encoder to the next. Unrelated pairs are taken to be normal, with the median
    of random pairs and the scatter of their lower half, which related pairs do not reach. Joined pictures and those
    they are joined to are one group.

    Raises:
        InputError: fewer than three pictures, or a setting outside its range.

    >>> rows = np.repeat(np.eye(4), 2, axis=0) + 0.01 * np.arange(8)[:, None]
    >>> near_duplicates(rows, threshold=0.95, neighbours=1).codes.tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    rows = unit(as_vectors(vectors))
    if len(rows) < 3:
        raise InputError(f"{len(rows)} pictures are too few to group.")
    if neighbours < 1 or largest < 2 or not 0 < rare < 1:
        raise InputError(f"neighbours={neighbours}, largest={largest}, rare={rare}: at least 1, at least 2, in 0..1.")
    if threshold is not None and not -1 <= threshold <= 1:
        raise InputError(f"threshold={threshold} is outside -1..1.", hint="Give a cosine, or none to have it measured.")
    level = _measured(rows, rare, seed) if threshold is None else threshold
    left, right = _mutual(rows, neighbours, level)
    codes = _components(len(rows), left, right)
    sizes = np.bincount(codes)
    kept = (sizes >= 2) & (sizes <= largest)
    names = np.where(kept, np.cumsum(kept) - 1, -1)
    return Groups(
        codes=names[codes].astype(np.int64),
        threshold=float(level),
        measured=threshold is None,
        too_large=int((sizes > largest).sum()),
    )


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Guessed labels against true ones, pair by pair, over pictures that have a true label."""

    precision: float
    """Share of the pairs in one group that truly belong together; NaN where there is no such pair."""
    recall: float
    """Share of the pairs that belong together which one group holds; NaN where there is none."""
    pairs: int
    """Pairs in one group."""


def agreement(codes: Codes, labels: Column) -> Agreement:
    """Count how far guessed labels are right.

    Raises:
        ShapeError: not one label a picture.

    >>> agreement(np.array([0, 0, 0, -1]), ["a", "a", "b", "a"])
    Agreement(precision=0.3333333333333333, recall=0.3333333333333333, pairs=3)
    """
    if len(codes) != len(labels):
        raise ShapeError(f"There are {len(codes)} guessed and {len(labels)} true labels.")
    (truth,) = factorise(labels)
    known = truth >= 0
    guessed, truth = codes[known], truth[known]
    both = np.unique(np.stack([guessed, truth]), axis=1, return_counts=True)
    right = _pairs(both[1][both[0][0] >= 0])
    said = _pairs(np.bincount(guessed[guessed >= 0]))
    true = _pairs(np.bincount(truth))
    nan = float("nan")
    return Agreement(precision=right / said if said else nan, recall=right / true if true else nan, pairs=said)


def looks(
    encoder: Encoder, read: Callable[[int], Rgb], count: int, *, each: int = 4, size: int = 224, seed: int = 0
) -> tuple[Vectors, Codes]:
    """Encode `each` augmented looks at each of `count` pictures; looks at one picture are one another's positives.

    `read(i)` gives picture i as upright RGB. Rows are picture by picture.

    Raises:
        InputError: fewer than two looks a picture.
    """
    if each < 2:
        raise InputError(f"each={each}: at least two looks at a picture are needed.")
    parts: list[Vectors] = []
    for picture in range(count):
        pixels = read(picture)
        views: Sequence[Rgb] = [augmented(pixels, size, seed=(seed, picture, look)) for look in range(each)]
        parts.append(encoder.encode_images(views))
    return np.concatenate(parts), np.repeat(np.arange(count, dtype=np.int64), each)


def _measured(rows: Vectors, rare: float, seed: int) -> float:
    """Return the cosine that a share of `rare` of unrelated pairs would reach."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, len(rows), _PAIRS)
    right = (left + rng.integers(1, len(rows), _PAIRS)) % len(rows)
    step = 10_000
    cosines = np.concatenate(
        [np.einsum("nd,nd->n", rows[left[i : i + step]], rows[right[i : i + step]]) for i in range(0, _PAIRS, step)]
    )
    middle, low = np.quantile(cosines, [0.5, NormalDist().cdf(-1)])
    return min(1.0, float(middle + NormalDist().inv_cdf(1 - rare) * (middle - low)))


def _mutual(rows: Vectors, neighbours: int, level: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pairs that are in each other's lists and reach the level."""
    ids = np.arange(len(rows))
    found = topk(rows, rows, min(neighbours, len(rows) - 1), ids=ids, exclude=list(ids[:, None]))
    left = np.repeat(ids, found.lengths)
    near = found.scores >= level
    keys = left[near] * len(rows) + found.ids[near]
    back = found.ids[near] * len(rows) + left[near]
    both = np.intersect1d(keys, back)
    return both // len(rows), both % len(rows)


def _components(count: int, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number the connected groups in order of their first picture."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(left), dtype=np.int8), (left, right)), shape=(count, count))
    found = connected_components(graph, directed=False)[1]
    _, first, codes = np.unique(found, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return np.asarray(order[codes], dtype=np.int64)


def _pairs(sizes: npt.NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())
