"""--offline: nothing but this machine is asked, whatever a source, a worker or a store is named."""

from __future__ import annotations

import socket
import threading

import pytest

from lookalike import network
from lookalike.catalogue.external.address import Address
from lookalike.catalogue.external.opening import open_external
from lookalike.catalogue.sources import folder_at
from lookalike.errors import InputError

ELSEWHERE = "192.0.2.1"  # RFC 5737: an address nobody has


@pytest.fixture(autouse=True)
def nothing_leaves(monkeypatch):
    """Fail what opens a connection, or looks a name up, before the flag was heeded."""

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError(f"a socket was opened: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def _refused(done, named):
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 1
    assert named in done.err
    assert "--offline" in done.err


@pytest.mark.parametrize("source", ["s3://bucket/photos", "https://pictures.example/all"])
def test_an_object_store_is_not_listed(source, run_here, tmp_path):
    _refused(run_here("index", "shop.la", source, "--offline", "-q"), source)
    assert not (tmp_path / "shop.la").exists()


def test_a_manifest_with_one_far_picture_is_refused_as_a_whole(photos, run_here, tmp_path):
    (tmp_path / "rows.csv").write_text("path,label\nred/0.png,red\nhttps://pictures.example/1.png,red\n")
    _refused(run_here("index", "shop.la", tmp_path / "rows.csv", "--offline"), "https://pictures.example/1.png")


def test_a_scheduler_elsewhere_is_not_joined(photos, run_here):
    _refused(run_here("index", "shop.la", photos, "--on", f"dask:tcp://{ELSEWHERE}:8786", "--offline", "-q"), ELSEWHERE)


@pytest.mark.parametrize("verb", [("search", "{}", "--item", "1"), ("eval", "{}"), ("push", "shop.la", "{}")])
@pytest.mark.parametrize("store", [f"postgresql://me:secret@{ELSEWHERE}/shop", f"milvus:http://{ELSEWHERE}:19530"])
def test_a_store_on_an_engine_elsewhere_is_not_asked(verb, store, photos, run_here):
    if verb[0] == "push":
        assert run_here("index", "shop.la", photos, "-q").code == 0
    done = run_here(*(word.format(store) for word in verb), "--offline")
    _refused(done, ELSEWHERE)
    assert "secret" not in done.err


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("postgresql:///shop", ()),
        ("postgresql://me@localhost:5433/shop", ("localhost",)),
        ("postgresql:///shop?host=/run/postgresql", ("/run/postgresql",)),
        ("postgresql://[::1],127.0.0.1/shop", ("::1", "127.0.0.1")),
        ("milvus:shop.db", ()),
        ("milvus:http://127.0.0.1:19530", ("127.0.0.1",)),
    ],
)
def test_stores_of_this_machine_stay_allowed(address, hosts, monkeypatch):
    for variable in ("PGHOST", "PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(variable, raising=False)
    place = Address.parse(address)
    assert place.hosts == hosts
    with network.forbidden():
        network.check(str(place), place.hosts)


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("postgresql:///shop", {"PGHOST": "db.example"}),
        ("postgresql://localhost/shop", {"PGHOSTADDR": ELSEWHERE}),
        ("postgresql://localhost/shop?hostaddr=192.0.2.1", {}),
        ("postgresql://localhost,db.example/shop", {}),
        ("postgresql:///shop?service=far", {}),
        ("postgresql:///shop", {"PGSERVICE": "far"}),
        ("env:SHOP", {"SHOP": "postgresql://db.example/shop"}),
    ],
)
def test_a_host_is_found_wherever_libpq_would_take_it_from(text, environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with network.forbidden(), pytest.raises(InputError, match="not on this machine"):
        open_external(text)


def test_files_of_this_machine_are_listed_by_uri_offline(photos):
    pytest.importorskip("fsspec")
    with network.forbidden():
        assert len(folder_at(f"file://{photos}")().files) == 12


def test_the_flag_holds_for_running_threads_and_ends_with_its_verb(run_here):
    seen: list[bool] = []
    begin = threading.Event()
    thread = threading.Thread(target=lambda: (begin.wait(10), seen.append(network.is_forbidden())))
    thread.start()
    with network.forbidden():
        begin.set()
        thread.join()
    assert seen == [True]
    run_here("search", "nowhere.la", "--item", 1, "--offline")
    assert not network.is_forbidden()


def test_the_variable_says_the_same_as_the_flag(monkeypatch):
    monkeypatch.setenv("LOOKALIKE_OFFLINE", "1")
    with pytest.raises(InputError, match="not on this machine"):
        network.check("there", [ELSEWHERE])
