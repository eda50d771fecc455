from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from lookalike.catalogue.memory import MemoryStore
from lookalike.catalogue.store import Candidate
from lookalike.errors import ImageError, InputError, InputTypeError, MissingExtraError, ShapeError
from lookalike.rank.geometric import Geometric, GeometricVerifier, Match, _plausible, match
from lookalike.rank.local_features import FeatureStore, LocalFeatureSettings, extract

cv2 = pytest.importorskip("cv2")


def label(seed: int, size: int = 400) -> np.ndarray:
    """A printed label: overlapping shapes of many colours, different for every seed."""
    rng = np.random.default_rng(seed)
    picture = Image.new("RGB", (size, size), tuple(int(v) for v in rng.integers(100, 255, 3)))
    pen = ImageDraw.Draw(picture)
    for _ in range(140):
        x, y = rng.integers(0, size - 40, 2)
        w, h = rng.integers(8, 60, 2)
        shape = pen.rectangle if rng.random() < 0.5 else pen.ellipse
        shape([int(x), int(y), int(x + w), int(y + h)], fill=tuple(int(v) for v in rng.integers(0, 255, 3)))
    return np.asarray(picture)


TILT = cv2.getPerspectiveTransform(
    np.float32([[0, 0], [400, 0], [400, 400], [0, 400]]), np.float32([[70, 40], [380, 15], [350, 390], [30, 340]])
)


def tilted(picture: np.ndarray) -> np.ndarray:
    return cv2.warpPerspective(picture, TILT, (400, 400), borderValue=(128, 128, 128))


@pytest.fixture
def labels(tmp_path: Path) -> list[str]:
    paths = []
    for seed in range(6):
        path = tmp_path / f"label{seed}.png"
        Image.fromarray(label(seed)).save(path)
        paths.append(str(path))
    return paths


def test_the_homography_of_a_tilted_copy_is_found() -> None:
    found = match(extract(label(0)), extract(tilted(label(0))))
    assert found.inliers > 100
    corners = np.float32([[[50, 50], [350, 50], [350, 350], [50, 350]]])
    expected, got = cv2.perspectiveTransform(corners, TILT), cv2.perspectiveTransform(corners, found.homography)
    assert np.abs(expected - got).max() < 1.5


def test_unrelated_labels_stay_below_the_limit() -> None:
    features = [extract(label(seed)) for seed in range(5)]
    assert max(match(a, b).inliers for i, a in enumerate(features) for b in features[:i]) < 15


def test_a_map_that_mirrors_or_collapses_is_not_believed() -> None:
    points = np.float32([[10, 10], [300, 20], [280, 350], [30, 300]])
    assert _plausible(TILT, points)
    assert _plausible(-3 * TILT, points)  # a homography has no scale and no sign of its own
    assert not _plausible(np.diag([-1.0, 1.0, 1.0]), points)
    assert not _plausible(np.diag([0.1, 0.1, 1.0]), points)
    assert not _plausible(np.array([[1, 0, 0], [0, 1, 0], [1, 0, -100.0]]), points)  # the horizon at x = 100
    assert not _plausible(TILT, points[:0])


def test_matches_are_mutual_and_pass_the_ratio_by_the_definition() -> None:
    a, b = extract(label(1)), extract(tilted(label(1)))
    d = ((a.root[:, None].astype(float) - b.root[None].astype(float)) ** 2).sum(-1)
    expected = set()
    for i in range(len(a)):
        j = int(d[i].argmin())
        second = np.partition(d[i], 1)[1]
        if d[:, j].argmin() == i and np.sqrt(d[i, j]) < 0.8 * np.sqrt(second):
            expected.add((i, j))
    pairs = match(a, b).pairs
    found = {(int(i), int(j)) for i, j in pairs}
    spots = {(tuple(a.points[i]), tuple(b.points[j])) for i, j in expected}
    assert len(found - expected) <= 2  # float32 may decide a tie otherwise
    assert len(found) == len({tuple(a.points[i]) for i, _ in found}) == len({tuple(b.points[j]) for _, j in found})
    assert len({s for s, _ in spots}) - len(found) <= 8  # one spot in two orientations is counted once


def test_the_right_label_comes_first_and_the_rest_keep_their_order(labels) -> None:
    pool = [Candidate(path, 1 - i / 10) for i, path in enumerate(labels)]
    best = GeometricVerifier().rerank(tilted(label(4)), pool, 10)
    assert [c.path for c in best] == [labels[4], *labels[:4], labels[5]]
    assert best[0].score >= 15
    assert all(0 < c.score < 1 for c in best[1:])
    assert [c.score for c in best] == sorted((c.score for c in best), reverse=True)
    assert len(GeometricVerifier().rerank(tilted(label(4)), pool, 2)) == 2


def test_too_few_inliers_promote_nobody(labels) -> None:
    pool = [Candidate(path, 0.5) for path in labels]
    strict = GeometricVerifier(Geometric(min_inliers=100_000))
    assert [c.path for c in strict.rerank(tilted(label(4)), pool, 10)] == labels


def test_the_same_pair_gives_the_same_inliers_every_time() -> None:
    a, b = extract(label(2)), extract(tilted(label(2)))
    assert len({match(a, b).inliers for _ in range(5)}) == 1


