"""Metric learning in miniature: six prototypes under noise, an MLP, and two hundred steps.

    python examples/toy_triplets.py

Six unit vectors in 128 dimensions are hidden under noise of 0.15 a dimension, which is 1.7 times as long as they are.
An MLP to 64 dimensions learns to tell them apart, once with semi-hard triplets and once with a learned proxy a class,
whose loss then sees every class at every step. What it learned is measured on samples it has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lookalike.evaluate.recall import recall_at_k
from lookalike.train import triplets
from lookalike.train.losses import make_loss
from lookalike.train.objective import Objective

PROTOTYPES, DIM, NOISE, OUT, RATE, STEPS = 6, 128, 0.15, 64, 3e-3, 200
PER_CLASS = 8
MARGIN = 0.2


@dataclass(frozen=True)
class Figures:
    """One row of the table this example prints."""

    name: str
    recall: float
    open_share: float
    positive: float
    negative: float
    loss: float | None


def samples(prototypes: Tensor, per_class: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw noisy samples of each prototype and their codes."""
    codes = torch.arange(PROTOTYPES).repeat_interleave(per_class)
    return prototypes[codes] + NOISE * torch.randn(len(codes), DIM, generator=generator), codes


def measure(name: str, vectors: Tensor, codes: Tensor, loss: float | None) -> Figures:
    """Measure samples no step has seen, each asking all the others."""
    rows, labels, ids = vectors.detach().numpy(), codes.numpy(), np.arange(len(codes))
    summary = triplets.batch(rows, labels, margin=MARGIN)
    recall = recall_at_k(rows, rows, labels, labels, ks=(1,), query_ids=ids, gallery_ids=ids)[1]
    return Figures(name, recall, summary.open_share, summary.positive_mean, summary.negative_mean, loss)


def learn(name: str, *, seed: int = 0) -> tuple[Figures, Figures]:
    """Train with the named loss; return the figures before and after."""
    generator = torch.Generator().manual_seed(seed)
    prototypes = nn.functional.normalize(torch.randn(PROTOTYPES, DIM, generator=generator))
    unseen, labels = samples(prototypes, 50, generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(DIM, 128), nn.ReLU(), nn.Linear(128, OUT))
        objective = Objective(make_loss(name), mining=None, classes=PROTOTYPES, dim=OUT)
    before = measure("untrained", model(unseen), labels, None)
    # the proxies are parameters of the objective: leave it out here and they stay where chance put them
    optimiser = torch.optim.Adam([*model.parameters(), *objective.parameters()], lr=RATE)
    last = 0.0
    for _ in range(STEPS):
        loss, learns = objective(model(samples(prototypes, PER_CLASS, generator)[0]), codes=batch_codes())
        last = float(loss.detach())
        if learns:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return before, measure(name, model(unseen), labels, last)


def batch_codes() -> Tensor:
    """Codes of a training batch, the same in each."""
    return torch.arange(PROTOTYPES).repeat_interleave(PER_CLASS)


def main() -> None:
    """Print the table."""
    print(f"{'':14}recall@1  open hinges  d(a,p)  d(a,n)  last loss")
    shown = []
    for name in ("triplet", "proxy-anchor"):
        before, after = learn(name)
        shown += [after] if shown else [before, after]
    for row in shown:
        loss = "" if row.loss is None else f"{row.loss:9.4f}"
        print(
            f"{row.name:14}{row.recall:8.3f}  {row.open_share:11.1%}  {row.positive:6.3f}  {row.negative:6.3f}  {loss}"
        )


if __name__ == "__main__":
    main()
