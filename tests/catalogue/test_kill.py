"""A few rounds of the script that kills a catalogue; `python scripts/kill_test.py` runs fifty."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kill_test.py"


@pytest.mark.slow
def test_a_killed_catalogue_loses_nothing_committed_and_the_next_sync_completes_it(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("kill_test", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kill_test", script)
    monkeypatch.setattr(sys, "path", sys.path[:])
    spec.loader.exec_module(script)
    tally = script.torture(tmp_path, times=6, files=60, seed=1)
    assert (tally.lost, tally.unsound) == ([], [])
    assert sum(tally.killed.values()) == 6
