"""Files that failed: one line for a person, a file of JSON lines for a program."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lookalike.cli import output
from lookalike.images.load import Failure


def list_failures(failures: Sequence[Failure], total: int, path: Path | None) -> None:
    """Write the failures as JSON lines and say where, in one line on standard error, whatever their number."""
    if not failures:
        return
    if path is None:
        with tempfile.NamedTemporaryFile(prefix="lookalike-failures-", suffix=".jsonl", delete=False) as file:
            path = Path(file.name)
    path.write_text("".join(json.dumps(failure._asdict()) + "\n" for failure in failures))
    output.warning(f"lookalike: {len(failures)} of {total} files could not be read, listed in {path}.")
