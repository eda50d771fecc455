"""Write the reference pages from what they describe: the verbs' own options, and the server's own OpenAPI document.

    python scripts/reference.py            # writes docs/reference/cli.md and the table in docs/http.md

A test regenerates both and compares every byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from lookalike.cli.main import VERBS, cli

ROOT = Path(__file__).resolve().parents[1]
CLI, HTTP, OPENAPI = ROOT / "docs/reference/cli.md", ROOT / "docs/http.md", ROOT / "web/openapi.json"
BEGIN, END = "<!-- begin: written by scripts/reference.py -->\n", "<!-- end -->\n"

HEAD = """# Command line

<!-- Written by scripts/reference.py from the verbs themselves; change their help instead of this page. -->

Results go to standard output, notes and progress to standard error. `lookalike VERB --help` shows the same for a verb.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | an asked-for check failed (`--fail-under`, `--fail`) |
| 2 | refused: usage, or input that cannot be used; one sentence says why, and the next step |
| 3 | done, but some files failed; they are listed in a file that is named |
| 4 | an optional dependency is missing; the message names the extra |
| 70 | a fault of lookalike's own; `--debug`, accepted anywhere on the line, shows the stack trace |
| 130 | interrupted |
"""

EVERYWHERE = ("quiet", "progress", "threads", "offline")
"""Options explained once, above the verbs."""


def cli_page() -> str:
    """Return the whole page of the command line."""
    root = click.Context(cli, info_name="lookalike")
    commands = {name: _verb(cli, root, name) for name in VERBS}
    parts = [HEAD, "## Options of most verbs\n", _options(commands["search"], root, shared=True)]
    parts += ["## Verbs\n", "".join(f"- [{name}](#{name}): {_words(line)}\n" for name, (_, line) in VERBS.items())]
    for name, command in commands.items():
        parts += _sections(name, command, root)
    return "\n".join(parts)


def http_page(page: str) -> str:
    """Return the HTTP page with its table written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + _operations() + END + after


def _sections(name: str, command: click.Command, root: click.Context, depth: int = 3) -> Iterator[str]:
    """Yield the section of a verb, and those of the verbs below it."""
    context = click.Context(command, info_name=name, parent=root)
    yield f"{'#' * depth} {name}\n"
    yield f"`{' '.join(['lookalike', *_path(context), *command.collect_usage_pieces(context)])}`\n"
    yield _help(command.help or "")
    options = _options(command, context, shared=False)
    if options:
        yield options
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from _sections(part, _verb(command, context, part), context, depth + 1)


def _verb(group: click.Group, context: click.Context, name: str) -> click.Command:
    command = group.get_command(context, name)
    if command is None:
        raise SystemExit(f"{name} stands in the table and has no command")
    return command


def _path(context: click.Context) -> list[str]:
    return [*(_path(context.parent) if context.parent and context.parent.parent else []), context.info_name or ""]


def _help(text: str) -> str:
    """Return a help text as Markdown: a paragraph that click must not fill holds example lines."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in paragraph.splitlines()]
        if lines[0] == "\b":  # click's own mark
            paragraphs.append("```sh\n" + "\n".join(lines[1:]) + "\n```\n")
        else:
            paragraphs.append(_words(" ".join(lines)) + "\n")
    return "\n".join(paragraphs)


def _options(command: click.Command, context: click.Context, *, shared: bool) -> str:
    lines = []
    for parameter in command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and (parameter.name in EVERYWHERE) == shared:
            lines.append(f"- `{record[0]}`: {_words(record[1])}\n")
    return "".join(lines)


def _words(text: str) -> str:
    """Keep Markdown from reading marks in words that are not code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<])", r"\\\1", part) for part in parts)


def _operations() -> str:
    paths: dict[str, dict[str, Any]] = json.loads(OPENAPI.read_text(encoding="utf-8"))["paths"]
    groups: dict[str, list[str]] = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            asked = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
            query = f" Query: {', '.join(f'`{name}`' for name in asked)}." if asked else ""
            row = f"| `{method.upper()} {path.removeprefix('/api/v1')}` | {operation['description']}{query} |\n"
            groups.setdefault(operation["tags"][0], []).append(row)
    return "".join(
        f"\n### {tag}\n\n| operation | what it does |\n|---|---|\n{''.join(rows)}" for tag, rows in groups.items()
    )


def main() -> None:
    """Write both pages."""
    CLI.parent.mkdir(parents=True, exist_ok=True)
    CLI.write_text(cli_page(), encoding="utf-8")
    HTTP.write_text(http_page(HTTP.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
