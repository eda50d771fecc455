"""One writer, named; real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.catalogue.lock import WriterLock
from lookalike.errors import CatalogueError

HOLD = """
import sys, time
from pathlib import Path
from lookalike.catalogue.lock import WriterLock
with WriterLock(Path(sys.argv[1])).holding("sync"):
    sys.stdout.write("held\\n"); sys.stdout.flush()
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_writer_is_told_who_holds_the_lock_and_for_how_long(tmp_path, holder):
    time.sleep(1.1)
    with pytest.raises(CatalogueError, match=rf"process {holder.pid} on .* \(sync, for [1-9] s\)"):
        WriterLock(tmp_path / "lock").acquire("index")


def test_the_lock_of_a_killed_writer_is_free_at_once(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    lock = WriterLock(tmp_path / "lock")
    assert lock.owner() is None
    with lock.holding("index"):
        assert lock.held
    assert not lock.held


def test_a_writer_that_waits_gets_the_lock_when_it_is_given_back(tmp_path, holder):
    lock = WriterLock(tmp_path / "lock")
    holder.send_signal(signal.SIGTERM)
    with lock.holding("index", wait=20):
        owner = WriterLock(tmp_path / "lock").owner()
        assert owner is not None
        assert (owner.pid, owner.purpose) == (os.getpid(), "index")


def test_a_writer_may_write_inside_its_own_writing(tmp_path):
    lock = WriterLock(tmp_path / "lock")
    with lock.holding("outer"), lock.holding("inner"):
        pass
    assert not lock.held


def test_two_objects_of_one_process_exclude_each_other_and_readers_go_on(tmp_path, grid):
    with Catalogue.create(tmp_path / "shop.la", encoder=grid) as one, Catalogue.open(tmp_path / "shop.la") as two:
        one.upsert(["a"], np.eye(8)[:1])
        with one.writing("long job"):
            with pytest.raises(CatalogueError, match=rf"process {os.getpid()} .*long job"):
                two.upsert(["b"], np.eye(8)[:1])
            assert two.search(np.eye(8)[0], k=5)[0].paths == ("a",)
            one.upsert(["b"], np.eye(8)[:1])
            assert two.search(np.eye(8)[0], k=5)[0].paths == ("a", "b")


READ = """
import sys, numpy as np
from lookalike.catalogue.catalogue import Catalogue
with Catalogue.open(sys.argv[1], readonly=True) as shop:
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    seen, bad = set(), 0
    while max(seen, default=0) < int(sys.argv[2]):
        rows = shop.column("batch")
        numbers = set(rows)
        bad += len(numbers) > 1 or len(rows) not in (0, 40)
        seen |= numbers
    sys.stdout.write(f"bad {bad} seen {len(seen)}\\n")
"""


def test_a_reader_in_another_process_never_sees_half_a_commit(tmp_path, grid):
    """Each commit gives all forty items the number of the commit; a reader must find one number, forty times."""
    rounds = 60
    paths = [f"item {i}" for i in range(40)]
    vectors = np.tile(np.eye(8), (5, 1))
    with Catalogue.create(tmp_path / "shop.la", encoder=grid) as shop:
        shop.upsert(paths, vectors, columns={"batch": [0] * 40})
        reader = subprocess.Popen(
            [sys.executable, "-c", READ, str(tmp_path / "shop.la"), str(rounds)], stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        for number in range(1, rounds + 1):
            shop.upsert(paths, vectors, columns={"batch": [number] * 40})
        out, _ = reader.communicate(timeout=60)
    assert out.startswith("bad 0 ")
