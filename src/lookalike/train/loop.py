"""The training loop: batches in, steps out, exactly repeatable and resumable at any epoch."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,no-untyped-call"

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from lookalike.arrays import Codes, Ids
from lookalike.errors import LookalikeError
from lookalike.train import triplets
from lookalike.train.objective import Objective
from lookalike.train.processes import Processes
from lookalike.train.records import Tally
from lookalike.train.sampling import PKSampler
from lookalike.train.settings import Settings
from lookalike.train.trouble import divergence


class DivergedError(LookalikeError, ArithmeticError):
    """The loss stopped being a number."""


class Source(Protocol):
    """The material as the network's input."""

    def inputs(self, rows: Ids, *, epoch: int) -> Tensor:
        """Return the (b, …) inputs of these training rows in this epoch, the same however often they are asked for."""

    def every(self, rows: Ids) -> Tensor:
        """Return the inputs of any rows of the material, as the finished encoder sees them."""


class CachedVectors:
    """Vectors computed once, on the device; `train` says which of them are the training rows."""

    def __init__(self, vectors: Tensor, train: Ids) -> None:
        self._vectors, self._train = vectors, train

    def inputs(self, rows: Ids, *, epoch: int) -> Tensor:
        """Return the vectors of these training rows."""
        return self.every(self._train[rows])

    def every(self, rows: Ids) -> Tensor:
        """Return the vectors of these rows."""
        return self._vectors[torch.from_numpy(rows).to(self._vectors.device)]


class Loop:
    """Model, objective and optimiser of one run.

    Gradient accumulation keeps the loss's meaning: with `micro_batch` the whole batch is embedded without gradients
    first, the loss is taken over all of it, and each part is embedded again to carry its share of the gradient back
    (gradient caching; Gao et al., 2021). Splitting the loss itself would leave out the pairs between the parts.
    Several processes each embed a slice of every batch, so that their number changes nothing but the time.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        source: Source,
        codes: Codes,
        settings: Settings,
        *,
        groups: list[dict[str, Any]],
        processes: Processes,
    ) -> None:
        self.model, self.objective = model, objective
        self._source, self._codes, self._settings, self._processes = source, codes, settings, processes
        smallest = 2 if settings.loss.pairs else 1
        self.sampler = PKSampler(
            codes=codes,
            classes=settings.classes,
            per_class=settings.per_class,
            seed=settings.seed,
            smallest=smallest,
        )
        proxies = [{"params": list(objective.parameters()), "lr": settings.proxy_rate, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(
            [group for group in (*groups, *proxies) if group["params"]],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        self._rates = [group["lr"] for group in self.optimiser.param_groups]
        self.steps = 0
        self._horizon = settings.epochs * len(self.sampler.epoch(1))

    def epoch(self, number: int, *, check: Callable[[], None] = lambda: None) -> Tally:
        """Train one epoch and return what its batches said.

        `check` is called before each batch and may raise to cancel; the checkpoint of the epoch before still stands.

        Raises:
            DivergedError: the loss is NaN or infinite.
        """
        self.model.train()
        tally = Tally(self._settings.head.dim)
        for place, rows in enumerate(self.sampler.epoch(number)):
            check()
            vectors, loss = self.step(rows, epoch=number, place=place)
            codes = self._codes[rows]
            tally.add(vectors, self._summary(vectors, codes), loss)
        return tally

    def step(self, rows: Ids, *, epoch: int, place: int = 0) -> tuple[Any, float | None]:
        """Take one optimiser step; return the batch's vectors and its loss, or None where nothing was to learn."""
        codes = torch.from_numpy(self._codes[rows]).to(self._processes.device)
        vectors, carry = self._embed(rows, epoch=epoch, place=place)
        loss, learns = self.objective(vectors, codes)
        found = vectors.detach().float().cpu().numpy()
        if not learns:
            return found, None
        trouble = divergence(float(loss.detach()), rate=self._settings.learning_rate)
        if trouble is not None or not np.isfinite(found).all():
            raise DivergedError(trouble or f"diverged: a vector of epoch {epoch} is not finite.")
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        carry(vectors)
        self._set_rates()
        self.optimiser.step()
        self.steps += 1
        return found, float(loss.detach())

    def state(self) -> dict[str, Any]:
        """Return everything a later process needs to continue as if it had never stopped."""
        return {
            "model": self.model.state_dict(),
            "objective": self.objective.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "steps": self.steps,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.model.load_state_dict(state["model"])
        self.objective.load_state_dict(state["objective"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.steps = state["steps"]

    @property
    def rate(self) -> float:
        """The head's learning rate at the next step."""
        return self._rates[0] * self._factor()

    def _embed(self, rows: Ids, *, epoch: int, place: int) -> tuple[Tensor, Callable[[Tensor], None]]:
        """Return the batch's vectors and what carries their gradient back into the model."""
        mine = self._processes.mine(rows)
        size = self._settings.micro_batch or len(mine)
        if size >= len(mine) and self._processes.count == 1:
            with self._seeded(epoch, place, 0):
                return self._forward(rows, epoch), lambda _: None
        parts = [mine[start : start + size] for start in range(0, len(mine), size)]
        with torch.no_grad():
            slices = list(self._parts(parts, epoch, place))
        whole = self._processes.gather(torch.cat(slices), len(rows)).detach().requires_grad_(True)

        def carry(vectors: Tensor) -> None:
            if vectors.grad is None:  # no proxy and no pair reached the vectors
                return
            share = self._processes.mine(vectors.grad)
            for part, grad in zip(self._parts(parts, epoch, place), share.split(size), strict=True):
                part.backward(grad.to(part.dtype))
            self._processes.add_gradients(self.model)

        return whole, carry

    def _parts(self, parts: list[Ids], epoch: int, place: int) -> Iterator[Tensor]:
        """Embed the parts one by one, with the same dropout however often it is done."""
        for number, part in enumerate(parts):
            with self._seeded(epoch, place, number):
                yield self._forward(part, epoch)

    def _forward(self, rows: Ids, epoch: int) -> Tensor:
        inputs = self._source.inputs(rows, epoch=epoch)
        with self._processes.autocast():
            return self.model(inputs).float()

    def _seeded(self, epoch: int, place: int, part: int) -> Any:
        seed = np.random.SeedSequence([self._settings.seed, epoch, place, part, self._processes.rank])
        return random_state(int(seed.generate_state(1, np.uint64)[0] >> 1), self._processes.device)

    def _summary(self, vectors: Any, codes: Codes) -> triplets.Batch:
        loss = self._settings.loss
        if not vectors.any(axis=1).all():  # a row of zeros has no direction and takes part in nothing
            codes = np.where(vectors.any(axis=1), codes, -1)
            vectors = np.where(vectors.any(axis=1, keepdims=True), vectors, 1.0)
        return triplets.batch(vectors, codes, margin=loss.triplet_margin, squared=loss.squared)

    def _factor(self) -> float:
        settings, step = self._settings, self.steps
        if step < settings.warm_up:
            return (step + 1) / (settings.warm_up + 1)
        if settings.schedule == "constant":
            return 1.0
        past = (step - settings.warm_up) / max(1, self._horizon - settings.warm_up)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, past)))

    def _set_rates(self) -> None:
        factor = self._factor()
        for group, rate in zip(self.optimiser.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor


@contextlib.contextmanager
def random_state(seed: int, device: Any) -> Iterator[None]:
    """Torch's random state set inside the block, and as it was outside."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
