"""The built app over generated pictures, and a browser that does in it what a person would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card

REPOSITORY = Path(__file__).resolve().parents[2]
WEB = REPOSITORY / "web"
STATIC = REPOSITORY / "src/lookalike/server/static"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
COLOURS = {"amber": (214, 150, 30), "blue": (40, 80, 200), "green": (30, 150, 70)}
Scenario = Callable[..., Any]


@pytest.fixture(scope="session")
def app() -> None:
    """The app as its source is now; skipped where it cannot be built or no browser can show it."""
    if shutil.which("node") is None:
        pytest.skip("the web app's tests need node")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no browser at {CHROMIUM}: apt-get install chromium, or set CHROMIUM")
    if not (WEB / "node_modules").is_dir():
        pytest.skip("the web app's packages are not installed: npm ci --prefix web")
    built = STATIC / "index.html"
    sources = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    newest = max(path.stat().st_mtime for path in [*sources, WEB / "package.json", WEB / "vite.config.ts"])
    if not built.is_file() or built.stat().st_mtime < newest:
        subprocess.run(["npm", "run", "--silent", "build"], cwd=WEB, check=True, capture_output=True)


@pytest.fixture(scope="session")
def pictures(app: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue of 45 drawn pictures, fifteen of each colour, and one file that is none."""
    folder = tmp_path_factory.mktemp("web")
    root, rows = folder / "pictures", ["path,label,identity"]
    root.mkdir()
    for number in range(45):
        label = sorted(COLOURS)[number // 15]
        identity = f"{label}-{number // 4 % 3}"
        _draw(number, COLOURS[label]).save(root / f"{number:02}.png")
        rows.append(f"{number:02}.png,{label},{identity}")
    (root / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 and no more")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    command = ["index", folder / "shop.la", root, "--labels", folder / "labels.csv", "--no-progress"]
    done = lookalike(*command)
    assert done.returncode in (0, 3), done.stderr
    return folder / "shop.la"


@pytest.fixture(scope="session")
def browse(pictures: Path) -> Iterator[Scenario]:
    """Run a scenario of web/e2e against the pictures."""
    with serving(pictures) as address:
        yield lambda name, **given: scenario(name, address, **given)


@pytest.fixture(scope="session")
def browse_large(large: Path) -> Iterator[Scenario]:
    """Run a scenario of web/e2e against a hundred thousand items."""
    with serving(large) as address:
        yield lambda name, **given: scenario(name, address, **given)


@pytest.fixture(scope="session")
def large(app: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue of 100,000 vectors of several lengths, without pictures."""
    folder = tmp_path_factory.mktemp("large") / "large.la"
    rng = np.random.default_rng(0)
    n, groups = 100_000, 12
    of = rng.integers(0, groups, n)
    vectors = (2 * rng.normal(size=(groups, 16))[of] + rng.normal(size=(n, 16))).astype(np.float32)
    card = Card(name="random", weights="none", dim=16, pooling="none", normalised=False)
    with Catalogue.create(folder, encoder=card, normalise=False) as catalogue:
        for start in range(0, n, 20_000):
            rows = range(start, start + 20_000)
            columns = {"label": [f"group-{of[row]:02}" for row in rows]}
            catalogue.upsert([f"{row:06}" for row in rows], vectors[start : start + 20_000], columns=columns)
    return folder


def lookalike(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    command = [sys.executable, "-m", "lookalike", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def serving(catalogue: Path) -> Iterator[str]:
    """Serve a catalogue and say where."""
    command = [sys.executable, "-m", "lookalike", "serve", str(catalogue), "--port", "0", "--no-browser"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def scenario(name: str, address: str, **given: Any) -> Any:
    """Run one in a browser of its own; return what it found."""
    command = ["node", "e2e/run.mjs", name, address, json.dumps(given)]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _draw(seed: int, colour: tuple[int, int, int]) -> Image.Image:
    rng = np.random.default_rng([seed // 5, 1])
    shape = rng.integers(20, 100, (6, 2))
    shift = np.random.default_rng(seed).integers(-12, 12, 2)
    picture = Image.new("RGB", (128, 128), (235, 235, 228))
    draw = ImageDraw.Draw(picture)
    draw.polygon([(int(x), int(y)) for x, y in shape + shift], fill=colour)
    corner = 20 + shift
    draw.ellipse([int(corner[0]), int(corner[1]), int(corner[0]) + 30, int(corner[1]) + 30], fill=colour)
    return picture
