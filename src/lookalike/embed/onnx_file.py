"""`onnx:FOLDER`: a model exported by `lookalike models export`, without torch."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lookalike import threads as processors
from lookalike.arrays import Rgb, Vectors
from lookalike.embed import views
from lookalike.embed.asked import Asked
from lookalike.embed.builtin import golden
from lookalike.embed.encoder import Card, Encoder
from lookalike.embed.extras import library
from lookalike.embed.hub import MissingWeightsError
from lookalike.embed.options import Options
from lookalike.embed.rows import normalise as unit_rows
from lookalike.embed.steps import Steps
from lookalike.errors import InputError

DESCRIPTION, IMAGES, TEXTS, TOKENISER, GOLDEN = (
    "encoder.json",
    "model.onnx",
    "text.onnx",
    "tokenizer.json",
    "golden.npy",
)
"""Files of an exported encoder: its description, the picture and the text network, the tokenizer, golden vectors."""
FORMAT = 1
PIXELS, FEATURES = "pixels", "features"


def open_onnx(model: str, options: Options) -> Encoder:
    """Open an exported folder, or the `model.onnx` in it.

    Raises:
        MissingWeightsError: a file of the folder is not there.
        InputError: options that an exported network cannot follow, or a description of another format.
    """
    asked = Asked.parse("onnx", model)
    plain = dataclasses.replace(asked, flip=False, crop="published")
    if plain != Asked(source="onnx", model=asked.model):
        raise InputError(f"{asked.name}: an exported network follows only crop and flip.", hint="Export it again.")
    path = Path(asked.model).expanduser()
    folder = path.parent if path.suffix == ".onnx" else path
    how = "An exported folder is made by: lookalike models export NAME FOLDER."
    for name in (IMAGES, DESCRIPTION):
        if not (folder / name).is_file():
            raise MissingWeightsError(asked.name, name, [folder], how)
    return OnnxEncoder(folder, asked, options)


class OnnxEncoder:
    """An exported network through ONNX Runtime: (n, side, side, 3) uint8 in, the same vectors as the original out.

    A picture is a network call of its own, several side by side, so its vector cannot depend on a batch. Sessions are
    made at first use and left out of a pickle.
    """

    def __init__(self, folder: Path, asked: Asked, options: Options) -> None:
        self.folder, self._asked, self._options = folder, asked, options
        self.description = _described(folder)
        self._steps = Steps.from_dict(self.description["steps"]).with_crop(asked.crop)
        self._flip = asked.flip or bool(self.description["flip"])
        self._threads = processors.resolve(options.threads)
        self._lock = threading.Lock()
        self._sessions: dict[str, Any] = {}
        self._tokeniser: Any = None

    @functools.cached_property
    def card(self) -> Card:
        """Which encoder this is; the digest is over the network files."""
        original = self.description["card"]
        padding = f"; text: {self.description['text']['padding']}" if self._reads_text else ""
        return Card(
            name=self._asked.name,
            weights=files_digest(self.folder),
            dim=int(original["dim"]),
            pooling=str(self.description["pooling"]) + ("+flip" if self._flip else ""),
            image_size=self._steps.size,
            preprocessing=f"{self._steps}{padding}",
            normalised=self._options.normalise,
            supports_text=self._reads_text,
            licence=str(original["licence"]),
        )

    @property
    def short_side(self) -> int | None:
        """Pictures are decoded in full: a reduced decode is not the preprocessing that was published."""
        return None

    def prepare(self, image: Rgb) -> npt.NDArray[Any]:
        """(h, w, 3) uint8 of any size -> (side, side, 3) grey levels, or three of them."""
        return self._steps(image)

    def encode_one(self, prepared: npt.NDArray[Any]) -> Vectors:
        """One prepared picture -> (d,) float32; callable from several threads at once."""
        batch, looks = views.stacked([prepared])
        rows = [self._features(batch)]
        if self._flip:
            rows.append(self._features(views.mirrored(batch)))
        row: Vectors = views.combined(rows, looks, unit=self._options.normalise)[0]
        return row

    def encode_prepared(self, prepared: Sequence[npt.NDArray[Any]]) -> Vectors:
        """(n prepared pictures) -> (n, d) float32."""
        if len(prepared) == 0:
            return np.empty((0, self.card.dim), dtype=np.float32)
        workers = min(self._threads, len(prepared))
        if workers == 1:
            return np.stack([self.encode_one(picture) for picture in prepared])
        with ThreadPoolExecutor(workers, thread_name_prefix="lookalike-encode") as pool:
            return np.stack(list(pool.map(self.encode_one, prepared)))

    def encode_images(self, images: Sequence[Rgb]) -> Vectors:
        """(n pictures of any size) -> (n, d) float32."""
        return self.encode_prepared([self.prepare(image) for image in images])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """(n texts) -> (n, d) float32, in the space of the pictures.

        Raises:
            InputError: no text network was exported; encoders that read text are named.
            InputTypeError: not a list of strings.
            MissingExtraError: the package `tokenizers` is not installed.
        """
        from lookalike.embed.text import checked, no_text_tower

        if not self._reads_text:
            raise no_text_tower(self._asked.name)
        listed = checked(texts)
        if not listed:
            return np.empty((0, self.card.dim), dtype=np.float32)
        rows = np.concatenate([self._text(text) for text in listed])
        return unit_rows(rows) if self._options.normalise else rows

    def golden_vectors(self) -> Vectors:
        """Return the vectors of the golden pictures, (4, d) unit rows, as this machine computes them."""
        return unit_rows(
            self._features(np.stack([self._steps.with_one_view(picture) for picture in golden.pictures()]))
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "asked": self._asked, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        OnnxEncoder.__init__(self, **state)

    @property
    def _reads_text(self) -> bool:
        return self.description["text"] is not None

    def _features(self, batch: npt.NDArray[Any]) -> Vectors:
        session = self._session(IMAGES)
        rows = [session.run([FEATURES], {PIXELS: batch[place : place + 1]})[0] for place in range(len(batch))]
        return np.concatenate(rows)

    def _text(self, text: str) -> Vectors:
        """One text, (1, d): a text a call, so that its vector does not depend on the others."""
        if self._tokeniser is None:
            tokenizers = library("tokenizers", feature="Text queries to an exported model", extra="hf")
            self._tokeniser = tokenizers.Tokenizer.from_file(str(self.folder / TOKENISER))
        encoded = self._tokeniser.encode(text)
        given = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask}
        feed = {key: np.array([given[key]], dtype=np.int64) for key in self.description["text"]["inputs"]}
        rows: Vectors = self._session(TEXTS).run([FEATURES], feed)[0]
        return rows

    def _session(self, file: str) -> Any:
        with self._lock:
            if file not in self._sessions:
                if not (self.folder / file).is_file():
                    raise MissingWeightsError(self._asked.name, file, [self.folder], "Export the model again.")
                self._sessions[file] = session(self.folder / file)
            return self._sessions[file]


def session(path: Path) -> Any:
    """Open a network on the processor with one thread a call; calls run side by side."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def files_digest(folder: Path) -> str:
    """Return 32 hex digits over the network files of an exported folder, external weights included."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.glob("*.onnx*")):
        digest.update(path.name.encode() + b"\n")
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def _described(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON: {error}.", hint="Export the model again.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} is not of format {FORMAT}.", hint="Export the model with this version.")
    return found
