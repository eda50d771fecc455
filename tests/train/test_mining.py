"""The semi-hard miner against the published rule written as loops, and its memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from lookalike.errors import InputError  # noqa: E402
from lookalike.train.distance import UnitDistance  # noqa: E402
from lookalike.train.metric_learning import distances  # noqa: E402
from lookalike.train.mining import SemiHardMiner  # noqa: E402


def literal(matrix, labels, margin, every_positive):
    """FaceNet, section 3.2, one anchor at a time."""
    found = []
    for a in range(len(labels)):
        positives = [p for p in range(len(labels)) if p != a and labels[p] == labels[a]]
        negatives = [n for n in range(len(labels)) if labels[n] != labels[a]]
        if not positives or not negatives:
            continue
        if not every_positive:
            positives = [max(positives, key=lambda p: (matrix[a, p], -p))]
        for p in positives:
            inside = [n for n in negatives if matrix[a, p] < matrix[a, n] < matrix[a, p] + margin]
            found.append((a, p, min(inside or negatives, key=lambda n: (matrix[a, n], n))))
    return found


@given(
    st.integers(0, 100_000),
    st.integers(2, 24),
    st.integers(1, 6),
    st.sampled_from([0.01, 0.2, 1.5]),
    st.booleans(),
    st.booleans(),
)
def test_semi_hard_triplets_equal_a_literal_loop(seed, n, classes, margin, squared, every_positive):
    rng = np.random.default_rng(seed)
    vectors = torch.from_numpy(np.round(rng.normal(size=(n, 3)), 1).astype(np.float32) + 0.01)  # rounded: ties
    labels = torch.from_numpy(rng.integers(0, classes, size=n))
    distance = UnitDistance(squared=squared)
    miner = SemiHardMiner(margin=margin, every_positive=every_positive, distance=distance)
    mined = list(zip(*(part.tolist() for part in miner(vectors, labels)), strict=True))
    assert mined == literal(distance(vectors).numpy(), labels.tolist(), np.float32(margin), every_positive)


def test_the_nearest_negative_inside_the_interval_is_taken_and_else_the_hardest():
    def on_circle(*degrees):
        return torch.tensor([[math.cos(math.radians(d)), math.sin(math.radians(d))] for d in degrees])

    labels = torch.tensor([0, 0, 1, 2, 3])
    miner = SemiHardMiner(margin=0.2)
    # d(a, p) = 2 sin(5°) = 0.174: 12° is 0.209 away and inside, 20° is 0.347 and inside, 4° is hard
    assert [int(part[0]) for part in miner(on_circle(0, 10, 20, 12, 4), labels)] == [0, 1, 3]
    # nothing between 0.174 and 0.374: the hardest of all, at 4°, and not the farthest, at 90°
    assert [int(part[0]) for part in miner(on_circle(0, 10, 90, 60, 4), labels)] == [0, 1, 4]


def test_an_anchor_without_a_positive_or_a_negative_gives_no_triplet():
    miner = SemiHardMiner()
    assert all(len(part) == 0 for part in miner(torch.eye(4), torch.arange(4)))
    assert all(len(part) == 0 for part in miner(torch.eye(4), torch.zeros(4, dtype=torch.int64)))
    anchors = miner(torch.eye(4), torch.tensor([0, 0, 1, 2]))[0]
    assert anchors.tolist() == [0, 1]


def test_a_similarity_is_refused_where_a_distance_is_needed():
    with pytest.raises(InputError, match="distance"):
        SemiHardMiner(distance=distances.CosineSimilarity())


class _Largest(TorchDispatchMode):
    """Notes the size of the largest tensor any operation gives."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return out


@pytest.mark.parametrize("every_positive", [False, True])
def test_no_tensor_is_larger_than_the_square_of_the_batch(every_positive):
    batch = 128
    vectors = torch.randn(batch, 16, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(batch) % 8
    with _Largest() as largest:
        SemiHardMiner(every_positive=every_positive).mine(vectors, labels, vectors, labels)
    assert largest.numel == batch**2


def test_the_library_of_losses_leaves_the_search_of_faiss_as_it_is():
    import subprocess
    import sys

    code = (
        "import faiss; before = faiss.Index.search; import lookalike.train.mining; assert faiss.Index.search is before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
