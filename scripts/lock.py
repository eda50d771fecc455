"""Write requirements/*.txt anew: resolve each group of pyproject.toml in an empty environment and freeze it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "requirements"
OWN_TOOLS = {"pip", "setuptools", "wheel"}


def freeze(requirements: list[str], constraint: Path | None) -> list[str]:
    """Install into an empty environment and return the pinned lines."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        pinned = ["-c", str(constraint)] if constraint else []
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned, *requirements], check=True)
        listed = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    # a local version such as +cpu names one machine's build and exists on no index
    return sorted(line.split("+")[0] for line in listed.splitlines() if line.split("==")[0].lower() not in OWN_TOOLS)


def main() -> None:
    """Write core.txt, then every dependency group as what it adds to core."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    header = "# Written by `make lock` from pyproject.toml; do not edit.\n"
    core = freeze(project["project"]["dependencies"], None)
    core_lock = LOCKS / "core.txt"
    core_lock.write_text(header + "\n".join(core) + "\n")
    for group, requirements in project["dependency-groups"].items():
        lines = freeze(project["project"]["dependencies"] + requirements, core_lock)
        added = [line for line in lines if line not in core]
        (LOCKS / f"{group}.txt").write_text(header + "\n".join(added) + "\n")


if __name__ == "__main__":
    main()
