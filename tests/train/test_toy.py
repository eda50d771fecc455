"""The example in miniature shows the figures the docs quote."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")

EXAMPLE = Path(__file__).parents[2] / "examples" / "toy_triplets.py"


@pytest.fixture(scope="module")
def toy():
    spec = importlib.util.spec_from_file_location("toy_triplets", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("name", ["triplet", "proxy-anchor"])
def test_two_hundred_steps_separate_six_prototypes_under_noise(toy, name):
    before, after = toy.learn(name)
    assert before.recall == pytest.approx(0.733, abs=0.02)
    assert before.open_share > 0.8
    assert after.recall == 1.0
    assert after.open_share < 0.001
    assert after.negative > after.positive + 0.9


def test_the_same_seed_gives_the_same_figures(toy):
    assert toy.learn("triplet") == toy.learn("triplet")
    assert toy.learn("triplet") != toy.learn("triplet", seed=1)


def test_the_example_prints_its_table(toy, capsys):
    toy.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["recall@1", "untrained", "triplet", "proxy-anchor"]
