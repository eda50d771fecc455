"""A run on disk: the report twice, for people and programs, and one line a query."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Scores
from lookalike.errors import InputError, NotFoundError
from lookalike.evaluate.report import Report, to_json

GROUP = "group"
"""Column of per_query.csv by which the bootstrap draws whole groups, where the run declared one."""


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """A run read back: the report as its JSON contract says, and (q,) values of each metric by query name."""

    folder: Path
    report: dict[str, Any]
    names: tuple[str, ...]
    per_query: dict[str, Scores]
    groups: tuple[str, ...] = ()


def load_run(folder: Path) -> SavedRun:
    """Read a run that `save_run` wrote.

    Raises:
        NotFoundError: no run there.
        InputError: a run whose files cannot be read; the file is named.
    """
    for name in ("report.json", "per_query.csv"):
        if not (folder / name).is_file():
            raise NotFoundError(
                f"There is no run at {str(folder)!r}: {name} is missing.", hint="eval --save writes one."
            )
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        with (folder / "per_query.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            header, *rows = list(csv.reader(file))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
        table = dict(zip(header, columns, strict=True))
        values = {
            name: np.array([float(cell) if cell else np.nan for cell in column])
            for name, column in table.items()
            if name not in ("query", GROUP)
        }
        return SavedRun(
            folder=folder, report=report, names=table["query"], per_query=values, groups=table.get(GROUP, ())
        )
    except (ValueError, KeyError) as error:
        raise InputError(f"The run at {str(folder)!r} cannot be read: {error}.") from error


def find_runs(folder: Path) -> Iterator[Path]:
    """Yield the folders of runs at or below a folder, in order of name.

    Raises:
        NotFoundError: no such folder.
    """
    if not folder.is_dir():
        raise NotFoundError(f"There is no folder {str(folder)!r}.")
    yield from sorted(path.parent for path in folder.rglob("report.json"))


def save_run(report: Report, folder: Path) -> None:
    """Write a run into a folder that does not exist yet, all of it or nothing.

    Raises:
        InputError: the folder already holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} already holds something.", hint="Name a new folder for this run.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        made = Path(scratch, "run")
        made.mkdir()
        (made / "report.json").write_text(to_json(report) + "\n", encoding="utf-8")
        (made / "report.txt").write_text(report.to_text(), encoding="utf-8", errors="surrogateescape")
        _write_queries(report, made / "per_query.csv")
        if report.failed:
            lines = "".join(json.dumps(failure._asdict()) + "\n" for failure in report.failed)
            (made / "failures.jsonl").write_text(lines, encoding="utf-8")
        if folder.exists():
            folder.rmdir()  # empty, as checked above
        shutil.move(made, folder)


def _write_queries(report: Report, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["query", *report.per_query, *([GROUP] if report.groups else [])])
        for row, name in enumerate(report.query_names):
            values = [column[row] for column in report.per_query.values()]
            cells = ("" if np.isnan(value) else repr(float(value)) for value in values)  # empty: not evaluated
            writer.writerow([name, *cells] if not report.groups else [name, *cells, report.groups[row]])
