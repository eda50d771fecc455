"""One training run from vectors and labels to an encoder with a verdict."""

# torch is an extra; where it is absent its classes are Any to the type checker.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return"

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lookalike import threads
from lookalike.arrays import Ids, Vectors
from lookalike.errors import InputError
from lookalike.evaluate.splits import Split
from lookalike.train import checkpoint, trouble
from lookalike.train.head import Head
from lookalike.train.judge import Judge, Measured, compare
from lookalike.train.loop import CachedVectors, DivergedError, Loop, random_state
from lookalike.train.material import Material, Plan, plan
from lookalike.train.objective import Objective
from lookalike.train.processes import Processes
from lookalike.train.records import EpochRecord, Log, Tally
from lookalike.train.settings import Settings
from lookalike.train.trained import Trained

_NO_BETTER = "no better held-out recall@1"
_AT_ONCE = 256
"""Rows embedded at a time where no gradient is needed."""


def train(
    material: Material,
    settings: Settings | None = None,
    *,
    folder: Path | str | None = None,
    on_epoch: Callable[[EpochRecord], None] = lambda record: None,
    check: Callable[[], None] = lambda: None,
    resume: bool = False,
    stop_after: int | None = None,
) -> Trained:
    """Train a head, or a network and its head, and compare it with the frozen encoder on held-out identities.

    Args:
        material: Vectors, labels and, for a whole network, pictures.
        settings: Every choice; the defaults suit a few hundred to a few hundred thousand vectors.
        folder: Where the run is kept: checkpoint, `epochs.jsonl`, and at the end the encoder, its card and ONNX.
        on_epoch: Called with each epoch's record.
        check: Called before each batch; raising cancels the run, whose last checkpoint stays.
        resume: Continue from the checkpoint in `folder`, with the result of never having stopped.
        stop_after: Stop for now after this epoch; the folder is an encoder only once the run has finished.

    Raises:
        InputError: labels that cannot be trained on, or a checkpoint of other settings or data.
        MissingExtraError: torch or pytorch-metric-learning is not installed.
    """
    settings = settings or Settings()
    # the products of a head are so small that a second thread costs more than it saves
    with _threads(1 if settings.threads is None and settings.backbone is None else settings.threads):
        run = _Run(material, settings, folder)
        return run.go(on_epoch, check, resume=resume, stop_after=stop_after)


