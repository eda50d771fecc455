"""Two processes share every batch and end with the weights of one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")
pytest.importorskip("accelerate")

SCRIPT = """
import sys, numpy as np, torch
from lookalike.train.material import Material
from lookalike.train.run import train
from lookalike.train.losses import make_loss
from lookalike.train.settings import HeadSettings, Settings

rng = np.random.default_rng(0)
labels = np.repeat(np.arange(8), 4)
vectors = rng.normal(size=(8, 12))[labels] + rng.normal(size=(32, 12))
settings = Settings(
    loss=make_loss(sys.argv[1]), head=HeadSettings(dim=6), classes=3, per_class=3, epochs=2, holdout=0.0,
    validation=0.0, threads=1,
)
trained = train(Material(vectors=vectors, labels=labels.tolist()), settings)
torch.save([trained.model.state_dict(), [record.loss for record in trained.records]], sys.argv[2])
"""


def start(loss, path, **environment):
    command = [sys.executable, "-c", SCRIPT, loss, str(path)]
    return subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out.decode()


@pytest.mark.parametrize("loss", ["supcon", "proxy-anchor"])
def test_two_processes_train_as_one_does(loss, tmp_path):
    finish(start(loss, tmp_path / "one.pt"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "ACCELERATE_USE_CPU": "true"}
    pair = [
        start(loss, tmp_path / f"two-{rank}.pt", RANK=str(rank), LOCAL_RANK=str(rank), **shared) for rank in range(2)
    ]
    for process in pair:
        finish(process)
    names = ("one", "two-0", "two-1")
    one, first, second = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in names)
    assert first[1] == pytest.approx(one[1], rel=1e-4)
    for name, value in one[0].items():
        assert torch.equal(first[0][name], second[0][name])
        assert torch.allclose(first[0][name], value, atol=1e-4)
