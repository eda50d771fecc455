"""Generations: what was saved answers the same, and a failed save leaves the old one answering."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lookalike.errors import CatalogueError, NotFoundError
from lookalike.index import saved
from lookalike.index.ann import AnnIndex, build
from lookalike.index.generated import clustered
from lookalike.index.kinds import KINDS, settings_for
from lookalike.index.memory import predict
from lookalike.index.structure import list_sizes

N, D = 2_000, 32
X = clustered(N + 20, D)
X, Q = X[:N], X[N:]
IDS = np.random.default_rng(1).permutation(5 * N)[:N]


def make(kind: str, metric: str = "cosine", vectors: np.ndarray = X) -> AnnIndex:
    return build(vectors, IDS, kind=kind, metric=metric, sample=50)


def answers(index: AnnIndex) -> tuple[list, list]:
    found = index.search(Q, 12)
    return found.ids.tolist(), found.scores.tolist()


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_index_answers_as_the_saved_one_changes_included(kind: str, mapped: bool, tmp_path: Path) -> None:
    index = make(kind)
    index.remove(IDS[:100])
    index.add(Q[:3], [-1, -2, int(IDS[500])])
    saved.save(index, tmp_path / "i", stamp={"revision": 7})
    again = saved.load(tmp_path / "i", mapped=mapped)
    assert answers(again) == answers(index)
    assert (again.settings, again.asked, again.notices) == (index.settings, index.asked, index.notices)
    assert (again.overlap, len(again), again.metric) == (index.overlap, len(index), "cosine")
    assert saved.read_stamp(tmp_path / "i") == {"revision": 7}
    again.remove(IDS[100:200])
    assert len(again) == len(index) - 100


@pytest.mark.parametrize("kind", ["flat", "ivf-pqfs", "hnsw"])
def test_vectors_of_any_length_are_saved_as_they_are(kind: str, tmp_path: Path) -> None:
    long = X * np.random.default_rng(0).uniform(0.5, 9, (N, 1)).astype(np.float32)
    for metric in ("cosine", "ip", "l2"):
        index = make(kind, metric, long)
        saved.save(index, tmp_path / metric)
        assert answers(saved.load(tmp_path / metric)) == answers(index)
        np.testing.assert_array_equal(saved.load(tmp_path / metric).vectors_of(IDS), long)


def test_a_vector_file_is_referred_to_and_moves_with_the_folder(tmp_path: Path) -> None:
    order = np.argsort(IDS)
    (tmp_path / "shop").mkdir()
    file = tmp_path / "shop" / "vectors.npy"
    np.save(file, X[order])
    index = build(np.load(file, mmap_mode="r"), IDS[order], kind="ivf-pqfs", sample=0)
    where = saved.save(index, tmp_path / "shop" / "index", vectors_file=file)
    assert not (where / "vectors.npy").exists()
    (tmp_path / "shop").rename(tmp_path / "moved")
    assert answers(saved.load(tmp_path / "moved" / "index")) == answers(make("ivf-pqfs"))
    np.save(tmp_path / "other.npy", X[:5])
    with pytest.raises(CatalogueError, match=r"\(5, 32\)"):
        saved.save(index, tmp_path / "i", vectors_file=tmp_path / "other.npy")


def test_an_empty_index_is_saved_and_fills(tmp_path: Path) -> None:
    saved.save(build(np.empty((0, D), dtype=np.float32), kind="flat"), tmp_path)
    index = saved.load(tmp_path)
    index.add(X[:2], [8, 9])
    assert index.search(X[:1], 5)[0][0].tolist() == [8, 9]


def test_a_failed_save_leaves_the_old_generation_answering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make("ivf")
    saved.save(old, tmp_path)
    before = answers(old)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for step in ("_describe", "_sync", "_switch"):
        with monkeypatch.context() as patch:
            patch.setattr(saved, step, full)
            with pytest.raises(OSError, match="No space left"):
                saved.save(make("flat"), tmp_path)
        assert saved.load(tmp_path).kind == "ivf"
        assert answers(saved.load(tmp_path)) == before
        assert not list(tmp_path.glob("draft-*"))
    saved.save(make("hnsw"), tmp_path)
    assert saved.load(tmp_path).kind == "hnsw"


def test_a_hundred_saves_keep_two_generations(tmp_path: Path) -> None:
    index = build(X[:50], kind="flat")
    for _ in range(100):
        saved.save(index, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CURRENT", "gen-000099", "gen-000100"]


def test_a_reader_keeps_its_generation_while_two_more_are_saved(tmp_path: Path) -> None:
    saved.save(make("ivf-sq8"), tmp_path)
    reader = saved.load(tmp_path, mapped=True)
    before = answers(reader)
    for _ in range(3):
        saved.save(build(X[:300], kind="flat"), tmp_path)
    assert answers(reader) == before


def test_damage_is_named_and_never_answers(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No index was saved"):
        saved.load(tmp_path)
    where = saved.save(make("ivf"), tmp_path)
    whole = {path.name: path.read_bytes() for path in where.iterdir()}
    for name, content in whole.items():
        damage = content[: len(content) // 2]
        (where / name).write_bytes(damage)
        with pytest.raises(CatalogueError, match=r"gen-000001"):
            saved.load(tmp_path)
        (where / name).unlink()
        with pytest.raises(CatalogueError):
            saved.load(tmp_path)
        (where / name).write_bytes(content)
    np.save(where / "ids.npy", np.roll(np.sort(IDS), 1))
    with pytest.raises(CatalogueError, match="is not the file the index was saved with"):
        saved.load(tmp_path)
    (where / "ids.npy").write_bytes(whole["ids.npy"])
    assert len(saved.load(tmp_path)) == N
    (where / "meta.json").write_text(whole["meta.json"].decode().replace('"format": 1', '"format": 99'))
    with pytest.raises(CatalogueError, match="newer version"):
        saved.load(tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "flat"])
@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_the_file_has_the_predicted_size(kind: str, metric: str, tmp_path: Path) -> None:
    index = make(kind, metric)
    where = saved.save(index, tmp_path)
    table = predict(N, D, kind=index.settings, metric=index.metric, list_sizes=list_sizes(index.structure))
    assert (where / "index.faiss").stat().st_size == table.file


def test_a_rotated_file_has_the_predicted_size(tmp_path: Path) -> None:
    index = make("ivf-pqfs", vectors=X * np.float32(0.7) ** np.arange(D, dtype=np.float32))
    assert index.structure.rotated
    where = saved.save(index, tmp_path)
    table = predict(N, D, kind=index.settings, rotated=True, list_sizes=list_sizes(index.structure))
    assert (where / "index.faiss").stat().st_size == table.file


# What the C library has handed out, not what is resident: pages come and go with whatever else the machine does.
_HELD = """
import ctypes, sys, gc, faiss, numpy as np
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        'arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks', 'fsmblks', 'uordblks', 'fordblks', 'keepcost')]
mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
def held():
    gc.collect()
    info = mallinfo()
    return info.uordblks + info.hblkhd