class _Run:
    """The parts of one run, and the order they work in."""

    def __init__(self, material: Material, settings: Settings, folder: Path | str | None) -> None:
        self.material, self.settings = material, settings
        self.folder = None if folder is None else Path(folder)
        self.plan = plan(material, settings)
        self.processes = Processes(precision=settings.precision)
        with random_state(settings.seed, self.processes.device):  # proxies start at random
            self._build()
        names = [str(name) for name in material.names or range(len(material.vectors))]
        self.validation = _judge(self.plan.validation, material.texts, names, settings.seed)
        self.test = _judge(self.plan.test, material.judged, names, settings.seed)
        self.frozen = self._frozen(self.validation)

    def _build(self) -> None:
        """Make model, objective and optimiser."""
        material, settings = self.material, self.settings
        self.head = Head(settings.head, dim_in=material.vectors.shape[1], seed=settings.seed)
        self.head.start_from(material.vectors[self.plan.train], seed=settings.seed)
        self.model, self.source, groups = _parts(material, settings, self.plan, self.head, self.processes)
        objective = Objective(
            settings.loss,
            mining=settings.mining,
            classes=self.plan.classes,
            dim=settings.head.dim,
            memory=settings.memory,
        ).to(self.processes.device)
        self.loop = Loop(
            self.model, objective, self.source, self.plan.codes, settings, groups=groups, processes=self.processes
        )

    def go(
        self,
        on_epoch: Callable[[EpochRecord], None],
        check: Callable[[], None],
        *,
        resume: bool,
        stop_after: int | None,
    ) -> Trained:
        """Train the epochs that are left, then compare and export."""
        progress = self._begin(resume)
        log = Log(self.folder if self.processes.first else None)
        log.restart(progress.records)
        last = min(self.settings.epochs, stop_after or self.settings.epochs)
        while progress.epoch < last and progress.stopped is None:
            record = self._epoch(progress, check)
            if record is not None:
                log.add(record)
                on_epoch(record)
            self._save(progress)
        log.close()
        return self._finish(progress)

    def _begin(self, resume: bool) -> checkpoint.Progress:
        if resume:
            if self.folder is None:
                raise InputError("Resuming needs the folder of the run.")
            progress = checkpoint.load(self.folder, settings=self.settings.digest, data=self.material.digest)
            self.loop.restore(progress.loop)
            if (progress.stopped or "").startswith(_NO_BETTER):
                progress.stopped = self._waited(progress)  # patience may have grown
            return progress
        if self.folder is not None and self.processes.first:
            self.folder.mkdir(parents=True, exist_ok=True)
            if (self.folder / checkpoint.NAME).exists():
                raise InputError(
                    f"{str(self.folder)!r} already holds a run.", hint="Resume it, or train into another folder."
                )
        return checkpoint.Progress(
            settings=self.settings.digest,
            data=self.material.digest,
            loop={},
            best=copy.deepcopy(self.model.state_dict()),
            best_epoch=0,
            best_key=(-1.0, -1.0),
            records=[],
            stopped=None,
        )

    def _epoch(self, progress: checkpoint.Progress, check: Callable[[], None]) -> EpochRecord | None:
        """Train one epoch, judge it and note it; None where it broke off."""
        started = time.perf_counter()
        number, rate = progress.epoch + 1, self.loop.rate
        try:
            tally = self.loop.epoch(number, check=check)
        except DivergedError as error:
            progress.stopped = error.message
            return None
        measured = None if self.validation is None else self._measure(self.validation)
        recall = None if measured is None else measured.means["recall@1"]
        key = _key(measured)
        numbers = tally.numbers()
        collapsed = trouble.collapse(self.settings.loss, numbers, rate=self.settings.learning_rate)
        frozen = None if self.frozen is None else self.frozen.means["recall@1"]
        recalls = [*(record.held_out.get("recall@1") for record in progress.records), recall]
        forgot = trouble.forgetting(recalls, frozen, rate=self.settings.learning_rate)
        best = collapsed is None and (key > progress.best_key or measured is None)
        record = EpochRecord(
            epoch=number,
            **numbers,
            learning_rate=rate,
            held_out={} if measured is None else measured.means,
            intervals={} if measured is None else measured.intervals(resamples=1000),
            best=best,
            notes=_notes(tally, collapsed, forgot),
            seconds=time.perf_counter() - started,
        )
        progress.records.append(record)
        if best:
            progress.best, progress.best_epoch = copy.deepcopy(self.model.state_dict()), number
            progress.best_key = key
        progress.stopped = collapsed or forgot or self._waited(progress)
        return record

    def _waited(self, progress: checkpoint.Progress) -> str | None:
        patience = self.settings.patience
        if self.validation is None or patience is None or progress.epoch - progress.best_epoch < patience:
            return None
        return f"{_NO_BETTER} for {patience} epochs; the weights of epoch {progress.best_epoch} are kept"

    def _save(self, progress: checkpoint.Progress) -> None:
        progress.loop = self.loop.state()
        if self.folder is not None and self.processes.first:
            checkpoint.save(self.folder, progress)
        self.processes.wait()

    def _finish(self, progress: checkpoint.Progress) -> Trained:
        self.model.load_state_dict(progress.best)
        self.model.eval()
        verdict, measured = None, {}
        if self.test is not None:
            before = self._frozen(self.test)
            verdict = compare(before, self._measure(self.test)) if before else None
            measured = {**self.test.counts(), "protocol": self.test.protocol.to_dict()}
        trained = Trained(
            model=self.model.to("cpu"),
            head=self.head,
            settings=self.settings,
            plan=self.plan,
            coverage=self.loop.sampler.coverage(),
            records=tuple(progress.records),
            best_epoch=progress.best_epoch,
            stopped=progress.stopped,
            verdict=verdict,
            measured=measured,
            material=self.material,
            folder=self.folder,
        )
        paused = progress.stopped is None and progress.epoch < self.settings.epochs
        if self.folder is not None and self.processes.first and not paused:
            from lookalike.train.export import export

            export(trained, self.folder)
        self.processes.wait()
        return trained

    def _frozen(self, judge: Judge | None) -> Measured | None:
        return None if judge is None else judge.measure(self.material.vectors[judge.rows])

    def _measure(self, judge: Judge) -> Measured:
        return judge.measure(self._embed(judge.rows))

    def _embed(self, rows: Ids) -> Vectors:
        """Embed rows of the material without gradients and without augmentation (epoch 0)."""
        self.model.eval()
        parts = []
        with torch.no_grad(), self.processes.autocast():
            for start in range(0, len(rows), _AT_ONCE):
                inputs = self.source.every(rows[start : start + _AT_ONCE])
                parts.append(self.model(inputs).float().cpu().numpy())
        return np.concatenate(parts)


def _parts(
    material: Material, settings: Settings, planned: Plan, head: Head, processes: Processes
) -> tuple[nn.Module, Any, list[dict[str, Any]]]:
    """Return the model, where its inputs come from, and its parameters with their rates."""
    if settings.backbone is not None:
        from lookalike.train.finetune import parts

        return parts(material, settings, planned, head, processes)
    model = head.to(processes.device)
    source = CachedVectors(torch.from_numpy(material.vectors).to(processes.device), planned.train)
    return model, source, [{"params": list(model.parameters()), "lr": settings.learning_rate}]


def _judge(split: Split | None, labels: list[str | None], names: list[str], seed: int) -> Judge | None:
    return None if split is None else Judge(split, labels, names, seed=seed)


def _key(measured: Measured | None) -> tuple[float, float]:
    if measured is None:
        return (0.0, 0.0)
    means = measured.means
    return (means["recall@1"] or 0.0, means["map"] or 0.0)


def _notes(tally: Tally, *found: str | None) -> tuple[str, ...]:
    notes = [note for note in found if note]
    settled = trouble.settled(tally.empty, tally.batches)
    if settled:
        notes.append(settled)
    elif tally.empty:
        notes.append(f"{tally.empty} of {tally.batches} batches had nothing to learn from and took no step")
    return tuple(notes)


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Torch's number of threads inside the block, and as it was outside."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads.resolve(count))
    try:
        yield
    finally:
        torch.set_num_threads(before)
