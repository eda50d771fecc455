"""The entry point: which verb, which exit code.

Exit codes: 0 done; 1 an asked-for check failed; 2 usage or refused input; 3 done, but some files failed; 4 an optional
dependency is missing; 70 a fault of ours (please report it); 130 interrupted.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from lookalike import __version__
from lookalike.cli import output
from lookalike.errors import LookalikeError, MissingExtraError

# verb -> (module, one line for `lookalike --help`): a module is imported only when its verb runs, so help stays fast.
VERBS: Mapping[str, tuple[str, str]] = {
    "demo": ("lookalike.cli.demo", "Make a catalogue of generated pictures and run the main job on it, offline."),
    "eval": ("lookalike.cli.eval", "Measure retrieval on labelled pictures or vectors: an honest recall@K."),
    "index": ("lookalike.cli.index", "Make a catalogue from a folder of pictures."),
    "sync": ("lookalike.cli.sync", "Bring a catalogue up to date with its folder."),
    "search": ("lookalike.cli.search", "Find the pictures of a catalogue most like a query."),
    "serve": ("lookalike.cli.serve", "Serve a catalogue: the web app with search and the five labs, and the HTTP API."),
    "duplicates": ("lookalike.cli.duplicates", "Group pictures kept twice: bytes, pixels, similar."),
    "tune": ("lookalike.cli.tune", "Choose an index by measuring it on a catalogue's own vectors."),
    "tune-rank": ("lookalike.cli.tune_rank", "Choose re-ranking settings on one part of the identities."),
    "train": ("lookalike.cli.train", "Fine-tune a head or a network, judged by identities it never saw."),
    "memory": ("lookalike.cli.memory", "Say how many bytes an index takes, before there is one."),
    "plan": ("lookalike.cli.plan", "Say which index fits a number of pictures, a memory and a latency."),
    "verify": ("lookalike.cli.verify", "Check that a catalogue is sound."),
    "backup": ("lookalike.cli.backup", "Copy a catalogue while it is in use."),
    "push": ("lookalike.cli.push", "Bring a catalogue into PostgreSQL with pgvector, or Milvus."),
    "export": ("lookalike.cli.export", "Write a catalogue for another tool."),
    "leaks": ("lookalike.cli.leaks", "Find pictures that stand on both sides of a split."),
    "compare": ("lookalike.cli.compare", "Compare two saved runs query by query."),
    "leaderboard": ("lookalike.cli.leaderboard", "Order saved runs, protocol by protocol."),
    "models": ("lookalike.cli.models", "List, fetch, export and check encoders."),
    "formats": ("lookalike.cli.formats", "List the picture formats this installation reads."),
    "doctor": ("lookalike.cli.doctor", "Say what is installed, what is missing and what that costs."),
}

CHECK_FAILED, REFUSED, SOME_FILES_FAILED, EXTRA_MISSING, OUR_FAULT, INTERRUPTED = 1, 2, 3, 4, 70, 130


class VerbGroup(click.Group):
    """A group that knows its verbs from a table and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the table's order, which is the order of use."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's module and return its `command`."""
        if name not in VERBS:
            return None
        command = importlib.import_module(VERBS[name][0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{VERBS[name][0]}.command is not a click command")
        return _with_examples(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing a verb."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


def _with_examples(command: click.Command) -> click.Command:
    r"""Turn the two characters `\b` of a raw docstring into the one that keeps click from filling what follows."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    for part in command.commands.values() if isinstance(command, click.Group) else ():
        _with_examples(part)
    return command


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="lookalike")
@click.option("--debug", is_flag=True, help="Show the stack trace of an error.")
def cli(debug: bool) -> None:
    """Image retrieval you can trust: embed, index, rank, re-rank, measure.

    Results go to standard output, notes and progress to standard error. Exit codes: 0 done, 1 an asked-for check
    failed, 2 refused input, 3 done but some files failed, 4 an optional dependency is missing.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with the documented exit code."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(args))


def run(args: list[str]) -> int:
    """Run the command line and return the exit code; errors become one line (or one JSON object) on stderr."""
    end = args.index("--") if "--" in args else len(args)
    options, names = args[:end], args[end:]  # after `--` stand names, whatever they look like
    quiet = "-q" in options or "--quiet" in options
    output.notes(shown=not quiet)
    _show_notices(quiet=quiet)
    debug = "--debug" in options
    if debug:  # accepted anywhere, because it is added after the fact, at the end of the line that failed
        args = [*(arg for arg in options if arg != "--debug"), *names]
    try:
        result: Any = cli.main(args=args, prog_name="lookalike", standalone_mode=False, obj=list(args))
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (click.Abort, KeyboardInterrupt):
        output.error("Interrupted; nothing half-written was kept.", as_json=False)
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        return _explain(error, as_json=_wants_json(options))


def _show_notices(*, quiet: bool) -> None:
    """Write what the library notes (a first compilation, shrunk cells) to standard error, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("lookalike: %(message)s"))
    logger = logging.getLogger("lookalike")
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


def _explain(error: Exception, *, as_json: bool) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        output.warning(error.format_message())
        return REFUSED
    if isinstance(error, click.ClickException):
        usage = isinstance(error, click.UsageError) and error.ctx is not None
        hint = f"See: {error.ctx.command_path} --help" if usage and error.ctx is not None else ""  # type: ignore[attr-defined]
        output.error(error.format_message(), hint, as_json=as_json)
        return REFUSED
    if isinstance(error, LookalikeError):
        output.error(error.message, error.hint, as_json=as_json)
        return EXTRA_MISSING if isinstance(error, MissingExtraError) else REFUSED
    if isinstance(error, OSError):
        name = f": {error.filename!r}" if error.filename else ""
        output.error(f"{error.strerror or error}{name}", as_json=as_json)
        return REFUSED
    output.error(
        f"{type(error).__name__}: {error}",
        "This is a fault of lookalike's own: please report it with the output of the same command and --debug.",
        as_json=as_json,
    )
    return OUR_FAULT


def _wants_json(args: Sequence[str]) -> bool:
    asked = [arg.removeprefix("--format=") for arg in args if arg.startswith("--format=")]
    asked += [value for name, value in itertools.pairwise(args) if name == "--format"]
    return any(value in ("json", "jsonl") for value in asked)