rng = np.random.default_rng(0)
n, d, nlist = 200_000, 64, 100
faiss.omp_set_num_threads(1)
coarse = faiss.IndexFlatIP(d)
coarse.add(rng.standard_normal((nlist, d), dtype=np.float32))
index = faiss.IndexIVFFlat(coarse, d, nlist, faiss.METRIC_INNER_PRODUCT)
index.is_trained = True
block = rng.standard_normal((2_000, d), dtype=np.float32)
index.search(block[:1], 1)
before = held()
for _ in range(n // len(block)):
    index.add(block + rng.standard_normal(d).astype(np.float32))
grown = held() - before
faiss.write_index(index, sys.argv[1])
del index
gc.collect()
index = None
start = held()
index = faiss.read_index(sys.argv[1])
print(grown, held() - start)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library does not count what it holds")
def test_inverted_lists_carry_slack_until_they_are_written_and_read(tmp_path: Path) -> None:
    script = [sys.executable, "-c", _HELD, str(tmp_path / "i.faiss")]
    grown, read = map(int, subprocess.run(script, check=True, capture_output=True).stdout.split())
    told = predict(200_000, 64, kind=settings_for("ivf", {"nlist": 100}))
    assert 1.1 * told.total < grown < 1.9 * told.total
    assert abs(read - told.total) < 0.05 * told.total