def test_pictures_without_texture_match_nothing() -> None:
    blank = np.full((64, 64, 3), 200, np.uint8)
    found = match(extract(blank), extract(label(0)))
    assert (found.inliers, found.homography, len(found.pairs)) == (0, None, 0)


def test_neighbours_of_a_store_are_verified_by_their_paths(labels) -> None:
    store = MemoryStore(labels, np.eye(6, dtype=np.float32))
    found = store.neighbours(np.array([[1, 2, 3, 4, 5, 6]] * 2, np.float32), 6)
    again = GeometricVerifier().rerank_neighbours(store, [tilted(label(0)), label(3)], found)
    assert [int(ids[0]) for ids, _ in again] == [0, 3]
    assert again[0][0].tolist() == [0, 5, 4, 3, 2, 1]
    with pytest.raises(ShapeError, match="1 pictures for 2"):
        GeometricVerifier().rerank_neighbours(store, [label(0)], found)


def test_a_lost_candidate_keeps_its_place_and_is_named(labels) -> None:
    Path(labels[1]).unlink()
    verifier = GeometricVerifier()
    best = verifier.rerank(tilted(label(3)), [Candidate(path, 0.5) for path in labels], 6)
    assert [c.path for c in best] == [labels[3], *labels[:3], *labels[4:]]
    assert verifier.failures == {labels[1]: "missing"}
    with pytest.raises(ImageError, match="missing"):
        verifier.rerank(labels[1], [Candidate(labels[0], 0.5)], 1)


def test_features_are_kept_by_content_and_settings(tmp_path, labels) -> None:
    settings, folder = LocalFeatureSettings(), tmp_path / "cache"
    first = FeatureStore(settings, folder).get(labels[0])
    [file] = folder.rglob("*.npz")
    stamp = file.stat().st_mtime_ns
    copy = tmp_path / "copy.png"
    copy.write_bytes(Path(labels[0]).read_bytes())
    again = FeatureStore(settings, folder).get(copy)  # other path, same bytes
    assert file.stat().st_mtime_ns == stamp
    assert (again.points == first.points).all()
    assert (again.descriptors == first.descriptors).all()
    assert again.size == first.size
    FeatureStore(LocalFeatureSettings(max_features=100), folder).get(labels[0])
    assert len(list(folder.rglob("*.npz"))) == 2
    assert not list(folder.rglob("*.partial"))


def test_a_changed_picture_meets_no_old_features(tmp_path, labels) -> None:
    features = FeatureStore(LocalFeatureSettings(), tmp_path / "cache")
    old = features.get(labels[0])
    Image.fromarray(label(9, size=300)).save(labels[0])
    assert features.get(labels[0]).size == (300, 300) != old.size


def test_a_damaged_cache_file_is_made_again(tmp_path, labels) -> None:
    folder = tmp_path / "cache"
    first = FeatureStore(LocalFeatureSettings(), folder).get(labels[0])
    [file] = folder.rglob("*.npz")
    for damage in (b"", b"PK\x03\x04 cut", file.read_bytes()[:500]):
        file.write_bytes(damage)
        assert len(FeatureStore(LocalFeatureSettings(), folder).get(labels[0])) == len(first)
        assert file.stat().st_size > 1000


def test_memory_holds_no_more_pictures_than_asked(labels) -> None:
    features = FeatureStore(LocalFeatureSettings(), held=2)
    for path in labels:
        features.get(path)
    assert len(features._memory) == 2


def test_a_large_picture_is_shrunk_and_keeps_at_most_the_strongest_points() -> None:
    found = extract(label(0, size=1200), LocalFeatureSettings(max_side=300, max_features=64))
    assert found.size == (300, 300)
    assert len(found) <= 64
    assert found.points.max() < 300


def test_the_explanation_shows_both_pictures_and_green_lines(labels) -> None:
    verifier = GeometricVerifier()
    drawing = verifier.explain(labels[0], tilted(label(0)))
    assert drawing.shape == (400, 800, 3)
    assert drawing.dtype == np.uint8
    assert (drawing == (0, 170, 60)).all(axis=2).sum() > 1000
    with Image.open(io.BytesIO(verifier.explain_png(labels[0], labels[1]))) as picture:
        assert (picture.format, picture.size) == ("PNG", (800, 400))


def test_without_opencv_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtraError, match=r"lookalike\[geometry\]"):
        GeometricVerifier()
    with pytest.raises(ImportError):
        extract(label(0))


def test_what_cannot_be_verified_is_refused(labels) -> None:
    verifier = GeometricVerifier()
    with pytest.raises(InputError, match="no candidates"):
        verifier.rerank(labels[0], [], 5)
    with pytest.raises(InputError, match="top_k"):
        verifier.rerank(labels[0], [Candidate(labels[1], 0.5)], 0)
    with pytest.raises(InputTypeError, match="Candidate"):
        verifier.rerank(labels[0], [labels[1]], 1)
    for wrong in ({"min_inliers": 3}, {"ratio": 0}, {"threshold": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Geometric(**wrong)
    for wrong in ({"max_side": 8}, {"max_features": 0}, {"contrast": 1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            LocalFeatureSettings(**wrong)


def test_inliers_are_the_matches_inside() -> None:
    assert Match(np.zeros((3, 2), np.int64), np.array([True, False, True]), None).inliers == 2
