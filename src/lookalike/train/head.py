"""The head: one or two linear layers from a frozen encoder's vector to a shorter one of length 1."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lookalike.arrays import Vectors
from lookalike.train.settings import HeadSettings

# Share of the mean variance added to every direction before it is divided by: without it the last of 128 directions of
# 300 pictures is noise blown up to the size of the first.
_SHRINKAGE = 0.1


class Head(nn.Module):
    """(n, d) vectors -> (n, dim) rows of length 1, in float32 whatever the precision around it."""

    def __init__(self, settings: HeadSettings, *, dim_in: int, seed: int = 0) -> None:
        super().__init__()
        self.settings = settings
        widths = [dim_in, settings.dim] if settings.layers == 1 else [dim_in, settings.hidden, settings.dim]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.dropout = nn.Dropout(settings.dropout)
        rng = np.random.default_rng(seed)
        for layer, (narrow, wide) in zip(self.layers, itertools.pairwise(widths), strict=True):
            _set(layer, _orthogonal(wide, narrow, rng), np.zeros(wide))

    def start_from(self, vectors: Vectors, *, seed: int = 0) -> Head:
        """Set the first layer from the training vectors, as `settings.start` says; the second stays orthogonal."""
        if self.settings.start != "random":
            width = self.settings.dim if self.settings.layers == 1 else self.settings.hidden
            whiten = self.settings.start == "whitening"
            _set(self.layers[0], *projection(vectors, width, whiten=whiten, seed=seed))
        return self

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, d) -> (n, dim), unit rows."""
        with torch.autocast(vectors.device.type, enabled=False):
            hidden = vectors.float()
            for place, layer in enumerate(self.layers):
                hidden = layer(self.dropout(hidden if place == 0 else torch.relu(hidden)))
            return torch.nn.functional.normalize(hidden, dim=1)


def projection(
    vectors: Vectors, dim: int, *, whiten: bool = False, seed: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return weights (dim, d) and bias (dim,) of the directions of largest variance.

    Plain directions keep the mean, so that with as many directions as matter the cosines are those of the frozen
    encoder. Whitening removes the mean and divides each direction by its shrunken standard deviation. Directions beyond
    the rank of the vectors are random and orthogonal to the others.
    """
    rows = vectors.astype(np.float64)
    mean = rows.mean(axis=0)
    centred = rows - mean if whiten else rows
    _, scale, directions = np.linalg.svd(centred, full_matrices=False)
    rank = int((scale > scale.max(initial=0.0) * 1e-6).sum())
    kept = directions[: min(dim, rank)]
    weights = _complete(kept, dim, rows.shape[1], np.random.default_rng(seed))
    if not whiten:
        return weights, np.zeros(dim)
    variance = np.zeros(dim)
    variance[: len(kept)] = scale[: len(kept)] ** 2 / len(rows)
    weights = weights / np.sqrt(variance + _SHRINKAGE * variance.mean() + 1e-12)[:, None]
    return weights, -weights @ mean


def _complete(rows: npt.NDArray[np.float64], count: int, dim: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Add orthogonal random rows; where more rows are asked for than there are dimensions, plain unit rows."""
    if len(rows) >= count:
        return rows
    room = min(count, dim) - len(rows)
    extra = rng.normal(size=(room, dim))
    extra -= extra @ rows.T @ rows
    extra = np.linalg.qr(extra.T)[0].T if room > 0 else extra
    beyond = rng.normal(size=(count - len(rows) - room, dim))
    beyond /= np.linalg.norm(beyond, axis=1, keepdims=True) if len(beyond) else 1.0
    return np.concatenate([rows, extra, beyond])


def _orthogonal(rows: int, columns: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    return _complete(np.empty((0, columns)), rows, columns, rng)


def _set(layer: Any, weights: npt.NDArray[np.float64], bias: npt.NDArray[np.float64]) -> None:
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weights))
        layer.bias.copy_(torch.from_numpy(bias))
