"""The arithmetic of triplets: anchor, positive and negative at a margin, in plain and in squared distance.

Vectors have length 1, so the plain distance is √(2 − 2·cos) and the squared one 2 − 2·cos. A margin belongs to its
convention: 0.2 of plain distance is another demand than 0.2 of squared distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from lookalike.arrays import Codes, Scores, as_vectors, same_length, unit
from lookalike.errors import InputError, ShapeError

Kind: TypeAlias = Literal["easy", "semi-hard", "hard"]
KINDS: tuple[Kind, ...] = get_args(Kind)

COLLAPSED = 1e-3
"""Mean distance of a batch, in units of the unit sphere, below which its vectors count as one point: random unit
vectors lie √2 apart, and float32 rounding alone gives 3e-4."""


def kind(positive: float, negative: float, margin: float) -> Kind:
    """Name a triplet by its two distances: hard where the negative is no farther than the positive, easy where the
    margin is kept, semi-hard between.

    `positive` and `negative` are d(a, p) and d(a, n) in the convention of the margin.

    Source: Schroff et al., FaceNet (CVPR 2015), section 3.2. The loss of an easy triplet is 0, of a semi-hard one
    less than the margin, of a hard one at least the margin.

    >>> kind(0.3, 0.44, 0.2), kind(0.3, 0.5, 0.2), kind(0.3, 0.3, 0.2)
    ('semi-hard', 'easy', 'hard')
    """
    if negative <= positive:
        return "hard"
    return "semi-hard" if hinge(positive, negative, margin) > 0 else "easy"


def hinge(positive: float, negative: float, margin: float) -> float:
    """Return the loss of one triplet, max(0, d(a, p) − d(a, n) + margin).

    >>> round(hinge(0.30, 0.44, 0.2), 4)
    0.06
    """
    # The two distances are compared before the margin is added: 0.3 - 0.5 + 0.2 is 5e-17 in binary, and not 0.
    return max(0.0, margin - (negative - positive))


@dataclass(frozen=True, kw_only=True)
class Triplet:
    """One anchor, positive and negative, in both conventions; the three sides always make a triangle."""

    margin: float
    cos_positive: float
    cos_negative: float
    plain: tuple[float, float]
    """d(a, p) and d(a, n), from 0 to 2."""
    squared: tuple[float, float]
    """Their squares, from 0 to 4."""
    loss_plain: float
    loss_squared: float
    kind_plain: Kind
    kind_squared: Kind


def triplet(cos_positive: float, cos_negative: float, *, margin: float = 0.2) -> Triplet:
    """Work out a triplet from the cosines of its anchor with the positive and with the negative.

    Raises:
        InputError: a cosine outside −1..1, or a margin that is not above 0.

    >>> t = triplet(0.85, 0.78, margin=0.2)
    >>> round(t.loss_plain, 4), round(t.loss_squared, 4), t.kind_plain
    (0.0844, 0.06, 'semi-hard')
    """
    check_margin(margin)
    for name, cosine in (("cos_positive", cos_positive), ("cos_negative", cos_negative)):
        if not -1 <= cosine <= 1:
            raise InputError(f"{name}={cosine} is outside -1..1.", hint="Give the cosine of two vectors.")
    squared = (2 - 2 * cos_positive, 2 - 2 * cos_negative)
    plain = (squared[0] ** 0.5, squared[1] ** 0.5)
    return Triplet(
        margin=margin,
        cos_positive=cos_positive,
        cos_negative=cos_negative,
        plain=plain,
        squared=squared,
        loss_plain=hinge(*plain, margin),
        loss_squared=hinge(*squared, margin),
        kind_plain=kind(*plain, margin),
        kind_squared=kind(*squared, margin),
    )


def valid_triplets(codes: Codes) -> int:
    """Count the triplets of a batch: Σ over classes of n·(n − 1)·(N − n); items without a label (-1) are in none.

    >>> valid_triplets(np.repeat(np.arange(16), 4))
    11520
    """
    labelled = codes[codes >= 0]
    sizes = np.unique(labelled, return_counts=True)[1].astype(np.int64)
    return int((sizes * (sizes - 1) * (labelled.size - sizes)).sum())


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What all valid triplets of a batch say together."""

    items: int
    triplets: int
    easy: int
    semi_hard: int
    hard: int
    loss_mean: float
    """Mean over all valid triplets; 0 where there is none."""
    loss_open: float
    """Mean over the open hinges alone, what training with all triplets averages; 0 where none is open."""
    positive_mean: float
    """Mean d(a, p) over positive pairs, in the convention asked for; NaN where there is none."""
    negative_mean: float
    """Mean d(a, n) over negative pairs; NaN where there is none."""
    collapsed: bool
    """All vectors are (nearly) one point, so that no loss of this kind can tell them apart."""

    @property
    def open_share(self) -> float:
        """Share of the valid triplets with a loss above 0; 0 where there is no triplet."""
        return (self.semi_hard + self.hard) / self.triplets if self.triplets else 0.0


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """The triplets of one anchor, added up."""

    row: int
    counts: tuple[int, int, int]
    """Easy, semi-hard, hard."""
    gap: float
    """Sum of d(a, p) − d(a, n) over its open hinges: their losses without the margins, so that equal vectors lose the
    margin to the last bit."""
    worst: float
    """Largest loss of its triplets."""
    worst_pair: tuple[int, int]
    """Rows of the positive and the negative of that triplet: an anchor that stands out is often a wrong label."""


