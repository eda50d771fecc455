"""What is right, declared on the command line: several labels, listed pairs, folds, the metrics asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lookalike.cli.main import run


@pytest.fixture
def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run `lookalike eval` in this process, in the test's own folder."""
    monkeypatch.chdir(tmp_path)

    def measured(*args: str, code: int = 0) -> Any:
        done = run(["eval", *args, "--threads", "1", "--format", "json"])
        captured = capsys.readouterr()
        assert done == code, captured.err
        return json.loads(captured.out if code in (0, 3) else captured.err)

    return measured


def write(folder: Path, rows: list[list[float]], header: str, *lines: str) -> list[str]:
    np.save(folder / "v.npy", np.array(rows, dtype=np.float32))
    (folder / "l.csv").write_text("\n".join([header, *lines]) + "\n")
    return ["--vectors", "v.npy", "--labels", "l.csv"]


# 0 and 1 are near, 2 and 3 are near
NEAR = [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0], [0.1, 0.99]]


def test_of_several_labels_one_shared_is_enough_or_all_are_asked_for(tmp_path, evaluate):
    args = write(tmp_path, NEAR, "label", '"a, b"', "b", '"c,a"', "c")
    any_of = evaluate(*args, "--separator", ",", "--ks", "1,2")
    # right: 0-1 (b), 0-2 (a), 2-3 (c); so 0 finds 1, 1 finds 0, 2 finds 3, 3 finds 2
    assert any_of["metrics"]["recall@1"] == 1.0
    assert any_of["metrics"]["coverage@2"] == pytest.approx((1 / 2 + 1 + 1 / 2 + 1) / 4)
    all_of = evaluate(*args, "--separator", ",", "--match", "all", "--ks", "1")
    # 0 wants a and b: nobody; 1 wants b: 0 has it; 2 wants c and a: nobody; 3 wants c: 2 has it
    assert all_of["num_evaluated"] == 2
    assert all_of["excluded"] == {"self_only": 2}  # only the queries themselves have all their labels
    assert all_of["metrics"]["recall@1"] == 1.0
    assert all_of["protocol"]["digest"] != any_of["protocol"]["digest"]


def test_without_the_separator_several_labels_are_one(tmp_path, evaluate):
    args = write(tmp_path, NEAR, "label", '"a,b"', "b", '"c,a"', "c")
    assert evaluate(*args)["num_evaluated"] == 0


def test_a_query_of_several_labels_counts_in_each_of_their_classes(tmp_path, evaluate):
    args = write(tmp_path, NEAR, "label", '"a,b"', "b", '"c,a"', "c")
    listed = evaluate(*args, "--separator", ",")["per_class"]["classes"]
    assert {row["label"]: row["num_queries"] for row in listed} == {"a": 2, "b": 2, "c": 2}


def test_listed_pairs_decide_and_nothing_else(tmp_path, evaluate):
    args = write(tmp_path, NEAR, "label", "a", "a", "b", "b")
    (tmp_path / "pairs.csv").write_text("query,gallery\n0,1\n0,2\n3,0\n")
    report = evaluate(*args, "--pairs", "pairs.csv", "--ks", "1,3")
    assert report["num_evaluated"] == 2  # 0 and 3
    assert report["excluded"] == {"label_absent": 2}
    # 0 ranks 1, 3, 2: right at 1 and 3. 3 ranks 2, 1, 0: right at 3
    assert report["metrics"]["recall@1"] == 0.5
    assert report["metrics"]["recall@3"] == 1.0
    assert report["metrics"]["map"] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert report["protocol"]["relevance"].startswith("listed pairs (digest ")
    assert report["per_class"] is None


