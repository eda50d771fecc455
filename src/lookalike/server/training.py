"""A head fine-tuned on the stored vectors, saved beside the catalogue."""

from __future__ import annotations

import datetime
import importlib.util
from pathlib import Path
from typing import Any

from lookalike.errors import MissingExtraError
from lookalike.server.commands import command
from lookalike.server.evaluation import Prepared, free
from lookalike.server.items import plain
from lookalike.server.jobs import Work
from lookalike.server.runs import number_of
from lookalike.server.schemas.jobs import TrainRequest
from lookalike.server.shop import Shop
from lookalike.train.losses import make_loss
from lookalike.train.settings import HeadSettings, Settings

_NEEDS = ("torch", "pytorch_metric_learning", "accelerate", "onnx")


def prepared(shop: Shop, request: TrainRequest) -> Prepared:
    """Check a request before its job begins.

    Raises:
        MissingExtraError: torch or pytorch-metric-learning is not installed.
        UnknownNameError: no such column, loss or option.
        InputError: a setting outside its range.
    """
    if missing():
        raise MissingExtraError("Training", "train")
    store = shop.store(request.encoder)
    store.column(request.column, store.ids()[:0])
    settings = settings_of(request)
    stamp = f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{request.loss}"
    folder = free(shop.trained, request.save or stamp)
    said = command(
        "train", shop.shown, label=request.column, loss=request.loss, mining=request.mining, dim=request.dim,
        epochs=request.epochs, P=request.classes, K=request.per_class, seed=request.seed or None, save=folder,
        **request.loss_options,
    )  # fmt: skip
    return Prepared(said, lambda work: _run(shop, request, settings, folder, work))


def missing() -> list[str]:
    """Return the modules of the extra `train` that are not installed."""
    return [name for name in _NEEDS if importlib.util.find_spec(name) is None]


def settings_of(request: TrainRequest) -> Settings:
    """Return the settings of a run, checked."""
    return Settings(
        loss=make_loss(request.loss, request.loss_options),
        mining=request.mining,
        head=HeadSettings(dim=request.dim, layers=request.layers),
        classes=request.classes,
        per_class=request.per_class,
        epochs=request.epochs,
        learning_rate=request.learning_rate,
        holdout=request.holdout,
        seed=request.seed,
    )


def _run(shop: Shop, request: TrainRequest, settings: Settings, folder: Path, work: Work) -> dict[str, Any]:
    from lookalike.train.material import Material
    from lookalike.train.run import train

    store = shop.store(request.encoder)
    work.progress(0, request.epochs, "reading vectors")
    ids = store.ids()
    material = Material(
        vectors=store.vectors(ids),
        labels=store.column(request.column, ids),
        names=store.paths(ids),
        encoder=store.card.name,
        card=store.card,
    )

    def told(record: Any) -> None:
        work.epoch(dict(plain(record.to_dict())))
        work.progress(record.epoch, request.epochs, str(record))

    done = train(material, settings, folder=folder, on_epoch=told, check=work.check)
    return {**plain(done.to_dict()), "run_id": number_of(folder)}