def distances(vectors: npt.ArrayLike, *, squared: bool = False) -> Scores:
    """Return all pairwise distances of unit-scaled rows, (n, n) float64; equal rows are exactly 0 apart.

    >>> distances([[1, 0], [0, 2]], squared=True).round(12).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    rows = unit(as_vectors(vectors)).astype(np.float64)
    # Differences, not 2 - 2·cos: the cosine of two equal float32 rows is not 1 to the last bit.
    square = np.empty((len(rows), len(rows)))
    for i, row in enumerate(rows):
        gap = rows - row
        square[i] = np.einsum("nd,nd->n", gap, gap)
    return square if squared else np.asarray(np.sqrt(square))


def anchors(matrix: Scores, codes: Codes, *, margin: float) -> Iterator[Anchor]:
    """Add up the triplets of each anchor that has any, from (n, n) distances and (n,) label codes.

    Memory is O(n²) and time O(n² log n): each anchor's negatives are sorted once and searched for every positive.
    """
    for row in np.flatnonzero(codes >= 0):
        positives = np.flatnonzero((codes == codes[row]) & (np.arange(len(codes)) != row))
        negatives = np.flatnonzero((codes >= 0) & (codes != codes[row]))
        if positives.size and negatives.size:
            yield _anchor(int(row), matrix[row], positives, negatives, margin)


def _anchor(
    row: int, line: Scores, positives: npt.NDArray[np.intp], negatives: npt.NDArray[np.intp], margin: float
) -> Anchor:
    near = np.sort(line[negatives])
    reach = line[positives]
    hard = np.searchsorted(near, reach, side="right")
    # An open hinge is margin - (n - p) > 0 as `hinge` computes it; searching p + margin alone would round otherwise.
    open_ = np.array([_open(near, float(p), margin) for p in reach], dtype=np.int64)
    total = np.concatenate([[0.0], np.cumsum(near)])
    worst_p, worst_n = int(np.argmax(reach)), int(np.argmin(line[negatives]))
    return Anchor(
        row=row,
        counts=(int(near.size * reach.size - open_.sum()), int((open_ - hard).sum()), int(hard.sum())),
        gap=float((open_ * reach - total[open_]).sum()),
        worst=hinge(float(reach[worst_p]), float(line[negatives[worst_n]]), margin),
        worst_pair=(int(positives[worst_p]), int(negatives[worst_n])),
    )


def _open(near: Scores, positive: float, margin: float) -> int:
    """Count the sorted negatives whose hinge is open."""
    count = int(np.searchsorted(near, positive + margin, side="left"))
    while count and margin - (near[count - 1] - positive) <= 0:
        count -= 1
    while count < near.size and margin - (near[count] - positive) > 0:
        count += 1
    return count


def batch(vectors: npt.ArrayLike, codes: Codes, *, margin: float = 0.2, squared: bool = False) -> Batch:
    """Summarise all valid triplets of a batch, (n, d) vectors of any length and (n,) label codes.

    Raises:
        InputError: a margin that is not above 0.
        ShapeError: not one code per vector.

    >>> same = batch(np.ones((8, 4)), np.repeat([0, 1], 4), margin=0.2)
    >>> same.loss_mean, same.collapsed, batch(np.eye(3), np.arange(3)).triplets
    (0.2, True, 0)
    """
    check_margin(margin)
    matrix = distances(vectors, squared=squared)
    return batch_of(matrix, codes, margin=margin, squared=squared)


def batch_of(matrix: Scores, codes: Codes, *, margin: float, squared: bool = False) -> Batch:
    """Summarise as `batch` does, from (n, n) distances that are already there."""
    if matrix.shape != (len(codes), len(codes)):
        raise ShapeError(f"{len(codes)} label codes need ({len(codes)}, {len(codes)}) distances, not {matrix.shape}.")
    rows = list(anchors(matrix, codes, margin=margin))
    counts = np.array([row.counts for row in rows], dtype=np.int64).reshape(-1, 3).sum(axis=0)
    total, open_ = int(counts.sum()), int(counts[1:].sum())
    loss = margin + sum(row.gap for row in rows) / open_ if open_ else 0.0
    labelled = codes >= 0
    same = (codes[:, None] == codes[None, :]) & labelled[:, None] & labelled[None, :]
    other = ~same & labelled[:, None] & labelled[None, :]
    np.fill_diagonal(same, False)
    spread = float(matrix.sum() / max(1, len(codes) * (len(codes) - 1)))
    return Batch(
        items=len(codes),
        triplets=total,
        easy=int(counts[0]),
        semi_hard=int(counts[1]),
        hard=int(counts[2]),
        loss_mean=open_ / total * loss if total else 0.0,
        loss_open=loss,
        positive_mean=float(matrix[same].mean()) if same.any() else float("nan"),
        negative_mean=float(matrix[other].mean()) if other.any() else float("nan"),
        collapsed=len(codes) > 1 and spread < (COLLAPSED**2 if squared else COLLAPSED),
    )


def hardest(matrix: Scores, codes: Codes, *, margin: float, top: int = 10) -> list[Anchor]:
    """Return the anchors with the largest single loss, worst first, equal ones in row order."""
    same_length(matrix=matrix, codes=codes)
    return sorted(anchors(matrix, codes, margin=margin), key=lambda anchor: (-anchor.worst, anchor.row))[:top]


def check_margin(margin: float) -> float:
    """Return the margin.

    Raises:
        InputError: not above 0, or not finite.
    """
    if not (np.isfinite(margin) and margin > 0):
        raise InputError(f"margin={margin} must be above 0.", hint="0.2 is the usual start.")
    return margin