@pytest.mark.parametrize(
    ("pairs", "more", "words"),
    [
        ("query,gallery\n0,nobody\n", [], ["'nobody'", "not in the gallery"]),
        ("query,item\n0,1\n", [], ["no column 'gallery'", "query, item"]),
        ("query,gallery\n", [], ["pairs.csv"]),
        ("query,gallery\n0,1\n", ["--separator", ","], ["--pairs and --separator"]),
    ],
)
def test_pairs_that_cannot_be_meant_are_refused(tmp_path, evaluate, pairs, more, words):
    args = write(tmp_path, NEAR, "label", "a", "a", "b", "b")
    (tmp_path / "pairs.csv").write_text(pairs)
    error = evaluate(*args, "--pairs", "pairs.csv", *more, code=2)
    for word in words:
        assert word in f"{error['error']} {error['hint']}"


EIGHT = [[np.cos(angle), np.sin(angle)] for angle in (0.0, 0.1, 0.8, 0.9, 1.6, 1.7, 2.4, 2.5)]
PAIRS_OF_TWO = ["a", "a", "b", "b", "c", "c", "d", "d"]


def test_folds_measure_each_class_among_the_classes_of_its_fold(tmp_path, evaluate):
    args = write(tmp_path, EIGHT, "label", *PAIRS_OF_TWO)
    report = evaluate(*args, "--folds", "2", "--ks", "1")
    table = report["folds"]
    assert [fold["num_queries"] for fold in table["folds"]] == [4, 4]
    assert (report["num_queries"], report["num_gallery"], report["num_evaluated"]) == (8, 8, 8)
    assert table["metrics"]["recall@1"] == {"mean": 1.0, "sd": 0.0, "values": [1.0, 1.0]}
    values = table["metrics"]["map"]["values"]
    assert table["metrics"]["map"]["mean"] == pytest.approx(sum(values) / 2)
    assert report["protocol"]["split"] == "2 folds by class (column 'label', seed 0), each asking itself"
    again = evaluate(*args, "--folds", "2", "--ks", "1")
    assert again["protocol"]["digest"] == report["protocol"]["digest"]
    others = {evaluate(*args, "--folds", "2", "--seed", str(seed))["protocol"]["digest"] for seed in range(6)}
    assert len(others) > 1


def test_a_fold_is_its_own_evaluation_of_those_classes_alone(tmp_path, evaluate):
    from lookalike.evaluate.folds import measure_folds
    from lookalike.evaluate.run import measure
    from lookalike.evaluate.sides import Side

    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(9), 5)
    rows = rng.normal(size=(9, 6))[labels] + rng.normal(size=(45, 6))
    side = Side(vectors=rows.astype("f4"), ids=np.arange(45), columns={"label": labels.astype(str).tolist()})
    report = measure_folds(side, "label", 3, lambda part, split: measure(part, part, split=split))
    for fold in report.folds:
        alone = side.having([int(name) for name in fold.query_names])
        assert measure(alone, alone).metrics == fold.metrics
    by_query = dict(zip(report.query_names, report.per_query["map"].tolist(), strict=True))
    assert report.metrics["map"] == pytest.approx(np.mean(list(by_query.values())))
    assert sorted(by_query, key=int) == list(map(str, range(45)))
    assert report.leaks is not None
    assert report.leaks["queries_checked"] == 45


@pytest.mark.parametrize("more", [["--holdout", "0.5"], ["--rerank", "k-reciprocal"], ["--self-match"]])
def test_folds_go_with_no_other_split_and_no_stage(tmp_path, evaluate, more):
    args = write(tmp_path, EIGHT, "label", *PAIRS_OF_TWO)
    assert more[0] in evaluate(*args, "--folds", "2", *more, code=2)["error"]


def test_too_many_folds_for_the_classes_are_refused_with_both_numbers(tmp_path, evaluate):
    args = write(tmp_path, EIGHT, "label", *PAIRS_OF_TWO)
    assert "3 folds of 4 classes" in evaluate(*args, "--folds", "3", code=2)["error"]


