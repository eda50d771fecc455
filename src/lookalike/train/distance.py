"""The distance losses and miners are given, and the mean of open hinges: both exact where all vectors are equal."""

# torch and pytorch-metric-learning are an extra; where they are absent their classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

from torch import Tensor, cdist

from lookalike.train.metric_learning import distances, reducers


class UnitDistance(distances.LpDistance):
    """√(2 − 2·cos), or its square, between rows scaled to length 1.

    Unlike the base class it never takes the matrix-product shortcut ‖a‖² − 2ab + ‖b‖², which puts equal float32 rows
    3e-4 apart: collapsed vectors must lose exactly the margin to be recognised.
    """

    def __init__(self, *, squared: bool = False) -> None:
        super().__init__(normalize_embeddings=True, p=2, power=2 if squared else 1)

    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor | None) -> Tensor:
        """(n, d) and (m, d) unit rows -> (n, m) plain distances; the base class squares them."""
        other = query_emb if ref_emb is None else ref_emb
        return cdist(query_emb, other, p=2.0, compute_mode="donot_use_mm_for_euclid_dist")


class OpenMean(reducers.AvgNonZeroReducer):
    """The mean over the losses above 0, added up in float64: a hundred times the margin is the margin in the mean."""

    def element_reduction_helper(self, losses: Tensor, embeddings: Tensor) -> Tensor:
        """(n,) losses -> their mean, or a zero joined to the graph where none is above 0."""
        open_ = losses[losses > 0]
        if len(open_) == 0:
            return self.zero_loss(embeddings)
        return open_.double().mean().to(losses.dtype)
