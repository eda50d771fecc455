"""A run on disk: the report for people and for programs, one line a query, and the lists as TREC files."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.arrays import Scores
from lookalike.errors import InputError, NotFoundError, UnknownNameError
from lookalike.evaluate.page.document import page
from lookalike.evaluate.report import Report, to_json
from lookalike.evaluate.trec import default_depth, write_trec

GROUP = "group"
"""Column of per_query.csv by which the bootstrap draws whole groups, where the run declared one."""
FIRST = "first_rank"
"""Column of per_query.csv: the rank of the first right answer, `inf` where none was retrieved."""


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """A run read back: the report as its JSON contract says, and (q,) values of each metric by query name."""

    folder: Path
    report: dict[str, Any]
    names: tuple[str, ...]
    per_query: dict[str, Scores]
    groups: tuple[str, ...] = ()
    first_ranks: Scores | None = None
    """(q,) rank of the first right answer, NaN where not evaluated; None for a run saved without."""

    def failed(self, metric: str) -> list[int]:
        """Return the evaluated queries below 1 in a metric, as positions, the worst first.

        Raises:
            UnknownNameError: the run has no such metric.
        """
        if metric not in self.per_query:
            raise UnknownNameError("metric in this run", metric, self.per_query)
        values = self.per_query[metric]
        below = np.flatnonzero(values < 1)
        first = np.zeros(len(values)) if self.first_ranks is None else -self.first_ranks
        order: list[int] = below[np.lexsort((below, first[below], values[below]))].tolist()
        return order


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
            if name not in ("query", GROUP, FIRST)
        }
        first = table.get(FIRST)
        return SavedRun(
            folder=folder, report=report, names=table["query"], per_query=values, groups=table.get(GROUP, ()),
            first_ranks=None if first is None else np.array([float(cell) if cell else np.nan for cell in first]),
        )  # fmt: skip
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


def save_run(report: Report, folder: Path, *, trec_depth: int | None = None) -> Report:
    """Write a run into a folder that does not exist yet, all of it or nothing; return the report as it was written.

    Raises:
        InputError: the folder already holds something, or a depth below 0.
    """
    if trec_depth is not None and trec_depth < 0:
        raise InputError(f"trec_depth={trec_depth}: 0 writes no lists, 100 the first hundred of each query.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} already holds something.", hint="Name a new folder for this run.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        made = Path(scratch, "run")
        made.mkdir()
        report = _write_lists(report, made, trec_depth)
        (made / "report.json").write_text(to_json(report) + "\n", encoding="utf-8")
        (made / "report.txt").write_text(report.to_text(), encoding="utf-8", errors="surrogateescape")
        (made / "report.html").write_text(page(report), encoding="utf-8", errors="replace")
        _write_queries(report, made / "per_query.csv")
        if report.classes:
            _write_classes(report, made / "per_class.csv")
        if report.failed:
            lines = "".join(json.dumps(failure._asdict()) + "\n" for failure in report.failed)
            (made / "failures.jsonl").write_text(lines, encoding="utf-8")
        if folder.exists():
            folder.rmdir()  # empty, as checked above
        shutil.move(made, folder)
    return report


def _write_lists(report: Report, folder: Path, depth: int | None) -> Report:
    deep = default_depth(report.num_queries) if depth is None else depth
    if not deep or not report.evidence:
        return report
    return dataclasses.replace(report, trec=write_trec(report.evidence, folder, deep))


def _write_queries(report: Report, path: Path) -> None:
    with _table(path, ["query", FIRST, *report.per_query, *([GROUP] if report.groups else [])]) as writer:
        for row, name in enumerate(report.query_names):
            first = report.first_ranks[row]
            cells = (_cell(column[row]) for column in report.per_query.values())
            rank = f"{first:.0f}" if not np.isnan(first) else ""
            writer.writerow([name, rank, *cells, *([report.groups[row]] if report.groups else [])])


def _write_classes(report: Report, path: Path) -> None:
    with _table(path, ["label", "num_queries", "num_evaluated", *report.metrics]) as writer:
        for each in report.classes:
            cells = map(_cell, each.metrics.values())
            writer.writerow([each.label, each.num_queries, each.num_evaluated, *cells])


def _cell(value: float) -> str:
    return "" if np.isnan(value) else repr(float(value))  # empty: not evaluated


@contextlib.contextmanager
def _table(path: Path, header: list[str]) -> Iterator[Any]:
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        yield writer
