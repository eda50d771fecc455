"""A saved run is whole: what other tools and people read of it is what was measured."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.errors import InputError, UnknownNameError
from lookalike.evaluate.evidence import Evidence
from lookalike.evaluate.page.document import page
from lookalike.evaluate.page.rows import worst_rows
from lookalike.evaluate.report import Report
from lookalike.evaluate.run import measure
from lookalike.evaluate.saved import load_run
from lookalike.evaluate.sides import Side
from lookalike.evaluate.staged import Stages
from lookalike.evaluate.trec import write_trec
from lookalike.index.neighbours import Neighbours


def clusters(seed: int = 3, *, ties: bool = False, classes: int = 12, each: int = 6) -> Side:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    rows = rng.normal(size=(classes, 10))[labels] + rng.normal(scale=0.9, size=(len(labels), 10))
    if ties:
        rows = np.sign(rows[:, :4])  # 16 different vectors: most scores are equal to some other one
    names = tuple(f"class {label}/picture {row}.png" for row, label in enumerate(labels))  # with blanks
    return Side(
        vectors=rows.astype(np.float32), ids=np.arange(len(labels)) + 100, names=names,
        columns={"label": [f"c{label}" for label in labels]},
    )  # fmt: skip


def reverse(_store, _queries, found: Neighbours) -> Neighbours:
    return Neighbours.from_rows([(ids[::-1], scores[::-1]) for ids, scores in found], found.metric)


RUNS = {
    "plain": lambda: measure(clusters(), clusters(), ks=(1, 5, 10)),
    "ties": lambda: measure(clusters(ties=True), clusters(ties=True), ks=(1, 5, 10)),
    "distance": lambda: measure(clusters(), clusters(), ks=(1, 5, 10), metric="l2"),
    "re-ranked": lambda: measure(clusters(), clusters(), ks=(1, 5, 10), stages=Stages(rerank=reverse, pool=8)),
    "two sides": lambda: measure(clusters(1), clusters(2).renumbered(500), ks=(1, 5, 10)),
}


@pytest.mark.parametrize("name", RUNS)
def test_trec_eval_reads_the_same_numbers_out_of_the_saved_files(name: str, tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, RR, P, R, Success, nDCG

    report = RUNS[name]().save(tmp_path / "run", trec_depth=72)  # the whole gallery
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "run/qrels.trec")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "run/run.trec")))
    ours = {
        Success @ 1: "recall@1", Success @ 5: "recall@5", P @ 10: "precision@10", R @ 10: "coverage@10", RR: "mrr",
        nDCG @ 10: "ndcg@10", AP @ 10: "map@10/all", AP: "map",
    }  # fmt: skip
    theirs = ir_measures.calc_aggregate(list(ours), qrels, run)
    for measure_, metric in ours.items():
        assert theirs[measure_] == pytest.approx(report.metrics[metric], abs=1e-9), metric
    assert report.trec == {"depth": 72, "relevant_pairs": len(qrels), "qrels": True}


@pytest.mark.parametrize("name", RUNS)
def test_the_scores_of_a_trec_file_fall_strictly_in_the_order_of_the_ranks(name: str, tmp_path: Path) -> None:
    RUNS[name]().save(tmp_path / "run", trec_depth=20)
    lists: dict[str, list[tuple[int, np.float32]]] = {}
    for line in (tmp_path / "run/run.trec").read_text().splitlines():
        query, q0, _item, rank, score, tag = line.split(" ")
        assert (q0, tag) == ("Q0", "lookalike")
        lists.setdefault(query, []).append((int(rank), np.float32(score)))
    assert len(lists) == 72
    for rows in lists.values():
        assert [rank for rank, _ in rows] == list(range(1, 21))
        assert all(above > below for (_, above), (_, below) in itertools.pairwise(rows))


def test_names_csv_says_what_each_id_is_called(tmp_path: Path) -> None:
    side = clusters()
    measure(side, side).save(tmp_path / "run")
    with (tmp_path / "run/names.csv").open(newline="") as file:
        found = {int(row["id"]): row["name"] for row in csv.DictReader(file)}
    assert found == dict(zip(side.ids.tolist(), side.names, strict=True))


def test_depth_0_writes_no_lists_and_a_depth_below_is_refused(tmp_path: Path) -> None:
    report = measure(clusters(), clusters()).save(tmp_path / "run", trec_depth=0)
    assert report.trec is None
    assert not (tmp_path / "run/run.trec").exists()
    with pytest.raises(InputError, match="trec_depth=-1"):
        report.save(tmp_path / "other", trec_depth=-1)


def test_beyond_the_most_pairs_no_part_of_the_qrels_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookalike.evaluate.trec.MOST_PAIRS", 359)  # 72 queries of 5 right answers: 360
    assert write_trec(measure(clusters(), clusters()).evidence, tmp_path, 10)["qrels"] is False
    assert not (tmp_path / "qrels.trec").exists()


def test_what_the_protocol_removes_is_in_neither_file(tmp_path: Path) -> None:
    side = dataclasses.replace(clusters(), columns={"label": clusters().column("label"), "camera": list("abcabc") * 12})
    report = measure(side, side, camera="camera").save(tmp_path / "run", trec_depth=72)
    label, camera = (dict(zip(side.ids.tolist(), side.column(name), strict=True)) for name in ("label", "camera"))
    for file, width in (("run.trec", 6), ("qrels.trec", 4)):
        for line in (tmp_path / "run" / file).read_text().splitlines():
            cells = line.split(" ")
            assert len(cells) == width
            query, item = int(cells[0]), int(cells[2])
            assert (label[query], camera[query]) != (label[item], camera[item])
    assert report.metrics["map"] < 1


def test_the_recall_curve_is_recall_at_every_k(tmp_path: Path) -> None:
    report = measure(clusters(), clusters(), ks=(1, 2, 3, 20))
    curve = report.recall_curve()
    for k in (1, 2, 3, 20):
        assert curve[k - 1] == pytest.approx(report.metrics[f"recall@{k}"], abs=1e-12)
    assert len(curve) == 72
    assert report.precision_curve[-1] == pytest.approx(
        report.metrics["minp"], abs=1e-12
    )  # precision where all is found
    saved = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert len(saved["curves"]["precision_at_recall"]) == 101


def test_first_ranks_and_failed_queries_are_read_back_worst_first(tmp_path: Path) -> None:
    report = measure(clusters(), clusters()).save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.first_ranks is not None
    assert np.array_equal(run.first_ranks, report.first_ranks)
    failed = run.failed("recall@1")
    assert sorted(failed) == np.flatnonzero(report.first_ranks > 1).tolist()
    assert run.first_ranks[failed].tolist() == sorted(run.first_ranks[failed], reverse=True)
    with pytest.raises(UnknownNameError, match="recall@1"):
        run.failed("recall@7")


def test_classes_are_saved_with_every_metric_and_add_up(tmp_path: Path) -> None:
    report = measure(clusters(), clusters()).save(tmp_path / "run")
    with (tmp_path / "run/per_class.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == sorted(f"c{label}" for label in range(12))
    assert np.mean([float(row["map"]) for row in rows]) == pytest.approx(report.metrics["map"])  # classes of one size
    listed = report.to_dict()["per_class"]
    assert (listed["column"], listed["num_classes"], len(listed["classes"])) == ("label", 12, 12)
    assert listed["classes"][0]["metrics"]["map"] == float(rows[0]["map"])


def brute_first_right(side: Side, query: int) -> int:
    vectors = side.vectors.astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = side.column("label")
    order = [int(i) for i in np.argsort(-(unit @ unit[query]), kind="stable") if i != query]
    return next(item for item in order if labels[item] == labels[query])


def test_the_first_right_answer_of_a_row_is_the_one_a_full_sort_finds() -> None:
    side = clusters(seed=8)
    [evidence] = measure(side, side).evidence
    assert [evidence.first_right(row) for row in range(72)] == [brute_first_right(side, row) for row in range(72)]


def test_of_a_re_ranked_run_it_is_the_first_in_the_pool() -> None:
    side = clusters()
    [evidence] = measure(side, side, stages=Stages(rerank=reverse, pool=71)).evidence
    labels = side.column("label")
    [(items, _)] = evidence.lists(np.array([5]), 71)
    assert evidence.first_right(5) == next(item for item in items.tolist() if labels[item] == labels[5])


@pytest.fixture
def pictured(tmp_path: Path) -> Report:
    """Twelve pictures of two classes; the vectors put the pictures of the other class first for some."""
    rng = np.random.default_rng(5)
    paths = []
    for row in range(12):
        paths.append(str(tmp_path / f"<b>&{row}.png"))
        Image.fromarray(rng.integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(paths[-1])
    Path(paths[0]).write_bytes(b"no picture any more")
    side = Side(
        vectors=rng.normal(size=(12, 3)).astype(np.float32), ids=np.arange(12), paths=tuple(paths),
        names=tuple(Path(path).name for path in paths), columns={"label": ["<script>", "b"] * 6},
    )  # fmt: skip
    return dataclasses.replace(measure(side, side), command="lookalike eval '<x>'")


def test_the_page_asks_for_nothing_and_escapes_every_name(pictured: Report) -> None:
    text = page(pictured)
    assert not re.search(r"<script|<link|<iframe|@import|url\(|\bsrc=\"(?!data:image/jpeg)", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "<b>&" not in text
    assert "default-src 'none'" in text
    assert "lookalike eval &#x27;&lt;x&gt;&#x27;" in text
    for metric in pictured.metrics:
        assert f"<td>{metric}</td>" in text
    assert f"<b>{pictured.metrics['recall@1']:.3f}</b>" in text
    assert text.count("<svg") == 2


def test_the_worst_queries_come_first_and_end_with_their_first_right_answer(pictured: Report) -> None:
    rows = worst_rows(pictured)
    ranks = [row.first_rank for row in rows]
    assert ranks == sorted((rank for rank in pictured.first_ranks if rank > 1), reverse=True)
    for row in rows:
        right = [tile.rank for tile in row.answers if tile.kind == "right"]
        if row.first_right is None:
            assert right[0] == row.first_rank
        else:
            assert not right
            assert row.first_right.rank == row.first_rank
        assert all(tile.label == row.query.label for tile in row.answers if tile.kind == "right")
        assert [tile.picture == "" for tile in (row.query, *row.answers)] == [
            tile.name == "<b>&0.png" for tile in (row.query, *row.answers)
        ]


def test_a_page_of_a_run_without_any_number_says_so() -> None:
    side = dataclasses.replace(clusters(), columns={"label": list(map(str, range(72)))})
    text = page(measure(side, side))
    assert "nothing was evaluated" in text
    assert "NaN" not in text
    assert "nan" not in re.sub(r"<style>.*</style>", "", text, flags=re.S)


def test_evidence_hands_out_no_query_to_itself() -> None:
    side = clusters()
    [evidence] = measure(side, side).evidence
    assert isinstance(evidence, Evidence)
    for row, (items, _) in enumerate(evidence.lists(np.arange(72), 71)):
        assert sorted([*items.tolist(), row]) == list(range(72))
