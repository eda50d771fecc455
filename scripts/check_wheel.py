"""Build the wheel and the sdist, install each where nothing else is, and use them as a stranger would.

    python scripts/check_wheel.py [--folder KEPT]

Everything happens in a temporary folder outside the checkout, in an environment of requirements/core.txt alone; the
first thing that is not as it should be ends it with 1. Needs an index for pip, and Node (or PyPI's) for the web app.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = (
    "lookalike/py.typed",
    "lookalike/embed/builtin/effnet_lite0.onnx",
    "lookalike/embed/builtin/golden.npy",
    "lookalike/embed/builtin/NOTICE",
    "lookalike/evaluate/page/style.css",
    "lookalike/server/static/index.html",
)
"""Files of the wheel that are no Python."""

NEVER = re.compile(r"(^|/)(tests?|node_modules|benchmarks|demo|runs)/|\.pyc$|\.map$")
_START_S = 60


class NotAsItShouldBeError(Exception):
    """What a stranger would have stumbled over."""


class Place:
    """An environment outside the checkout, and the folder in which its commands are called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "LOOKALIKE_WEB", "LOOKALIKE_TOKEN")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment |= {"PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def make(self) -> None:
        """Make the environment and install what the core needs, from the lock."""
        run([sys.executable, "-m", "venv", self.folder / "env"], self.folder, self.environment)
        self.pip("-r", ROOT / "requirements" / "core.txt")

    def pip(self, *words: object, web: str = "skip") -> None:
        """Install into the environment."""
        command = [self.bin / "python", "-m", "pip", "install", "--quiet", "--no-compile", *words]
        run(command, self.folder, {**self.environment, "LOOKALIKE_WEB": web})

    def used_in(self, name: str) -> Path:
        """Return a new, empty folder to call commands in."""
        (self.folder / name).mkdir()
        return self.folder / name

    def lookalike(self, where: Path, *words: object) -> str:
        """Call the installed command and return what it wrote to standard output."""
        return run([self.bin / "lookalike", *words], where, self.environment)

    @contextmanager
    def serving(self, where: Path, catalogue: str) -> Iterator[tuple[str, Path]]:
        """Serve a catalogue; yield the address, and the file that what is said on standard error goes to."""
        said = where / "serve.txt"
        command = [self.bin / "lookalike", "serve", catalogue, "--port", "0", "--no-browser"]
        with (
            said.open("wb") as errors,
            subprocess.Popen(
                [str(word) for word in command], cwd=where, env=self.environment, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            try:
                if process.stdout is None:
                    raise NotAsItShouldBeError("serve has no standard output.")
                address = process.stdout.readline().decode().strip()
                expect(address.startswith("http://127.0.0.1:"), f"serve printed no address: {said.read_text()}")
                yield address.rstrip("/"), said
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(_START_S)
        expect(process.returncode == 0, f"serve ended with {process.returncode}, not 0, on SIGTERM.")


def run(command: Sequence[object], where: Path, environment: dict[str, str]) -> str:
    """Call a program and return its standard output.

    Raises:
        NotAsItShouldBeError: it failed; what it said is repeated.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=where, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotAsItShouldBeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(right: bool, otherwise: str) -> None:
    """Raise NotAsItShouldBeError unless it is right."""
    if not right:
        raise NotAsItShouldBeError(otherwise)


def get(address: str) -> tuple[int, str, bytes]:
    """Fetch an address: status, type, bytes."""
    with urllib.request.urlopen(address, timeout=_START_S) as answer:
        return answer.status, answer.headers.get_content_type(), answer.read()


def build(folder: Path, environment: dict[str, str]) -> tuple[Path, Path]:
    """Build the wheel with the web app as pip does, and the sdist with hatchling; return both."""
    command = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--quiet", "--wheel-dir", folder]
    run(command, folder, {**environment, "LOOKALIKE_WEB": "require"})
    tool = folder / "hatchling"
    run([sys.executable, "-m", "pip", "install", "--quiet", "hatchling", "--target", tool], folder, environment)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder]
    run(command, ROOT, {**environment, "PYTHONPATH": str(tool), "LOOKALIKE_WEB": "skip"})
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def check_contents(wheel: Path) -> str:
    """Look for what must be in the wheel, and for what must not."""
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in DATA if name not in names]
    expect(not missing, f"The wheel lacks {', '.join(missing)}.")
    odd = [name for name in names if NEVER.search(name)]
    expect(not odd, f"The wheel holds {', '.join(odd[:5])}.")
    return f"{len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB"


def check_installed_outside(place: Place) -> str:
    """Make sure that it is the installed package that is used, not the checkout."""
    file = run([place.bin / "python", "-c", "import lookalike; print(lookalike.__file__)"], place.folder,
               place.environment).strip()  # fmt: skip
    expect(Path(file).is_relative_to(place.folder.resolve() / "env"), f"lookalike is imported from {file}.")
    return file


def check_commands(place: Place, where: Path) -> str:
    """Run demo, eval, search and doctor in an empty folder."""
    place.lookalike(where, "demo", "--no-progress")
    report = json.loads(place.lookalike(where, "eval", "demo/demo-0.la", "--relevance", "identity", "--format", "json"))
    recall = report["metrics"]["recall@1"]
    expect(0.5 < recall < 1, f"recall@1 of the demo is {recall}.")
    query = next((where / "demo" / "pictures-0").rglob("*.jpg"))
    [first, *_] = json.loads(place.lookalike(where, "search", "demo/demo-0.la", query, "-k", 3, "--format", "json"))
    expect(query.as_posix().endswith(first["path"]), f"{query} finds {first['path']} first, not itself.")
    expect(first["score"] > 0.999, f"{query} finds itself with {first['score']}.")
    doctor = json.loads(place.lookalike(where, "doctor", "--format", "json"))
    states = {row["what"]: row["state"] for row in doctor["checks"]}
    expect(doctor["ok"], f"doctor says {states}.")
    found = [name for name, state in states.items() if name.startswith("extra ") and state == "ok"]
    expect(not found, f"The environment is to be the core alone, and has {', '.join(found)}.")
    return f"demo, eval (recall@1 {recall:.4f}), search ({first['path']} {first['score']:.4f}), doctor (ok, no extras)"


def check_app(place: Place, where: Path) -> str:
    """Fetch the web app with everything it names, and the API's health."""
    with place.serving(where, "demo/demo-0.la") as (address, _):
        status, kind, page = get(f"{address}/")
        expect((status, kind) == (200, "text/html"), f"/ answers {status} {kind}.")
        assets = re.findall(r'(?:src|href)="\./([^"]+)"', page.decode())
        expect(any(name.endswith(".js") for name in assets), f"The page names no script: {page.decode()}")
        for name in assets:
            status, _, content = get(f"{address}/{name}")
            expect(status == 200 and len(content) > 0, f"{name} answers {status} with {len(content)} bytes.")
        health = json.loads(get(f"{address}/api/v1/health")[2])
    return f"serve: / with {', '.join(assets)}; health {json.dumps(health)}"


def check_without_app(place: Place, where: Path, shop: Path) -> str:
    """The sdist without the app serves the API, and says what is missing: on the page and in the terminal."""
    with place.serving(where, str(shop)) as (address, said):
        page = get(f"{address}/")[2].decode()
        health = json.loads(get(f"{address}/api/v1/health")[2])
        sentence = "The web app is not part of this installation"
        expect(sentence in page, f"/ does not say what is missing: {page[:300]}")
        deadline = time.monotonic() + _START_S
        while sentence not in said.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        expect(sentence in said.read_text(), f"serve does not say what is missing: {said.read_text()}")
    return f"serve: says that the app is missing; health {json.dumps(health)}"


def check(folder: Path) -> None:
    """Build, install and use both."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", flush=True)

    place = Place(folder)
    wheel, sdist = build(place.used_in("dist"), place.environment)
    say(f"built {wheel.name} ({check_contents(wheel)}) and {sdist.name} ({sdist.stat().st_size / 1e6:.1f} MB)")
    place.make()
    say("made an environment of requirements/core.txt")
    place.pip("--no-deps", wheel)
    say(f"installed the wheel: {check_installed_outside(place)}")
    used = place.used_in("wheel")
    say(check_commands(place, used))
    say(check_app(place, used))
    place.pip("--no-deps", "--force-reinstall", sdist, web="skip")
    say(f"installed the sdist with LOOKALIKE_WEB=skip: {check_installed_outside(place)}")
    say(check_without_app(place, place.used_in("sdist"), used / "demo" / "demo-0.la"))


def main() -> int:
    """Check, in a folder that is kept where one was named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--folder", type=Path, help="an empty folder to work in, which is kept")
    kept = parser.parse_args().folder
    folder = kept or Path(tempfile.mkdtemp(prefix="lookalike-wheel-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        check(folder.resolve())
    except NotAsItShouldBeError as error:
        print(f"check_wheel: {error}", file=sys.stderr)
        return 1
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
