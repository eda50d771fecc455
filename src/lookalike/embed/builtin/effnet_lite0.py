"""EfficientNet-Lite0 through ONNX Runtime: the encoder that works offline and without torch."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Rgb, Vectors
from lookalike.embed.builtin import golden
from lookalike.embed.crop import CentreCrop
from lookalike.embed.encoder import Card
from lookalike.embed.rows import normalise as unit_rows
from lookalike.errors import LookalikeError

NAME = "builtin:effnet-lite0"
DIM = 1280
GOLDEN_TOLERANCE = 1e-3
_FILE = Path(__file__).with_name("effnet_lite0.onnx")
_CROP = CentreCrop(resize=256, size=224)
_DECODE = 384
"""Short side down to which a JPEG may be decoded at reduced scale.

At one and a half times the crop's side the vector keeps a cosine of 0.994 or more to that of the full decode (median
0.999 at scales 1/2 and 1/4); at 256 itself, where nothing is left to average, it falls to 0.990.
"""


class BuiltinEncoder:
    """EfficientNet-Lite0 trained on ImageNet, 1280-d pooled features: the offline default and the baseline row.

    A picture is always a network call of its own, so its vector cannot depend on a batch; the calls run side by side
    in `threads` threads. Measured on two cores this is also the quickest way: the activations of one picture fit in
    the cache (5.0 ms a picture), those of 32 do not (13.6 ms).

    The session is made at first use and left out of a pickle, so the encoder travels to other processes.

    >>> encoder = BuiltinEncoder(threads=1)
    >>> encoder.encode_images([np.zeros((300, 200, 3), np.uint8)]).shape
    (1, 1280)
    """

    def __init__(self, *, normalise: bool = True, threads: int | None = None) -> None:
        self._normalise = normalise
        self._threads = processors.resolve(threads)
        self._lock = threading.Lock()
        self._session: Any = None

    @property
    def card(self) -> Card:
        """Which encoder this is."""
        return Card(
            name=NAME,
            weights=_digest(),
            dim=DIM,
            pooling="avg",
            image_size=_CROP.size,
            preprocessing=f"upright RGB (JPEG at reduced scale down to {_DECODE}), {_CROP}, (x - 127) / 128",
            normalised=self._normalise,
            licence="Apache-2.0",
        )

    @property
    def short_side(self) -> int | None:
        """A decoder may shrink a picture down to this short side, in pixels."""
        return _DECODE

    def prepare(self, image: Rgb) -> Rgb:
        """(h, w, 3) uint8 of any size -> (224, 224, 3) uint8."""
        return _CROP(image)

    def encode_one(self, prepared: npt.NDArray[Any]) -> Vectors:
        """(224, 224, 3) uint8 -> (1280,) float32; callable from several threads at once."""
        features: Vectors = self._open().run(None, {"pixels": prepared[None]})[0]
        row: Vectors = (unit_rows(features) if self._normalise else features)[0]
        return row

    def encode_prepared(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        """(n prepared pictures) -> (n, 1280) float32."""
        vectors = np.empty((len(prepared), DIM), dtype=np.float32)
        workers = min(self._threads, len(prepared))
        if workers <= 1:
            for row, picture in enumerate(prepared):
                vectors[row] = self.encode_one(picture)
            return vectors
        with ThreadPoolExecutor(workers, thread_name_prefix="lookalike-encode") as pool:
            for row, vector in enumerate(pool.map(self.encode_one, prepared)):
                vectors[row] = vector
        return vectors

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, 1280) float32."""
        return self.encode_prepared([self.prepare(image) for image in images])

    def check(self) -> float:
        """Encode the golden pictures and return the largest deviation from their float32 vectors.

        Raises:
            LookalikeError: it exceeds 1e-3, so this ONNX Runtime computes something else than the published weights.
        """
        found = unit_rows(np.stack([self.encode_one(picture) for picture in golden.pictures()]))
        worst = float(np.abs(found - golden.vectors()).max())
        if not worst <= GOLDEN_TOLERANCE:
            raise LookalikeError(
                f"{NAME} deviates from its golden vectors by {worst:.2g}, more than {GOLDEN_TOLERANCE:g}.",
                hint="Reinstall lookalike and onnxruntime; vectors made by this installation are not comparable.",
            )
        return worst

    def __getstate__(self) -> dict[str, Any]:
        return {"normalise": self._normalise, "threads": self._threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        BuiltinEncoder.__init__(self, **state)

    def _open(self) -> Any:
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._session = _session()
        return self._session


def _session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the threads run whole pictures, see the class
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(_FILE, options, providers=["CPUExecutionProvider"])


@functools.cache
def _digest() -> str:
    return hashlib.blake2b(_FILE.read_bytes(), digest_size=16).hexdigest()
