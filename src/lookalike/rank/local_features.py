"""Local features of a picture (RootSIFT), computed once and kept on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import uuid
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from lookalike.arrays import Rgb
from lookalike.embed.sources import Item, read
from lookalike.errors import ImageError, InputError, MissingExtraError

_FORMAT = "lookalike-sift-1"


@dataclass(frozen=True, kw_only=True)
class LocalFeatureSettings:
    """Settings of the local features; they are part of the name of a cached file.

    Raises:
        InputError: a size or number below 16.
    """

    max_side: int = 800
    """The longer side is brought down to this many pixels first; smaller pictures stay as they are."""
    max_features: int = 800
    """The strongest keypoints are kept; matching two pictures costs their product."""
    contrast: float = 0.02
    """Keypoints of less contrast are dropped: half of the usual 0.04, because product shots have flat parts."""

    def __post_init__(self) -> None:
        for name in ("max_side", "max_features"):
            if getattr(self, name) < 16:
                raise InputError(f"{name}={getattr(self, name)!r}: at least 16 are needed.")
        if not 0 <= self.contrast < 1:
            raise InputError(f"contrast={self.contrast!r} is outside 0..1.")

    @property
    def digest(self) -> str:
        """16 hex digits over the settings and the format of the file."""
        text = json.dumps([_FORMAT, dataclasses.asdict(self)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """Keypoints of one picture in the coordinates of its shrunk copy, with their descriptors."""

    points: npt.NDArray[np.float32]
    """(n, 2) x, y in pixels of the shrunk copy."""
    descriptors: npt.NDArray[np.uint8]
    """(n, 128) SIFT histograms as OpenCV gives them: whole numbers from 0 to 255."""
    size: tuple[int, int]
    """Width and height of the shrunk copy."""

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def root(self) -> npt.NDArray[np.float32]:
        """(n, 128) RootSIFT, rows of length 1 (Arandjelović and Zisserman, CVPR 2012)."""
        histograms = self.descriptors.astype(np.float32)
        sums = np.maximum(histograms.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(np.sqrt(histograms / sums), dtype=np.float32)


def opencv() -> Any:
    """Return the cv2 module.

    Raises:
        MissingExtraError: OpenCV is not installed.
    """
    try:
        import cv2
    except ImportError as error:
        raise MissingExtraError("geometric verification", "geometry") from error
    return cv2


def shrunk(pixels: Rgb, max_side: int) -> Rgb:
    """Bring the longer side down to `max_side` pixels; a smaller picture comes back as it is."""
    height, width = pixels.shape[:2]
    scale = max_side / max(height, width)
    if scale >= 1:
        return pixels
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


def extract(pixels: Rgb, settings: LocalFeatureSettings | None = None) -> LocalFeatures:
    """Find the keypoints of an upright (h, w, 3) picture.

    Raises:
        MissingExtraError: OpenCV is not installed.
    """
    cv2 = opencv()
    chosen = settings or LocalFeatureSettings()
    small = shrunk(pixels, chosen.max_side)
    grey = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    sift = cv2.SIFT_create(nfeatures=chosen.max_features, contrastThreshold=chosen.contrast)
    keypoints, descriptors = sift.detectAndCompute(grey, None)
    size = (int(grey.shape[1]), int(grey.shape[0]))
    if descriptors is None or not len(keypoints):
        return LocalFeatures(np.empty((0, 2), np.float32), np.empty((0, 128), np.uint8), size)
    keep = slice(chosen.max_features)  # OpenCV returns more where strengths tie
    points = np.array([keypoint.pt for keypoint in keypoints], dtype=np.float32)[keep]
    return LocalFeatures(points, descriptors[keep].astype(np.uint8), size)


class FeatureStore:
    """Local features by the content of a picture: the last ones used in memory, all on disk where a folder is given.

    A cached file is named by the BLAKE2b of the picture's bytes and the digest of the settings, so a changed picture or
    setting never meets old features. A damaged file is computed again.
    """

    def __init__(
        self, settings: LocalFeatureSettings, folder: str | os.PathLike[str] | None = None, *, held: int = 2000
    ) -> None:
        self.settings = settings
        self._folder = None if folder is None else Path(folder)
        self._held = held
        self._memory: OrderedDict[str, LocalFeatures] = OrderedDict()
        self._hashes: dict[str, tuple[tuple[int, int], str]] = {}

    def get(self, picture: Item) -> LocalFeatures:
        """Return the features of a path, bytes, Pillow image or uint8 array.

        Raises:
            ImageError: the picture cannot be read.
            MissingExtraError: OpenCV is not installed and the features are not cached.
        """
        content = self._content(picture)
        if content in self._memory:
            self._memory.move_to_end(content)
            return self._memory[content]
        features = self._read(content)
        if features is None:
            features = extract(read(picture).pixels, self.settings)
            self._write(content, features)
        self._memory[content] = features
        if len(self._memory) > self._held:
            self._memory.popitem(last=False)
        return features

    def _content(self, picture: Item) -> str:
        if isinstance(picture, str | os.PathLike):
            return self._file_content(os.fsdecode(picture))
        if isinstance(picture, bytes):
            return _digest(picture)
        pixels = read(picture).pixels
        return _digest(repr(pixels.shape).encode() + pixels.tobytes())

    def _file_content(self, path: str) -> str:
        try:
            status = Path(path).stat()
            stamp = (status.st_size, status.st_mtime_ns)
            known = self._hashes.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, _digest(Path(path).read_bytes()))
                self._hashes[path] = known
        except OSError as error:
            reason = "permission" if isinstance(error, PermissionError) else "missing"
            raise ImageError(path, reason if not Path(path).is_dir() else "unsupported", str(error)) from error
        return known[1]

    def _path(self, content: str) -> Path | None:
        return None if self._folder is None else self._folder / content[:2] / f"{content}-{self.settings.digest}.npz"

    def _read(self, content: str) -> LocalFeatures | None:
        path = self._path(content)
        if path is None or not path.is_file():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                points, descriptors, (width, height) = stored["points"], stored["descriptors"], stored["size"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        return LocalFeatures(points, descriptors, (int(width), int(height)))

    def _write(self, content: str, features: LocalFeatures) -> None:
        path = self._path(content)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")  # two processes may write the same picture
        with partial.open("wb") as file:
            np.savez(file, points=features.points, descriptors=features.descriptors, size=np.array(features.size))
        partial.replace(path)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
