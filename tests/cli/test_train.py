"""lookalike train as a user runs it; the run it leaves is an encoder without torch."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lookalike.catalogue.catalogue import Catalogue
from lookalike.embed.encoder import Card


@pytest.fixture
def ready(tmp_path):
    """A catalogue of ready vectors in which one direction says everything and the others are noise."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 6)
    rows = rng.normal(size=(20, 24))[labels] * 0.6 + rng.normal(size=(120, 24))
    card = Card(name="ready", weights="0", dim=24, pooling="none", normalised=False)
    with Catalogue.create(tmp_path / "ready.la", encoder=card) as catalogue:
        paths = [f"{row}.jpg" for row in range(120)]
        catalogue.upsert(paths, rows, columns={"label": labels.astype(str).tolist()})
    return tmp_path / "ready.la"


def test_without_torch_the_extra_is_named_and_the_exit_code_is_4(run_here, ready):
    try:
        import torch  # noqa: F401
    except ImportError:
        done = run_here("train", ready)
        assert done.code == 4
        assert "lookalike[train]" in done.err
    else:
        pytest.skip("torch is installed here")


def test_jsonl_has_one_object_an_epoch_and_a_last_one_with_the_held_out_comparison(run_here, ready):
    pytest.importorskip("torch", reason="training needs the train extra")
    done = run_here(
        "train", ready, "--epochs", "2", "--dim", "8", "-P", "6", "-K", "3", "--format", "jsonl", "--out", "run"
    )
    assert done.code == 0, done.err
    *epochs, last = [json.loads(line) for line in done.out.splitlines()]
    assert [record["epoch"] for record in epochs] == [1, 2]
    assert set(last["held_out"]) >= {"before", "after", "paired", "better", "verdict"}
    assert last["run"] == "run"
    again = run_here("train", ready, "--out", "run")
    assert (again.code, "already holds" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--loss", "tripled"], "Did you mean 'triplet'"),
        (["--loss-set", "magrin=0.2"], "margin"),
        (["--mining", "seminard"], "semi-hard"),
        (["--relevance", "lable"], "label"),
    ],
)
def test_a_typo_is_refused_with_the_right_spelling(run_here, ready, args, words):
    pytest.importorskip("torch", reason="training needs the train extra")
    done = run_here("train", ready, *args)
    assert done.code == 2
    assert words in done.err
