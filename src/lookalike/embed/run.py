"""A finished training run as an encoder, without torch: the frozen encoder and a head, or one ONNX network."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Rgb, Vectors
from lookalike.embed.crop import CentreCrop
from lookalike.embed.encoder import Card, Encoder, is_staged
from lookalike.embed.rows import as_rows, normalise
from lookalike.errors import EncoderMismatchError, InputError, NotFoundError, ShapeError

RUN, HEAD, NETWORK = "run.json", "head.npz", "model.onnx"
"""Files of a run: its description, the weights of a head, a whole network."""
FORMAT = 1


@dataclass(frozen=True, eq=False)
class LinearHead:
    """One or two linear layers between unit rows, ReLU between them: what `train` saves of a head."""

    weights: tuple[npt.NDArray[np.float32], ...]
    """(out, in) each."""
    biases: tuple[npt.NDArray[np.float32], ...]

    def __call__(self, vectors: Vectors) -> Vectors:
        """(n, d) vectors of any length -> (n, dim) float32, unit rows."""
        if vectors.shape[1] != self.dim_in:
            raise ShapeError(f"The head takes vectors of {self.dim_in} values, not {vectors.shape[1]}.")
        rows = normalise(vectors)
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            # one row at a time through BLAS would be slower, and einsum gives a row the same bits in any batch
            rows = np.einsum("nd,kd->nk", np.maximum(rows, 0) if place else rows, weight, dtype=np.float64) + bias
        return normalise(rows.astype(np.float32))

    @property
    def dim_in(self) -> int:
        """Length of the frozen encoder's vectors."""
        return int(self.weights[0].shape[1])

    @property
    def dim(self) -> int:
        """Length of the trained vectors."""
        return int(self.weights[-1].shape[0])

    @property
    def digest(self) -> str:
        """32 hex digits over all weights."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (*self.weights, *self.biases):
            digest.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write the arrays, by name, to an `.npz` file."""
        named = {f"weight{i}": array for i, array in enumerate(self.weights)}
        np.savez(path, **named, **{f"bias{i}": array for i, array in enumerate(self.biases)})  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path) -> LinearHead:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            count = len(stored.files) // 2
            head = cls(
                tuple(stored[f"weight{i}"] for i in range(count)), tuple(stored[f"bias{i}"] for i in range(count))
            )
        if any(a.shape[0] != b.shape[1] for a, b in itertools.pairwise(head.weights)):
            raise ShapeError(f"The layers in {str(path)!r} do not fit one another.")
        return head