def test_only_the_metrics_asked_for_are_computed_and_give_the_same_digits(tmp_path, evaluate):
    rng = np.random.default_rng(1)
    args = write(tmp_path, rng.normal(size=(60, 5)).tolist(), "label", *(str(n % 6) for n in range(60)))
    every = evaluate(*args)["metrics"]
    few = evaluate(*args, "--metrics", "mrr", "--ks", "1,5,10")
    assert set(few["metrics"]) == {"recall@1", "recall@5", "recall@10", "mrr"}
    assert all(every[name] == value for name, value in few["metrics"].items())
    assert few["curves"]["precision_at_recall"] == []  # it needs all ranks
    assert few["curves"]["recall_at_k"][4] == few["metrics"]["recall@5"]
    some = evaluate(*args, "--metrics", "ndcg,map/min,map@r", "--ks", "1,10")["metrics"]
    assert set(some) == {"recall@1", "recall@10", "ndcg@1", "ndcg@10", "map@1/min", "map@10/min", "map@r"}
    assert some["ndcg@10"] == every["ndcg@10"]
    assert "mrr" in str(evaluate(*args, "--metrics", "mmr", code=2))


def test_where_the_first_right_answer_is_enough_only_that_is_counted(tmp_path, monkeypatch):
    from lookalike.evaluate import run as runs
    from lookalike.evaluate.sides import Side

    asked = []
    blocks = runs.rank_blocks
    monkeypatch.setattr(runs, "rank_blocks", lambda *a, **k: asked.append(k["first_only"]) or blocks(*a, **k))
    side = Side(vectors=np.eye(4, dtype="f4")[[0, 0, 1, 1]], ids=np.arange(4), columns={"label": list("aabb")})
    runs.measure(side, side, metrics=["mrr", "cmc"])
    runs.measure(side, side, metrics=["mrr", "map"])
    assert asked == [True, False]


def test_the_saved_page_shows_the_command_that_makes_it_again(tmp_path, evaluate):
    args = write(tmp_path, NEAR, "label", "a", "a", "b", "b")
    report = evaluate(*args, "--save", "run one")
    assert report["command"].startswith("lookalike eval --vectors v.npy --labels l.csv --save 'run one'")
    assert "--save &#x27;run one&#x27;" in (tmp_path / "run one/report.html").read_text()


def test_all_vectors_equal_is_called_a_collapse(tmp_path, evaluate):
    args = write(tmp_path, [[1.0, 2.0]] * 4, "label", "a", "a", "b", "b")
    warnings = evaluate(*args)["warnings"]
    assert any("collapsed" in warning for warning in warnings)


def test_scores_below_zero_count_like_any_other(tmp_path, evaluate):
    # every product is negative; 0's nearest is 1, its own label. A tool that drops scores below zero finds nothing.
    np.save(tmp_path / "q.npy", np.array([[1.0, 0.0]], dtype=np.float32))
    np.save(tmp_path / "g.npy", np.array([[-1.0, 1.0], [-3.0, 1.0]], dtype=np.float32))
    (tmp_path / "q.csv").write_text("label\na\n")
    (tmp_path / "g.csv").write_text("label\na\nb\n")
    args = ["--queries", "q.npy", "--gallery", "g.npy", "--query-labels", "q.csv", "--gallery-labels", "g.csv"]
    report = evaluate(*args, "--metric", "ip", "--ks", "1")
    assert report["metrics"]["recall@1"] == 1.0
    assert report["metrics"]["map"] == 1.0


def test_whole_identities_are_held_out_and_ask_one_another(tmp_path, evaluate):
    lines = [f"{kind},{kind}{which}" for kind in "ab" for which in range(4) for _ in range(2)]
    rng = np.random.default_rng(2)
    (tmp_path / "m.csv").write_text("path,label,sku\n" + "".join(f"{n}.png,{line}\n" for n, line in enumerate(lines)))
    for number in range(16):
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    split = ["m.csv", "--relevance", "sku", "--identity", "sku", "--holdout", "0.25", "--holdout-by", "identity"]
    report = evaluate(*split)
    assert (report["num_queries"], report["num_gallery"], report["num_evaluated"]) == (4, 4, 4)  # 2 of 8 identities
    assert report["protocol"]["split"] == "holdout 0.25 by identity (seed 0)"
    assert report["protocol"]["digest"] == evaluate(*split)["protocol"]["digest"]
    assert report["protocol"]["digest"] != evaluate(*split, "--seed", "1")["protocol"]["digest"]
