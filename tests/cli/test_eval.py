"""`lookalike eval` as a user runs it: what it prints, what it refuses, and with which exit code."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest


def vectors(folder: Path, rows: list[list[float]], labels: list[str], column: str = "label") -> tuple[Path, Path]:
    np.save(folder / "v.npy", np.array(rows, dtype=np.float32))
    (folder / "l.csv").write_text("\n".join([column, *labels]) + "\n")
    return folder / "v.npy", folder / "l.csv"


def test_the_report_begins_to_the_letter_with_counts_and_recall(lookalike, photos):
    done = lookalike("eval", photos)
    assert done.code == 0
    assert done.out.splitlines()[:9] == [
        "[evaluation]",
        "num queries: 12",
        "num gallery: 12",
        "embedding_dim: 1280",
        "[recall]",
        "recall@1: 1.0000",
        "recall@5: 1.0000",
        "recall@10: 1.0000",
        "[protocol]",
    ]
    headings = [line for line in done.out.splitlines() if line.startswith("[")]
    assert headings[2:6] == ["[protocol]", "[metrics]", "[intervals]", "[diagnosis]"]
    assert "at least one relevant item among their first K" in done.out


def test_json_holds_every_field_of_the_contract(lookalike, photos):
    report = json.loads(lookalike("eval", photos, "--format", "json").out)
    assert set(report) >= {
        "num_queries", "num_evaluated", "excluded", "num_gallery", "embedding_dim", "metrics", "intervals", "protocol",
        "encoder", "index", "timings", "leaks", "diagnosis", "warnings", "run",
    }  # fmt: skip
    assert set(report["protocol"]) >= {"relevance", "metric", "self_rule", "ks", "split", "seed", "digest"}
    assert report["encoder"]["name"] == "builtin:effnet-lite0"
    assert report["run"] is None


def test_an_exact_duplicate_under_another_label_is_the_first_answer_and_wrong(lookalike, tmp_path):
    # 0 and 1 are the same vector under two labels: each finds the other first. Dropping the first result instead of
    # the query's own id would call this 1.0.
    v, labels = vectors(tmp_path, [[1, 0], [1, 0], [0.9, 0.1], [0.8, 0.2]], ["a", "b", "a", "b"])
    report = json.loads(lookalike("eval", "--vectors", v, "--labels", labels, "--ks", "1", "--format", "json").out)
    assert report["metrics"]["recall@1"] == 0.25  # only item 2 has its label first (ids settle the tie: 0 before 1)
    assert report["num_evaluated"] == 4


def test_all_labels_different_gives_no_number_a_warning_and_exit_0(lookalike, tmp_path):
    v, labels = vectors(tmp_path, [[1, 0], [0, 1], [1, 1]], ["a", "b", "c"])
    done = lookalike("eval", "--vectors", v, "--labels", labels, "--format", "json")
    report = json.loads(done.out)
    assert done.code == 0
    assert report["metrics"]["recall@1"] is None
    assert report["excluded"] == {"self_only": 3}
    assert "no number" in " ".join(report["warnings"])
    assert "recall@1: nan" in lookalike("eval", "--vectors", v, "--labels", labels).out


def test_the_same_camera_rule_removes_the_easy_answer(lookalike, tmp_path):
    # The nearest picture of the same identity is by the same camera; the rule leaves the far one, behind an impostor.
    np.save(tmp_path / "q.npy", np.array([[1, 0]], dtype=np.float32))
    np.save(tmp_path / "g.npy", np.array([[1, 0], [0.9, 0.1], [0.5, 0.5]], dtype=np.float32))
    (tmp_path / "q.csv").write_text("identity,camera\n7,c1\n")
    (tmp_path / "g.csv").write_text("identity,camera\n7,c1\n8,c2\n7,c2\n")
    args = ["eval", "--queries", "q.npy", "--gallery", "g.npy", "--query-labels", "q.csv", "--gallery-labels", "g.csv",
            "--relevance", "identity", "--ks", "1,2", "--format", "json"]  # fmt: skip
    assert json.loads(lookalike(*args).out)["metrics"]["recall@1"] == 1.0
    report = json.loads(lookalike(*args, "--camera", "camera").out)
    assert (report["metrics"]["recall@1"], report["metrics"]["recall@2"]) == (0.0, 1.0)
    assert any(
        "camera rule removed 1 pairs of query and gallery item, at 1 of 1 queries" in w for w in report["warnings"]
    )


def test_k_beyond_the_gallery_counts_the_whole_gallery_and_no_padding(lookalike, tmp_path):
    v, labels = vectors(tmp_path, [[1, 0], [0, 1], [-1, 0]], ["a", "b", "a"])
    report = json.loads(lookalike("eval", "--vectors", v, "--labels", labels, "--ks", "1,500", "--format", "json").out)
    assert report["metrics"]["recall@500"] == 1.0
    assert report["metrics"]["recall@1"] == 0.0


def test_labels_beyond_two_to_the_24_and_negative_ones_stay_apart(lookalike, tmp_path):
    labels = ["16777216", "16777217", "-1", "-1"]
    v, table = vectors(tmp_path, [[1, 0], [1, 0.01], [0, 1], [0, 0.9]], labels)
    report = json.loads(lookalike("eval", "--vectors", v, "--labels", table, "--ks", "1", "--format", "json").out)
    assert report["num_evaluated"] == 2
    assert report["excluded"] == {"self_only": 2}


@pytest.mark.parametrize(("row", "word"), [([float("nan"), 1.0], "NaN"), ([0.0, 0.0], "zero")])
def test_nan_and_zero_vectors_are_refused_by_row(lookalike, tmp_path, row, word):
    v, labels = vectors(tmp_path, [[1, 0], row, [0, 1]], ["a", "a", "b"])
    done = lookalike("eval", "--vectors", v, "--labels", labels)
    assert done.code == 2
    assert word in done.err
    assert "row 1" in done.err


def test_the_self_match_switch_reaches_one_and_says_that_it_is_no_measurement(lookalike, photos):
    report = json.loads(lookalike("eval", photos, "--self-match", "--format", "json").out)
    assert report["metrics"]["recall@1"] == 1.0
    assert report["protocol"]["self_rule"] == "kept: not a measurement"
    assert report["diagnosis"][0].startswith("Not a measurement")


def test_an_unreadable_file_is_left_out_listed_and_exits_with_3(lookalike, photos, tmp_path):
    (photos / "red" / "broken.jpg").write_bytes(b"no picture at all")
    (photos / "blue" / "empty.jpg").touch()
    done = lookalike("eval", photos, "--failures", tmp_path / "bad.jsonl", "--format", "json")
    assert done.code == 3
    report = json.loads(done.out)
    assert report["num_queries"] == 12
    listed = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert sorted(entry["reason"] for entry in listed) == ["empty", "unknown-format"]
    assert listed == report["failed"]
    assert lookalike("eval", photos, "--strict").code == 2


def test_a_manifest_row_without_its_file_is_a_failure_named_missing(lookalike, photos, tmp_path):
    rows = [[f"photos/{c}/{n}.png", c] for c in ("red", "green") for n in range(4)] + [["photos/gone.png", "red"]]
    with (tmp_path / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label"], *rows])
    done = lookalike("eval", "m.csv", "--format", "json")
    assert done.code == 3
    [failure] = json.loads(done.out)["failed"]
    assert (failure["path"], failure["reason"]) == (str(tmp_path / "photos/gone.png"), "missing")


def test_a_row_without_a_label_answers_but_is_never_right(lookalike, photos, tmp_path):
    rows = [[f"photos/{c}/{n}.png", c] for c in ("red", "green") for n in range(4)] + [["photos/blue/0.png", ""]]
    with (tmp_path / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label"], *rows])
    report = json.loads(lookalike("eval", "m.csv", "--format", "json").out)
    assert (report["num_gallery"], report["num_evaluated"]) == (9, 8)
    assert report["excluded"] == {"label_missing": 1}


def test_the_same_seed_holds_out_the_same_pictures(lookalike, photos):
    one, two, other = (
        json.loads(lookalike("eval", photos, "--holdout", "0.25", "--seed", seed, "--format", "json").out)
        for seed in (1, 1, 2)
    )
    assert (one["num_queries"], one["num_gallery"]) == (3, 9)
    assert one["protocol"]["digest"] == two["protocol"]["digest"] != other["protocol"]["digest"]
    assert one["metrics"] == two["metrics"]
    assert one["intervals"] == two["intervals"]


def test_a_saved_run_is_whole_and_is_never_written_over(lookalike, photos, tmp_path):
    assert lookalike("eval", photos, "--save", "runs/a").code == 0
    saved = json.loads((tmp_path / "runs/a/report.json").read_text())
    assert saved["run"] == "runs/a"
    assert len((tmp_path / "runs/a/per_query.csv").read_text().splitlines()) == 13
    again = lookalike("eval", photos, "--save", "runs/a")
    assert again.code == 2
    assert "already holds" in again.err


def test_a_failed_check_exits_with_1_and_the_number(lookalike, tmp_path):
    v, labels = vectors(tmp_path, [[1, 0], [1, 0.01], [0, 1], [0.9, 0.1]], ["a", "b", "a", "b"])
    done = lookalike("eval", "--vectors", v, "--labels", labels, "--fail-under", "recall@1=0.6")
    assert done.code == 1
    assert "recall@1 is 0." in done.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nowhere"], ["There is nothing at 'nowhere'"]),
        (["empty"], ["empty"]),
        (["one-class"], ["class"]),
        (["photos", "--encoder", "builtin:effnet-lit0"], ["Did you mean 'builtin:effnet-lite0'"]),
        (["photos", "--ks", "0"], ["K=0"]),
        (["photos", "--label", "lable"], ["no column 'lable'", "label"]),
        (["photos", "--holdout", "1.5"], ["1.5"]),
        ([], ["SOURCE"]),
        (["photos", "--vectors", "v.npy"], ["one thing to measure"]),
        (["twice.csv"], ["line 2", "line 3"]),
        (["photos", "--fail-under", "recall@7=0.5"], ["recall@1"]),
        (["photos", "--fail-under", "high"], ["recall@1=0.6"]),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_2(lookalike, photos, tmp_path, args, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "one-class").mkdir()
    (photos / "red").rename(tmp_path / "one-class" / "red")
    (tmp_path / "twice.csv").write_text("path,label\na.png,x\na.png,y\n")
    done = lookalike("eval", *args)
    assert done.code == 2, done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err
    as_json = lookalike("eval", *args, "--format", "json")
    assert set(json.loads(as_json.err)) == {"error", "hint"}
    assert as_json.code == 2


def test_recall_on_real_pictures_equals_a_brute_force_count_in_float64(lookalike, shared, tmp_path):
    from lookalike.datasets.table import read_table
    from lookalike.embed.pipeline import encode_all

    manifest = shared / "data/grocery/manifest.csv"
    args = ["--label", "label", "--split-column", "split", "--query-split", "test", "--gallery-split", "train"]
    done = lookalike("eval", manifest, *args, "--encoder", "builtin:effnet-lite0", "--format", "json")
    report = json.loads(done.out)
    pictures = read_table(manifest)
    vectors64 = encode_all(pictures.paths).astype(np.float64)
    labels, split = np.array(pictures.column("label")), np.array(pictures.column("split"))
    unit = vectors64 / np.linalg.norm(vectors64, axis=1, keepdims=True)
    scores = unit[split == "test"] @ unit[split == "train"].T
    right = labels[split == "test"][:, None] == labels[split == "train"][None, :]
    ranked = np.take_along_axis(right, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    assert (report["num_queries"], report["num_gallery"]) == (282, 470)
    for k in (1, 5, 10):
        assert abs(report["metrics"][f"recall@{k}"] - ranked[:, :k].any(axis=1).mean()) < 1e-9
        assert abs(report["metrics"][f"recall@{k}"] - {1: 0.649, 5: 0.848, 10: 0.936}[k]) < 0.01


def test_leave_one_out_on_photographs_of_thirty_objects_is_about_095(lookalike, shared):
    report = json.loads(lookalike("eval", shared / "data/dreambooth30/manifest.csv", "--format", "json").out)
    assert abs(report["metrics"]["recall@1"] - 0.95) < 0.01
    assert report["metrics"]["recall@5"] == 1.0


def test_what_the_scanner_could_not_look_at_is_a_failure_like_any_other(run_here, photos):
    (photos / "red" / "gone.jpg").symlink_to(photos / "nowhere.jpg")
    done = run_here("eval", photos, "--format", "json")
    report = json.loads(done.out)
    assert done.code == 3
    assert [(Path(failure["path"]).name, failure["reason"]) for failure in report["failed"]] == [
        ("gone.jpg", "missing")
    ]
    assert report["num_queries"] == 12
