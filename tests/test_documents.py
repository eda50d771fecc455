"""What the README says is run: its Python blocks, and every command line against the verbs' own options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from PIL import Image

from lookalike.cli.main import VERBS, cli

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def command_lines() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        for block in [*blocks(path, "sh"), *blocks(path, "bash"), *blocks(path, "console")]:
            joined = block.replace("\\\n", " ")
            for line in joined.splitlines():
                if line.removeprefix("$ ").startswith("lookalike "):
                    yield path.name, line.removeprefix("$ ")


@pytest.mark.parametrize(("document", "line"), sorted(set(command_lines())))
def test_every_command_line_of_the_documents_parses(document, line):
    words = shlex.split(line, comments=True)[1:]
    words = words[: words.index("|")] if "|" in words else words
    words = words[: words.index(">")] if ">" in words else words
    if words in (["--help"], ["--version"], ["VERB", "--help"]):
        return
    assert words[0] in VERBS, f"{document}: no such verb"
    command: click.Command | None = cli.get_command(click.Context(cli), words[0])
    rest = words[1:]
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), rest[0])
        rest = rest[1:]
    assert command is not None, f"{document}: {line}"
    context = click.Context(command, info_name=words[0])
    command.parse_args(context, rest)


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    paths = []
    for number in range(8):
        paths.append(str(tmp_path / f"{number}.png"))
        colour = np.array([200, 30, 30] if number % 2 else [30, 30, 200])
        Image.fromarray(np.clip(colour + rng.normal(0, 20, (40, 40, 3)), 0, 255).astype(np.uint8)).save(paths[-1])
    Image.open(paths[1]).save("query.jpg")
    labels = ["red" if number % 2 else "blue" for number in range(8)]
    vectors = rng.normal(size=(8, 4))
    names = {
        "paths": paths, "query_paths": paths[:2], "query_labels": labels[:2], "gallery_paths": paths[2:],
        "gallery_labels": labels[2:], "q_emb": vectors, "g_emb": vectors, "q_labels": labels, "g_labels": labels,
        "q_ids": list(range(8)), "g_ids": list(range(8)),
    }  # fmt: skip
    for block in blocks(ROOT / "README.md", "python"):
        exec(compile(block, "README.md", "exec"), names)
    assert len(names["best"]) == 5
    assert names["report"].recall[1] == 1.0
    assert set(names["scores"]) == {1, 5, 10}
