"""Geometric verification: does the candidate show the same thing, in one consistent position?

RootSIFT, ratio and mutual tests, a homography by MAGSAC (Barath et al., CVPR 2020, in OpenCV's USAC). It answers WHICH
one it is, where an encoder answers WHAT it is.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from lookalike import threads as processors
from lookalike.arrays import Ids, Rgb, Scores
from lookalike.catalogue.store import Candidate, Store
from lookalike.embed.sources import Item, read
from lookalike.errors import ImageError, InputError, InputTypeError, ShapeError
from lookalike.index.neighbours import Neighbours
from lookalike.rank.local_features import FeatureStore, LocalFeatures, LocalFeatureSettings, opencv, shrunk

_ITERATIONS = 2000
_CONFIDENCE = 0.999
_MIN_POINTS = 4  # a homography has eight unknowns
_SCALES = (0.02, 50.0)  # a plausible change of area; beyond it the points have collapsed onto a line or a spot


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """Settings of geometric verification.

    Raises:
        InputError: a value outside its range.
    """

    min_inliers: int = 15
    """Fewer prove nothing: unrelated pictures reach a dozen by chance. They never move a candidate up."""
    ratio: float = 0.8
    """A match counts if its distance is below this share of the second nearest's (Lowe, IJCV 2004)."""
    threshold: float = 5.0
    """Pixels of the shrunk picture by which a match may miss the homography."""
    features: LocalFeatureSettings = field(default_factory=LocalFeatureSettings)

    def __post_init__(self) -> None:
        if (
            isinstance(self.min_inliers, bool)
            or not isinstance(self.min_inliers, int)
            or self.min_inliers < _MIN_POINTS
        ):
            raise InputError(f"min_inliers={self.min_inliers!r}: at least {_MIN_POINTS} determine a homography.")
        if not 0 < self.ratio <= 1:
            raise InputError(f"ratio={self.ratio!r} is outside 0..1.")
        if not 0 < self.threshold < np.inf:
            raise InputError(f"threshold={self.threshold!r}: give a number of pixels above 0.")


@dataclass(frozen=True, eq=False)
class Match:
    """What two pictures have in common."""

    pairs: npt.NDArray[np.int64]
    """(m, 2) keypoints of the query and of the candidate that passed the ratio and mutual tests."""
    inside: npt.NDArray[np.bool_]
    """(m,) those that agree with the homography."""
    homography: npt.NDArray[np.float64] | None
    """(3, 3) from the query's shrunk copy to the candidate's; None where there is none."""

    @property
    def inliers(self) -> int:
        """Matches that agree with the homography."""
        return int(self.inside.sum())


def match(query: LocalFeatures, other: LocalFeatures, settings: Geometric | None = None) -> Match:
    """Match two pictures' features and fit a homography; with too few matches to verify, none is tried.

    Raises:
        MissingExtraError: OpenCV is not installed.
    """
    chosen = settings or Geometric()
    pairs = _pairs(query, other, chosen.ratio)
    if len(pairs) < chosen.min_inliers:
        return Match(pairs, np.zeros(len(pairs), dtype=bool), None)
    cv2 = opencv()
    source, target = query.points[pairs[:, 0]], other.points[pairs[:, 1]]
    try:
        homography, inside = cv2.findHomography(
            source, target, cv2.USAC_MAGSAC, chosen.threshold, maxIters=_ITERATIONS, confidence=_CONFIDENCE
        )
    except cv2.error:  # raised where every point lies on one line
        homography, inside = None, None
    if homography is None or not _plausible(homography, source[inside.ravel() > 0]):
        return Match(pairs, np.zeros(len(pairs), dtype=bool), None)
    return Match(pairs, inside.ravel() > 0, homography)


