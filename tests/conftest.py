"""Fixtures every test folder may use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real labelled pictures and golden numbers; a test that needs it is skipped where it is absent."""
    path = Path(os.environ.get("LOOKALIKE_SHARED", REPOSITORY.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"real pictures and golden numbers are not at {path} (set LOOKALIKE_SHARED)")
    return path


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def lookalike(tmp_path: Path) -> Callable[..., Done]:
    """Run `lookalike` in a process of its own, in an empty folder."""

    def run(*args: object, stdin: str | None = None) -> Done:
        command = [sys.executable, "-m", "lookalike", *map(str, args)]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run(
            command, capture_output=True, text=True, input=stdin, cwd=tmp_path, env=environment, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def write_picture(path: Path, hue: int, seed: int) -> None:
    """Write a noisy picture of one colour, so that pictures of a hue are near one another and none are equal."""
    rng = np.random.default_rng(seed)
    base = np.zeros((64, 64, 3)) + np.array([[200, 40, 40], [40, 180, 60], [40, 60, 200]][hue])
    base[8 * hue : 8 * hue + 30, 10:50] = 255
    noisy = np.clip(base + rng.normal(0, 12, base.shape), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noisy).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three classes of four pictures each."""
    root = tmp_path / "photos"
    for hue, name in enumerate(("red", "green", "blue")):
        for number in range(4):
            write_picture(root / name / f"{number}.png", hue, seed=10 * hue + number)
    return root


@pytest.fixture
def run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Done]:
    """Run `lookalike` in this process, in an empty folder: what `lookalike` does, without starting Python anew."""
    from lookalike.cli.main import run

    monkeypatch.chdir(tmp_path)

    def here(*args: object) -> Done:
        capfdbinary.readouterr()
        code = run([str(arg) for arg in args])
        out, err = capfdbinary.readouterr()
        return Done(code, os.fsdecode(out), os.fsdecode(err))

    return here
