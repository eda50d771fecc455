"""A planted leak of each kind is found, and an honest split gives none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.errors import InputError
from lookalike.evaluate.leaks import counts, find_leaks
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side

NONE = {"self": 0, "bytes": 0, "pixels": 0, "similar": 0, "identity": 0}


def picture(path: Path, seed: int, fmt: str = "PNG") -> str:
    rng = np.random.default_rng(seed)
    Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(path, format=fmt)
    return str(path)


def side(rows, ids, paths=(), **columns) -> Side:
    vectors = np.array(rows, dtype=np.float32)
    names = tuple(Path(path).name for path in paths)
    return Side(vectors=vectors, ids=np.array(ids), paths=tuple(paths), names=names, columns=columns)


@pytest.fixture
def honest(tmp_path):
    rows = np.random.default_rng(0).normal(size=(8, 16))
    paths = [picture(tmp_path / f"{number}.png", number) for number in range(8)]
    return rows, paths


def test_an_honest_split_has_no_leak(honest):
    rows, paths = honest
    queries = side(rows[:4], range(4), paths[:4], identity=list("abcd"))
    gallery = side(rows[4:], range(4, 8), paths[4:], identity=list("efgh"))
    assert counts(find_leaks(queries, gallery, identity="identity")) == NONE


def test_each_planted_leak_is_found_once_at_its_strongest_level(honest, tmp_path):
    rows, paths = honest
    copy = tmp_path / "copy.png"
    copy.write_bytes(Path(paths[1]).read_bytes())
    again = tmp_path / "again.bmp"  # other bytes, the same pixels
    Image.open(paths[2]).save(again)
    near = rows[3] + 0.01
    queries = side(rows[:4], range(4), paths[:4], identity=list("abcd"))
    gallery = side(
        [rows[0], rows[1], rows[2], near, rows[7]], [0, 11, 12, 13, 14],
        [paths[0], str(copy), str(again), paths[6], paths[7]], identity=list("efgha"),
    )  # fmt: skip
    found = find_leaks(queries, gallery, identity="identity")
    assert counts(found) == {"self": 1, "bytes": 1, "pixels": 1, "similar": 1, "identity": 1}
    assert [(leak.level, leak.query, leak.gallery) for leak in found] == [
        ("self", "0.png", "0.png"),
        ("bytes", "1.png", "copy.png"),
        ("pixels", "2.png", "again.bmp"),
        ("similar", "3.png", "6.png"),
        ("identity", "a", "a"),
    ]


def test_within_one_set_each_pair_is_listed_once_and_no_item_leaks_itself(honest, tmp_path):
    rows, paths = honest
    copy = tmp_path / "copy.png"
    copy.write_bytes(Path(paths[5]).read_bytes())
    everything = side([*rows, rows[5]], range(9), [*paths, str(copy)])
    assert [(leak.level, leak.query, leak.gallery) for leak in find_leaks(everything, everything)] == [
        ("bytes", "5.png", "copy.png")
    ]


def test_ready_vectors_are_compared_without_files():
    rows = np.eye(3)
    found = find_leaks(side(rows, range(3)), side(rows[:1], [9]))
    assert counts(found) == NONE | {"similar": 1}


def test_a_threshold_beyond_one_is_refused():
    with pytest.raises(InputError, match=r"at_least=1\.2"):
        find_leaks(side(np.eye(2), range(2)), side(np.eye(2), range(2, 4)), at_least=1.2)


def test_every_report_counts_the_queries_with_a_near_duplicate():
    rows = np.random.default_rng(1).normal(size=(6, 8))
    rows[1] = rows[0] * 1.001
    labels = list("aabbcc")
    everything = Side(vectors=rows.astype("f4"), ids=np.arange(6), columns={"label": labels})
    report = measure(everything, everything)
    assert report.leaks is not None
    assert {name: report.leaks[name] for name in ("near_duplicates", "queries_checked", "at_least", "sampled")} == {
        "near_duplicates": 2, "queries_checked": 6, "at_least": 0.97, "sampled": False,
    }  # fmt: skip
    assert report.leaks["same_bytes"] is None  # there are no files
    assert "2 of 6 queries have a near-duplicate in their gallery (cosine of 0.97 or more)" in report.to_text()


def test_the_verb_fails_where_it_is_asked_to(lookalike, photos):
    assert lookalike("leaks", photos, "--fail", "--at-least", "1").code == 0
    (photos / "green" / "copy of red.png").write_bytes((photos / "red" / "0.png").read_bytes())
    done = lookalike("leaks", photos, "--fail", "--at-least", "1", "--format", "json")
    assert done.code == 1
    assert json.loads(done.out)["counts"]["bytes"] == 1
    assert lookalike("leaks", photos, "--unique-identities").code == 2
