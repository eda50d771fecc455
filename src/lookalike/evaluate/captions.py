"""Pictures found by their captions, and captions by their pictures: recall@K in both directions.

The usual protocol of captioned sets (Karpathy & Fei-Fei, CVPR 2015; five captions a picture): every caption is a query
for its one picture; every picture is a query that succeeds with any of its own captions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookalike.arrays import as_vectors
from lookalike.errors import InputError, ShapeError
from lookalike.evaluate import metrics
from lookalike.evaluate.confidence import intervals
from lookalike.evaluate.ranks import Ranks, relevant_ranks
from lookalike.evaluate.relevance import ListedPairs, build_truth
from lookalike.index.neighbours import Metric, check_metric

DEFINITIONS: Mapping[str, str] = {
    "text to image": "share of captions whose picture is among the first K pictures",
    "image to text": "share of pictures with at least one of their captions among the first K captions",
}


@dataclass(frozen=True)
class Direction:
    """One direction: what was asked, and how often the right answer came early."""

    definition: str
    num_queries: int
    num_evaluated: int
    excluded: Mapping[str, int]
    num_gallery: int
    recall: Mapping[int, float]
    """K -> recall@K; NaN where no query was evaluated."""
    intervals: Mapping[int, tuple[float, float]]
    """K -> 95 % interval: a bootstrap over pictures, because captions of one picture rise and fall together."""
    median_rank: float
    """Rank of the first right answer of the median query; NaN where none was evaluated."""


@dataclass(frozen=True)
class CaptionReport:
    """Both directions of a captioned set."""

    text_to_image: Direction
    image_to_text: Direction
    captions_per_image: Mapping[int, int]
    """Number of captions -> number of pictures that have so many."""

    def to_text(self) -> str:
        """Return the report as lines, the definition beside each number."""
        lines = []
        for name, side in (("text to image", self.text_to_image), ("image to text", self.image_to_text)):
            lines += [f"[{name}]", f"num queries: {side.num_queries}", f"num gallery: {side.num_gallery}"]
            lines += [f"left out: {count} ({reason})" for reason, count in side.excluded.items()]
            for k, value in side.recall.items():
                low, high = side.intervals.get(k, (float("nan"), float("nan")))
                lines.append(f"recall@{k}: {value:.4f} [{low:.4f}, {high:.4f}]")
            lines += [f"median rank: {side.median_rank:g}", f"recall@K: {side.definition}", ""]
        return "\n".join(lines)


def caption_recall(
    image_vectors: npt.ArrayLike,
    caption_vectors: npt.ArrayLike,
    image_of_caption: Sequence[int] | npt.NDArray[np.integer],
    *,
    ks: Sequence[int] = (1, 5, 10),
    metric: Metric = "cosine",
    seed: int = 0,
    threads: int | None = None,
) -> CaptionReport:
    """Measure retrieval between (n, d) pictures and (c, d) captions; caption i describes picture `image_of_caption[i]`.

    A picture may have any number of captions; one that has none stays in the gallery, and as a query is left out and
    counted. Equal scores go by position.

    Raises:
        ShapeError: not one picture a caption, or vectors of different lengths.
        InputError: a picture that is not there, or a K below 1.
        NonFiniteError: NaN, infinity or under cosine a zero vector; the rows are named.

    >>> pictures = [[1.0, 0.0], [0.0, 1.0]]
    >>> captions = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]  # two of the first picture, one of the second: it is not found
    >>> found = caption_recall(pictures, captions, [0, 0, 1], ks=(1,))
    >>> round(found.text_to_image.recall[1], 4), found.image_to_text.recall[1]
    (0.6667, 1.0)
    """
    check_metric(metric)
    images = as_vectors(image_vectors, name="image_vectors")
    captions = as_vectors(caption_vectors, name="caption_vectors", dim=images.shape[1])
    owners = _owners(image_of_caption, len(captions), len(images))
    cuts = tuple(sorted({int(k) for k in ks}))
    if not cuts or cuts[0] < 1:
        raise InputError(f"ks={tuple(ks)}: at least one cut-off, each of at least 1, is needed.")
    own: dict[int, list[int]] = {}
    for caption, image in enumerate(owners.tolist()):
        own.setdefault(image, []).append(caption)
    counts = Counter(len(own.get(image, ())) for image in range(len(images)))
    to_image = ListedPairs({caption: [image] for caption, image in enumerate(owners.tolist())})
    sides = []
    for queries, gallery, pairs, groups, name in (
        (captions, images, to_image, owners, "text to image"),
        (images, captions, ListedPairs(own), np.arange(len(images)), "image to text"),
    ):
        truth = build_truth(pairs, num_queries=len(queries), num_gallery=len(gallery))
        ranks = relevant_ranks(queries, gallery, truth, metric=metric, first_only=True, threads=threads)
        sides.append(_direction(ranks, len(gallery), cuts, groups, DEFINITIONS[name], seed))
    return CaptionReport(sides[0], sides[1], dict(sorted(counts.items())))


def _owners(
    image_of_caption: Sequence[int] | npt.NDArray[np.integer], captions: int, images: int
) -> npt.NDArray[np.int64]:
    owners = np.asarray(image_of_caption)
    if owners.shape != (captions,):
        raise ShapeError(
            f"image_of_caption has shape {owners.shape} for {captions} captions; one picture each is needed."
        )
    if captions and owners.dtype.kind not in "iu":
        raise InputError("image_of_caption holds positions of pictures: whole numbers.")
    outside = np.flatnonzero((owners < 0) | (owners >= images))
    if outside.size:
        raise InputError(f"Caption {outside[0]} belongs to picture {owners[outside[0]]}, outside 0..{images - 1}.")
    return owners.astype(np.int64)


def _direction(
    ranks: Ranks, num_gallery: int, cuts: Sequence[int], groups: npt.NDArray[np.int64], definition: str, seed: int
) -> Direction:
    names = {f"recall@{k}": k for k in cuts}
    values = {name: metrics.recall(ranks, k) for name, k in names.items()}
    evaluated = int(ranks.evaluated.sum())
    bounds = intervals(values, groups=groups.tolist(), seed=seed) if evaluated else {}
    first = ranks.first[ranks.evaluated]
    return Direction(
        definition=definition,
        num_queries=len(ranks),
        num_evaluated=evaluated,
        excluded=ranks.excluded,
        num_gallery=num_gallery,
        recall={k: metrics.mean(values[name]) for name, k in names.items()},
        intervals={names[name]: bound for name, bound in bounds.items()},
        median_rank=float(np.median(first)) if first.size else float("nan"),
    )
