"""`lookalike serve` as a user runs it: an address, an answer, and an end that loses nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .shops import Client, make_catalogue, write_picture

TOKEN = "a-token-of-32-letters-and-digits"


@contextlib.contextmanager
def process(shop: Path, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "lookalike", "serve", str(shop), "--no-browser", "--threads", "1", *options]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        assert running.stdout is not None
        yield running, running.stdout.readline().strip()
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2].partition("/")[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_answers_and_leaves_with_0_when_asked(shop, number):
    with process(shop, "--port", "0") as (running, address):
        assert address.startswith("http://127.0.0.1:")
        client = Client(port_of(address))
        assert client.get("health").json["status"] == "ok"
        page = client.get("/")
        assert page.status == 200
        assert page.headers["content-type"].startswith("text/html")
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
        assert (running.returncode, out) == (0, "")
        assert err.splitlines()[-1] == "stopped"
        assert "Traceback" not in err


def test_it_refuses_other_machines_without_a_token_and_says_where_one_goes(shop):
    command = [sys.executable, "-m", "lookalike", "serve", str(shop), "--host", "0.0.0.0", "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "LOOKALIKE_TOKEN" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_token_from_the_environment_is_asked_of_everybody(shop):
    with process(shop, "--host", "0.0.0.0", "--port", "0", LOOKALIKE_TOKEN=TOKEN) as (_, address):
        assert address.endswith(f"/?token={TOKEN}")
        client = Client(port_of(address))
        assert client.get("health").status == 401
        assert client.get("health", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200


@pytest.mark.parametrize(
    ("words", "said"), [(("nowhere.la",), "no catalogue"), (("{shop}", "--encoder", "builtin:other"), "builtin:other")]
)
def test_what_cannot_be_served_is_one_sentence(shop, words, said):
    command = [sys.executable, "-m", "lookalike", "serve", *(word.format(shop=shop) for word in words), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_named(shop):
    with process(shop, "--port", "0") as (_, address):
        command = [
            sys.executable,
            "-m",
            "lookalike",
            "serve",
            str(shop),
            "--port",
            str(port_of(address)),
            "--no-browser",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert "--port 0" in done.stderr


def test_asked_to_stop_under_load_it_answers_what_it_took_and_loses_nothing(tmp_path):
    shop = make_catalogue(tmp_path)
    for number in range(200):
        write_picture(shop.parent / "photos" / "more" / f"{number}.png", number % 3, seed=900 + number)
    statuses: list[int] = []
    with process(shop, "--port", "0") as (running, address):
        client = Client(port_of(address))
        started = client.post("sync", {}).json
        watcher = threading.Thread(target=_watch, args=(client, started["events"]))
        askers = [threading.Thread(target=_ask_until_gone, args=(client, statuses)) for _ in range(8)]
        for thread in [watcher, *askers]:
            thread.start()
        time.sleep(1.0)
        asked = time.monotonic()
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=60)
        for thread in [watcher, *askers]:
            thread.join(30)
            assert not thread.is_alive()
        assert running.returncode == 0, err
        assert "Traceback" not in err, err
        assert time.monotonic() - asked < 40
    assert statuses
    assert set(statuses) == {200}
    checked = subprocess.run(
        [sys.executable, "-m", "lookalike", "sync", str(shop), "--format", "json", "-q"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    result = json.loads(checked.stdout)
    assert result["items"] == 218
    assert result["unchanged"] + result["added"] == 218


def _ask_until_gone(client: Client, statuses: list[int]) -> None:
    """Ask until nothing listens; an answer that began must be whole."""
    while True:
        try:
            statuses.append(client.post("search", {"terms": [{"item": 1}], "k": 5}).status)
        except (ConnectionRefusedError, ConnectionResetError, http.client.RemoteDisconnected, BrokenPipeError):
            return


def _watch(client: Client, url: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    connection.request("GET", url)
    connection.getresponse().read()
    connection.close()
