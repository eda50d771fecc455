"""Drawing on several processors: processes of our own, because drawing holds Python's lock.

`multiprocessing` would import the caller's script anew, which breaks every script without a `__main__` guard.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lookalike import threads
from lookalike.errors import LookalikeError

WORTH_IT = 40  # pictures; a process costs about as long as eight of them


def divide(settings: Mapping[str, int], folder: Path, *, pictures: int, workers: int | None) -> bool:
    """Draw every picture by `workers` processes; False where one process, this one, is the better choice.

    Raises:
        InputError: fewer than one worker.
        LookalikeError: a process failed; its last words are repeated.
    """
    count = threads.resolve(workers)
    if count < 2 or pictures < WORTH_IT or not sys.executable:
        return False
    source = str(Path(__file__).resolve().parents[3])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, json.dumps(dict(settings)), str(folder), str(worker), str(count)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for worker in range(count)
    ]
    try:
        errors = [process.communicate()[1] for process in running]
    finally:
        for process in running:  # an interrupt here must not leave them drawing
            if process.poll() is None:
                process.kill()
                process.communicate()
    for process, words in zip(running, errors, strict=True):
        if process.returncode:
            last = words.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise LookalikeError(f"A process that draws pictures failed: {last[0]}")
    return True


def main(arguments: list[str]) -> None:
    """Draw every n-th picture: settings, folder, which worker, of how many."""
    from lookalike.datasets.generated.catalogue import Catalogue

    catalogue = Catalogue(**json.loads(arguments[0]))
    for shot in catalogue.shots()[int(arguments[2]) :: int(arguments[3])]:
        catalogue.take(shot, Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