class HeadEncoder:
    """A frozen encoder with a trained head behind it."""

    def __init__(self, base: Encoder, head: LinearHead, card: Card) -> None:
        self.base, self.head = base, head
        self._card = card

    @property
    def card(self) -> Card:
        """Which run this is."""
        return self._card

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, dim) float32."""
        return self.head(as_rows(self.base.encode_images(images), len(images), source=self.base.card.name))


class StagedHeadEncoder(HeadEncoder):
    """The same behind an encoder whose preparation of a picture runs apart from the network."""

    base: Any

    @property
    def short_side(self) -> int | None:
        """As the frozen encoder."""
        side: int | None = self.base.short_side
        return side

    def prepare(self, image: Rgb) -> npt.NDArray[Any]:
        """As the frozen encoder."""
        prepared: npt.NDArray[Any] = self.base.prepare(image)
        return prepared

    def encode_prepared(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        """(n prepared pictures) -> (n, dim) float32."""
        return self.head(self.base.encode_prepared(prepared))


class NetworkEncoder:
    """A whole fine-tuned network through ONNX Runtime: (n, side, side, 3) uint8 in, unit rows out.

    A picture is a network call of its own, so its vector cannot depend on a batch; the calls run side by side. The
    session is made at first use and left out of a pickle.
    """

    def __init__(self, path: Path, card: Card, crop: CentreCrop, *, threads: int | None = None) -> None:
        self._path, self._card, self._crop = path, card, crop
        self._threads = processors.resolve(threads)
        self._lock = threading.Lock()
        self._session: Any = None

    @property
    def card(self) -> Card:
        """Which run this is."""
        return self._card

    @property
    def short_side(self) -> int | None:
        """The crop is cut from a picture scaled to this short side."""
        return self._crop.resize

    def prepare(self, image: Rgb) -> Rgb:
        """(h, w, 3) uint8 of any size -> (side, side, 3) uint8."""
        return self._crop(image)

    def encode_one(self, prepared: npt.NDArray[Any]) -> Vectors:
        """One prepared picture -> (dim,) float32; callable from several threads at once."""
        row: Vectors = normalise(self._open().run(None, {"pixels": prepared[None]})[0])[0]
        return row

    def encode_prepared(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        """(n prepared pictures) -> (n, dim) float32."""
        if not prepared:
            return np.empty((0, self._card.dim), dtype=np.float32)
        with ThreadPoolExecutor(min(self._threads, len(prepared)), thread_name_prefix="lookalike-encode") as pool:
            return np.stack(list(pool.map(self.encode_one, prepared)))

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, dim) float32."""
        return self.encode_prepared([self.prepare(image) for image in images])

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self._path, "card": self._card, "crop": self._crop, "threads": self._threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        NetworkEncoder.__init__(self, **state)

    def _open(self) -> Any:
        with self._lock:
            if self._session is None:
                import onnxruntime

                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1  # the threads run whole pictures
                options.log_severity_level = 3
                self._session = onnxruntime.InferenceSession(self._path, options, providers=["CPUExecutionProvider"])
            return self._session


def load_run(path: Path | str, *, find: Callable[[str], Encoder], threads: int | None = None) -> Encoder:
    """Open the folder of a finished run as an encoder; `find` turns the frozen encoder's name into it.

    Raises:
        NotFoundError: no such folder, or a run that has not finished.
        InputError: a folder of another format, or a head trained on ready vectors, which no picture leads to.
        EncoderMismatchError: the frozen encoder found here is another one than the head was trained on.
    """
    folder = Path(path)
    described = read_run(folder)
    card = _card(described["card"])
    if described["kind"] == "network":
        crop = CentreCrop(**described["crop"])
        return NetworkEncoder(_there(folder / NETWORK), card, crop, threads=threads)
    head = LinearHead.load(_there(folder / HEAD))
    name = described["base"]["encoder"]
    if not name or name.endswith(".npy"):
        raise InputError(
            f"The head in {str(folder)!r} was trained on ready vectors, so it cannot read pictures.",
            hint="Train it on the vectors of a named encoder, or apply `LinearHead.load` to vectors.",
        )
    base = find(name)
    differing = [line for line in base.card.differences(_card(described["base"]["card"])) if "normalised" not in line]
    if differing:
        raise EncoderMismatchError(
            f"The head in {str(folder)!r} was trained on another {name}: {'; '.join(differing)}.",
            hint="Install the version it was trained with, or train again.",
        )
    return StagedHeadEncoder(base, head, card) if is_staged(base) else HeadEncoder(base, head, card)


def read_run(folder: Path) -> dict[str, Any]:
    """Return the description of a run.

    Raises:
        NotFoundError: no such folder, or a run that has not finished.
        InputError: not a description this version reads.
    """
    path = folder / RUN
    if not path.is_file():
        why = "the run has not finished" if folder.is_dir() else "there is no such folder"
        raise NotFoundError(f"There is no {RUN} in {str(folder)!r}: {why}.", hint="Name the folder of a finished run.")
    try:
        described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON: {error}.", hint="Train again.") from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} is not a run of format {FORMAT}.", hint="Train again with this version.")
    return described


def _there(path: Path) -> Path:
    if not path.is_file():
        raise NotFoundError(f"The run lacks {path.name!r} in {str(path.parent)!r}.", hint="Train again.")
    return path


def _card(values: dict[str, Any]) -> Card:
    return Card(**{key: value for key, value in values.items() if key != "digest"})