def _pairs(query: LocalFeatures, other: LocalFeatures, ratio: float) -> npt.NDArray[np.int64]:
    """Mutual nearest neighbours among descriptors whose second nearest is clearly farther."""
    if len(query) < 2 or len(other) < 2:
        return np.empty((0, 2), dtype=np.int64)
    cosines = query.root @ other.root.T
    rows = np.arange(len(query))
    best = cosines.argmax(axis=1)
    first = cosines[rows, best]
    returned = cosines.max(axis=0)[best] == first  # mutual: nobody is closer to the other end either
    cosines[rows, best] = -1.0
    second = cosines.max(axis=1)
    # squared distances of unit vectors are 2 - 2s
    kept = np.flatnonzero(returned & (1.0 - first < ratio * ratio * (1.0 - second)))
    kept = kept[_distinct(query.points[kept])]  # one spot in several orientations is one proof, not many
    kept = kept[_distinct(other.points[best[kept]])]
    return np.stack([kept, best[kept]], axis=1).astype(np.int64)


def _distinct(points: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """First place of every distinct (x, y) among (m, 2), ascending."""
    return np.sort(np.unique(points[:, 0] + 1j * points[:, 1], return_index=True)[1])


def _plausible(homography: npt.NDArray[np.float64], points: npt.NDArray[np.float32]) -> bool:
    """Whether the map keeps orientation and a sane scale where the inliers lie: no mirror, no collapse."""
    if len(points) == 0 or not np.isfinite(homography).all():
        return False
    extended = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    depth = extended @ homography[2]
    if not ((depth > 0).all() or (depth < 0).all()):  # the horizon runs through the thing
        return False
    x, y = points.mean(axis=0, dtype=np.float64)
    w = homography[2] @ (x, y, 1.0)
    area = float(np.linalg.det(homography) / w**3)  # Jacobian of a projective map
    return _SCALES[0] < area < _SCALES[1]


class GeometricVerifier:
    """Second stage for the top candidates, or for a whole small catalogue.

    `cache` is a folder for the local features, made when needed; without one they are kept in memory only. Pictures
    that cannot be read stay where they were ranked and stand in `failures`, path to reason.

    Raises:
        MissingExtraError: OpenCV is not installed.
    """

    def __init__(
        self,
        settings: Geometric | None = None,
        *,
        cache: str | os.PathLike[str] | None = None,
        held: int = 2000,
        threads: int | None = 1,
    ) -> None:
        self._threads = processors.resolve(threads)
        opencv().setNumThreads(self._threads)  # OpenCV knows one number a process
        self.settings = settings or Geometric()
        self.features = FeatureStore(self.settings.features, cache, held=held)
        self.failures: dict[str, str] = {}

    def match(self, query: Item, other: Item) -> Match:
        """Match two pictures.

        Raises:
            ImageError: one of them cannot be read.
        """
        return match(self.features.get(query), self.features.get(other), self.settings)

    def rerank(self, query: Item, candidates: Sequence[Candidate], top_k: int) -> list[Candidate]:
        """Return the best `top_k`: verified candidates first, most inliers first, the others after them in their order.

        Scores, higher is better: the inliers of a verified candidate; below 1, and falling with the retrieved order,
        for one that is not.

        Raises:
            ImageError: the query cannot be read.
            InputTypeError: an element is no `Candidate`.
            InputError: no candidates, or `top_k` below 1.
        """
        if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1:
            raise InputError(f"top_k={top_k!r} is no number of candidates: give a whole number of at least 1.")
        if not candidates:
            raise InputError("There are no candidates to verify.", hint="Retrieve at least one first.")
        for candidate in candidates:
            if not isinstance(candidate, Candidate):
                raise InputTypeError(
                    f"Each candidate must be a Candidate(path, score), not {type(candidate).__name__}."
                )
        scores = self._scores(query, [candidate.path for candidate in candidates])
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [Candidate(candidates[i].path, float(scores[i])) for i in order]

    def rerank_neighbours(self, store: Store, pictures: Sequence[Item], neighbours: Neighbours) -> Neighbours:
        """Re-rank retrieved neighbours of many queries by the pictures at the store's paths, as `rerank` does.

        Raises:
            ShapeError: not one picture a row of neighbours.
            ImageError: a query cannot be read.
        """
        return self.verify(pictures, store.paths, neighbours)

    def verify(
        self, pictures: Sequence[Item], files: Callable[[Ids], Sequence[str]], neighbours: Neighbours
    ) -> Neighbours:
        """Re-rank by the pictures that `files` finds for (n,) items, as `rerank` does.

        Raises:
            ShapeError: not one picture a row of neighbours.
            ImageError: a query cannot be read.
        """
        if len(pictures) != len(neighbours):
            raise ShapeError(f"There are {len(pictures)} pictures for {len(neighbours)} rows of neighbours.")
        rows: list[tuple[Ids, Scores]] = []
        for picture, (ids, _) in zip(pictures, neighbours, strict=True):
            scores = self._scores(picture, files(ids))
            order = np.argsort(-scores, kind="stable")
            rows.append((ids[order], scores[order]))
        return Neighbours.from_rows(rows, "ip")

    def explain(self, query: Item, other: Item) -> Rgb:
        """Draw both pictures side by side with their matches, (h, w, 3) uint8: agreeing ones green, others thin red.

        Raises:
            ImageError: one of them cannot be read.
        """
        side = self.settings.features.max_side
        left, right = shrunk(read(query).pixels, side), shrunk(read(other).pixels, side)
        first, second = self.features.get(query), self.features.get(other)
        found = match(first, second, self.settings)
        return draw(left, right, first.points[found.pairs[:, 0]], second.points[found.pairs[:, 1]], found.inside)

    def explain_png(self, query: Item, other: Item) -> bytes:
        """Return the drawing of `explain` as a PNG file.

        Raises:
            ImageError: one of the pictures cannot be read.
        """
        buffer = io.BytesIO()
        Image.fromarray(self.explain(query, other)).save(buffer, format="PNG")
        return buffer.getvalue()

    def _scores(self, query: Item, paths: Sequence[str]) -> Scores:
        mine = self.features.get(query)
        scores = np.empty(len(paths))
        with processors.blas(self._threads):
            for place, path in enumerate(paths):
                inliers = self._inliers(mine, path)
                verified = inliers >= self.settings.min_inliers
                scores[place] = inliers if verified else (len(paths) - place) / (len(paths) + 1)
        return scores

    def _inliers(self, mine: LocalFeatures, path: str) -> int:
        try:
            return match(mine, self.features.get(path), self.settings).inliers
        except ImageError as error:
            self.failures[path] = error.reason
            return 0


def draw(
    left: Rgb,
    right: Rgb,
    sources: npt.NDArray[np.float32],
    targets: npt.NDArray[np.float32],
    inside: npt.NDArray[np.bool_],
) -> Rgb:
    """Join two pictures and connect (m, 2) points of the left with (m, 2) of the right."""
    height = max(left.shape[0], right.shape[0])
    canvas = np.full((height, left.shape[1] + right.shape[1], 3), 255, np.uint8)
    canvas[: left.shape[0], : left.shape[1]] = left
    canvas[: right.shape[0], left.shape[1] :] = right
    picture = Image.fromarray(canvas)
    pen = ImageDraw.Draw(picture)
    for agrees in (False, True):  # the agreeing ones on top
        for (x1, y1), (x2, y2) in zip(sources[inside == agrees], targets[inside == agrees], strict=True):
            ends = [(float(x1), float(y1)), (float(x2) + left.shape[1], float(y2))]
            pen.line(ends, fill=(0, 170, 60) if agrees else (220, 60, 60), width=2 if agrees else 1)
            for x, y in ends if agrees else []:
                pen.ellipse([x - 3, y - 3, x + 3, y + 3], outline=(0, 170, 60))
    return np.asarray(picture)
