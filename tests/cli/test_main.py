"""The command line as a whole: help is light, errors are lines, exit codes are the documented ones."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import click
import pytest

from lookalike.cli import sizes
from lookalike.cli.main import cli

HEAVY = ("torch", "faiss", "onnxruntime", "numba", "scipy", "fastapi")


@pytest.mark.parametrize("code", ["import lookalike", "from lookalike.cli.main import run; run(['--help'])"])
def test_import_and_help_load_no_heavy_library(code):
    check = f"{code}\nimport sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_verb_of_the_table_answers_help():
    from lookalike.cli.main import VERBS

    for verb in VERBS:
        done = subprocess.run(
            [sys.executable, "-m", "lookalike", verb, "--help"], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(f"Usage: lookalike {verb}")


def _commands(command, name):
    yield name, command
    if isinstance(command, click.Group):
        for part in command.list_commands(click.Context(command)):
            yield from _commands(command.get_command(click.Context(command), part), f"{name} {part}")


def test_examples_of_a_help_text_keep_their_lines():
    helps = {name: command.get_help(click.Context(command)) for name, command in _commands(cli, "lookalike")}
    assert not [name for name, text in helps.items() if r"\b" in text]
    assert "  lookalike search shop.la query.jpg -k 5\n" in helps["lookalike search"]


OURS = ("index", "sync", "search", "duplicates", "memory", "plan", "tune", "verify", "backup", "export", "formats",
        "doctor", "demo", "models", "eval", "tune-rank", "train", "leaks", "leaderboard")  # fmt: skip


@pytest.mark.parametrize("verb", OURS)
def test_every_option_is_explained(verb):
    for name, command in _commands(cli.get_command(click.Context(cli), verb), verb):
        unexplained = [
            each.opts for each in command.params if isinstance(each, click.Option) and not each.help and not each.hidden
        ]
        assert not unexplained, name


def test_quiet_leaves_only_what_explains_the_exit_code(run_here, photos):
    assert run_here("index", "shop.la", photos, "-q").err == ""
    for command in (["search", "shop.la", "--item", 1], ["duplicates", "shop.la"], ["verify", "shop.la"]):
        loud, quiet = run_here(*command), run_here(*command, "-q")
        assert (quiet.code, quiet.out, quiet.err) == (loud.code, loud.out, "")
    assert run_here("search", "shop.la", "--item", 1).err.startswith("score: cosine")
    (photos / "red" / "0.png").write_bytes(b"")
    done = run_here("sync", "shop.la", "-q")
    assert (done.code, len(done.err.splitlines())) == (3, 1)
    assert run_here("sync", "nowhere.la", "-q").err.startswith("lookalike: There is no catalogue")


@pytest.mark.parametrize(
    ("type_", "text"),
    [(sizes.Count(), text) for text in ("nan", "inf", "1e400", "1e300", "0", "-1", "1.5", "many")]
    + [(sizes.Bytes(), text) for text in ("1e400GB", "nan", "inf", "16GG", "")]
    + [(sizes.Milliseconds(), text) for text in ("nanms", "inf", "infs", "soon")],
)
def test_a_size_that_is_no_number_is_refused_by_name(type_, text):
    with pytest.raises(click.BadParameter, match=re.escape(repr(text))):
        type_.convert(text, None, None)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [(sizes.Count(), "1e8", 100_000_000), (sizes.Count(), "1_000,000", 1_000_000), (sizes.Bytes(), "16GB", 16 * 10**9),
     (sizes.Bytes(), "1.5 KiB", 1_536), (sizes.Bytes(), "7", 7), (sizes.Milliseconds(), "50ms", 50.0),
     (sizes.Milliseconds(), "0.5s", 500.0), (sizes.Milliseconds(), "3", 3.0)],
)  # fmt: skip
def test_sizes_are_read_as_people_write_them(type_, text, value):
    assert type_.convert(text, None, None) == value


def test_an_unknown_verb_is_a_usage_error(lookalike):
    done = lookalike("evall")
    assert done.code == 2
    assert "evall" in done.err


def test_no_verb_at_all_shows_the_help_and_is_a_usage_error(lookalike):
    done = lookalike()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: lookalike")
    assert "  eval " in done.err
    assert "Traceback" not in done.err


def test_what_stands_after_two_dashes_is_a_name_and_no_option(lookalike):
    assert "Traceback" not in lookalike("eval", "--", "--debug").err
    assert lookalike("eval", "--", "--debug").err.startswith("lookalike: There is nothing at '--debug'.")


def test_debug_shows_the_stack_trace_that_is_hidden_otherwise(lookalike):
    assert "Traceback" in lookalike("eval", "nowhere", "--debug").err
    assert "Traceback" not in lookalike("eval", "nowhere").err


def test_ctrl_c_ends_at_once_with_130_and_one_line(photos, tmp_path):
    code = "import time, lookalike.cli.main as m\n"
    code += "def slow(images):\n    open('started', 'w').close(); time.sleep(60)\n"
    (tmp_path / "slow_encoder.py").write_text(code)
    command = [sys.executable, "-m", "lookalike", "eval", str(photos), "--encoder", "python:slow_encoder:slow"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert len(err.strip().splitlines()) == 1
    assert "Interrupted" in err


def test_a_closed_pipe_is_no_error(photos):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "lookalike", "formats"], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_reproduces_the_golden_vectors(lookalike):
    done = lookalike("doctor", "--format", "json")
    report = json.loads(done.out)
    assert done.code == 0
    assert report["ok"]
    assert any(check["what"] == "builtin encoder" and check["state"] == "ok" for check in report["checks"])


def test_formats_and_models_speak_json_and_csv(lookalike):
    formats = json.loads(lookalike("formats", "--format", "json").out)
    assert {"JPEG", "PNG", "WEBP"} <= {row["format"] for row in formats if row["readable"]}
    models = json.loads(lookalike("models", "list", "--format", "json").out)
    assert models[0]["name"] == "builtin:effnet-lite0"
    assert lookalike("models", "list", "--format", "csv").out.startswith("name,")
