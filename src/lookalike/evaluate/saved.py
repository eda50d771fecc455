"""A run on disk: the report twice, for people and programs, and one line a query."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from pathlib import Path

from lookalike.errors import InputError
from lookalike.evaluate.report import Report, to_json


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
        writer.writerow(["query", *report.per_query])
        for row, name in enumerate(report.query_names):
            values = [column[row] for column in report.per_query.values()]
            writer.writerow([name, *("" if value != value else f"{value:.10g}" for value in values)])  # NaN: left out
