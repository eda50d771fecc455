"""Saved runs: found, listed, read query by query, compared."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Scores
from lookalike.errors import InputError, LookalikeError, UnknownNameError
from lookalike.evaluate.compare import compare
from lookalike.evaluate.saved import SavedRun, find_runs, load_run
from lookalike.server.commands import command
from lookalike.server.items import label_column, labels, plain, sendable, thumbs
from lookalike.server.problems import RefusedError
from lookalike.server.schemas.runs import (
    ComparedMetric,
    CompareRequest,
    Comparison,
    Report,
    RunDetail,
    RunList,
    RunQueries,
    RunQuery,
    RunSummary,
    TrainedDetail,
    TrainedList,
    TrainedSummary,
)
from lookalike.server.shop import Shop

_LARGEST_FILE = 16 << 20


def folders(shop: Shop) -> dict[str, Path]:
    """Return the folders of saved evaluations by id: those of the catalogue, and those of a `runs` folder beside it."""
    places = [shop.runs, shop.settings.catalogue.resolve().parent / "runs"]
    found: dict[str, Path] = {}
    for place in places:
        if place.is_dir():
            found.update((number_of(folder), folder) for folder in find_runs(place))
    return found


def number_of(folder: Path) -> str:
    """Return the id of a folder; it says nothing of where it is."""
    return hashlib.blake2b(str(folder.resolve()).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def listed(shop: Shop, metric: str) -> RunList:
    """List the runs, best first within each protocol; one that cannot be read is left out."""
    rows = []
    for number, folder in folders(shop).items():
        try:
            rows.append(_summary(number, folder, load_run(folder).report))
        except LookalikeError:
            continue
    size = Counter(row.protocol for row in rows)
    rows.sort(key=lambda row: (-size[row.protocol], row.protocol, -(row.metrics.get(metric) or -1.0), row.created))
    return RunList(runs=rows, metric=metric, command=command("leaderboard", shop.runs, metric=metric))


def detail(shop: Shop, number: str) -> RunDetail:
    """Return a run with its report.

    Raises:
        RefusedError: no such run (404).
    """
    folder = _folder(shop, number)
    text = folder / "report.txt"
    said = text.read_text(encoding="utf-8", errors="replace") if text.is_file() else ""
    report = Report.model_validate(plain(load_run(folder).report))
    return RunDetail(id=number, name=sendable(folder.name), report=report, text=said)


def queries(shop: Shop, number: str, only: str, metric: str, cursor: str | None, limit: int) -> RunQueries:
    """Return the queries of a run: all in their order, or those whose value of the metric is below 1, worst first.

    Raises:
        RefusedError: no such run (404).
        UnknownNameError: the run has no such metric.
    """
    run = load_run(_folder(shop, number))
    values = _metric(run, metric)
    rows = np.arange(len(run.names))
    if only == "failed":
        rows = np.flatnonzero(values < 1)
        rows = rows[np.argsort(values[rows], kind="stable")]
    start = int(cursor) if cursor and cursor.isascii() and cursor.isdigit() and len(cursor) < 16 else 0
    chosen = rows[start : start + limit].tolist()
    more = start + len(chosen) < len(rows)
    return RunQueries(
        run=number,
        total=len(rows),
        queries=_queries(shop, run, chosen),
        next=str(start + len(chosen)) if more else None,
    )


def values(shop: Shop, number: str, metric: str) -> tuple[bytes, str]:
    """Return a metric of every item that asked, float32 in id order, NaN elsewhere; and its ETag."""
    run = load_run(_folder(shop, number))
    by_name = dict(zip(run.names, _metric(run, metric).tolist(), strict=True))
    store = shop.store()
    found = [by_name.get(path, np.nan) for path in store.paths(store.ids())]
    tag = f"{number}-{store.revision}-{metric.encode('utf-8', 'backslashreplace').hex()}"
    return np.array(found, dtype="<f4").tobytes(), tag


def compared(shop: Shop, request: CompareRequest) -> Comparison:
    """Compare two runs.

    Raises:
        RefusedError: no such run (404).
        ProtocolError: they asked other questions; what differs is named.
    """
    a, b = _folder(shop, request.a), _folder(shop, request.b)
    found = compare(load_run(a), load_run(b), seed=request.seed)
    metrics = {}
    for name, row in found.items():
        verdict = ("b" if row.difference > 0 else "a") if row.decided else "undecided"
        told = plain(
            {key: getattr(row, key) for key in ("a", "b", "difference", "interval", "p", "won", "lost", "tied")}
        )
        metrics[name] = ComparedMetric(**told, verdict=verdict)
    return Comparison(metrics=metrics, command=command("compare", a, b))


def trained(shop: Shop) -> TrainedList:
    """List the training runs of the catalogue, newest first."""
    rows = [_trained_summary(folder) for folder in _trained(shop)]
    rows.sort(key=lambda row: -row.created)
    return TrainedList(runs=rows, command=command("train", shop.shown))


def trained_detail(shop: Shop, number: str) -> TrainedDetail:
    """Return a training run, epoch by epoch.

    Raises:
        RefusedError: no such run (404).
    """
    folder = next((each for each in _trained(shop) if number_of(each) == number), None)
    if folder is None:
        raise RefusedError(404, f"There is no training run {number!r}.", hint="GET /api/v1/trained lists them.")
    card = next((path for path in sorted(folder.glob("*.md")) if path.stat().st_size < _LARGEST_FILE), None)
    return TrainedDetail(
        id=number,
        name=sendable(folder.name),
        epochs=_epochs(folder),
        card=None if card is None else card.read_text(encoding="utf-8", errors="replace"),
        described=_described(folder),
    )


def _folder(shop: Shop, number: str) -> Path:
    found = folders(shop).get(number)
    if found is None:
        raise RefusedError(404, f"There is no run {number!r}.", hint="GET /api/v1/runs lists them.")
    return found


def _summary(number: str, folder: Path, report: dict[str, Any]) -> RunSummary:
    return RunSummary(
        id=number, name=sendable(folder.name), created=(folder / "report.json").stat().st_mtime,
        encoder=report["encoder"]["name"] if report["encoder"] else "ready vectors",
        protocol=report["protocol"]["digest"], relevance=report["protocol"]["relevance"],
        num_queries=report["num_queries"], num_evaluated=report["num_evaluated"], metrics=plain(report["metrics"]),
        intervals=plain(report["intervals"]),
    )  # fmt: skip


def _metric(run: SavedRun, metric: str) -> Scores:
    if metric not in run.per_query:
        raise UnknownNameError("metric in this run", metric, run.per_query)
    return run.per_query[metric]


def _queries(shop: Shop, run: SavedRun, rows: list[int]) -> list[RunQuery]:
    store = shop.store()
    known: dict[str, int] = {}
    for name in (run.names[row] for row in rows):
        try:
            known[name] = int(store.ids_of([name])[0])
        except InputError:  # a run of other pictures, or an item that has gone since
            continue
    ids = np.array(list(known.values()), dtype=np.int64)
    column = label_column(store)
    pictures = dict(zip(ids.tolist(), thumbs(store, ids), strict=True))
    named = dict(zip(ids.tolist(), labels(store, ids, column), strict=True)) if column else {}
    told = []
    for row in rows:
        number = known.get(run.names[row])
        told.append(
            RunQuery(
                name=sendable(run.names[row]),
                id=number,
                thumb=None if number is None else pictures[number],
                label=None if number is None else named.get(number),
                values={name: plain(float(each[row])) for name, each in run.per_query.items()},
            )
        )
    return told


def _trained(shop: Shop) -> Iterator[Path]:
    if shop.trained.is_dir():
        yield from sorted(path.parent for path in shop.trained.glob("*/epochs.jsonl"))


def _trained_summary(folder: Path) -> TrainedSummary:
    described = _described(folder)
    result = (described or {}).get("result") or {}
    loss = ((described or {}).get("settings") or {}).get("loss")
    return TrainedSummary(
        id=number_of(folder), name=sendable(folder.name), created=(folder / "epochs.jsonl").stat().st_mtime,
        epochs=len(_epochs(folder)), finished=described is not None,
        loss=loss.get("name") if isinstance(loss, dict) else None, encoder=f"run:{sendable(str(folder))}",
        held_out=result.get("held_out"),
    )  # fmt: skip


def _epochs(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "epochs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines:
        try:
            rows.append(plain(json.loads(line)))
        except ValueError:  # the line being written
            break
    return rows


def _described(folder: Path) -> dict[str, Any] | None:
    return _json(folder / "run.json")


def _json(path: Path) -> dict[str, Any] | None:
    if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
        return None
    try:
        found = plain(json.loads(path.read_text(encoding="utf-8")))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
