"""A re-ranked or expanded run is scored like any other, and shown beside the plain one."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from lookalike.errors import InputError, ProtocolError, UnknownNameError
from lookalike.evaluate.compare import compare, leaderboard
from lookalike.evaluate.question import ask
from lookalike.evaluate.run import measure
from lookalike.evaluate.saved import find_runs, load_run
from lookalike.evaluate.sides import Side
from lookalike.evaluate.staged import Stages, staged_ranks
from lookalike.index.neighbours import Neighbours
from lookalike.rank.stages import expand_stage, rerank_stage


@pytest.fixture
def side() -> Side:
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(12), 6)
    rows = rng.normal(size=(12, 10))[labels] + rng.normal(scale=0.9, size=(72, 10))
    return Side(vectors=rows.astype(np.float32), ids=np.arange(72), columns={"label": labels.astype(str).tolist()})


def reverse(_store, _queries, found: Neighbours) -> Neighbours:
    return Neighbours.from_rows([(ids[::-1], scores[::-1]) for ids, scores in found], found.metric)


def keep(_store, _queries, found: Neighbours) -> Neighbours:
    return found


def brute_ranks(side: Side, pool: int, query: int) -> list[int]:
    """Literally: sort everything but the query, reverse the first `pool`, and look where the right ones are."""
    vectors = side.vectors.astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = [int(i) for i in np.argsort(-(unit @ unit[query]), kind="stable") if i != query]
    order = order[:pool][::-1] + order[pool:]
    labels = side.column("label")
    return [place for place, item in enumerate(order, start=1) if labels[item] == labels[query]]


@pytest.mark.parametrize("pool", [1, 5, 30, 71, 500])
def test_inside_the_pool_the_new_place_counts_and_behind_it_the_old_one(side, pool):
    question = ask(side, side)
    staged = staged_ranks(question.queries, question.gallery, question.truth, Stages(rerank=reverse, pool=pool))
    for query in range(72):
        assert staged.ranks[query].tolist() == brute_ranks(side, pool, query)


def test_a_stage_that_changes_nothing_changes_no_digit(side):
    report = measure(side, side, stages=Stages(rerank=keep, pool=20))
    assert report.plain is not None
    assert report.metrics == report.plain.metrics
    assert all(row.difference == 0 and row.won == row.lost == 0 for row in report.paired.values())


def test_no_stage_sees_what_the_protocol_removes(side):
    def spy(_store, _queries, found: Neighbours) -> Neighbours:
        for query, (ids, _) in enumerate(found):
            assert query not in ids.tolist()
            assert len(ids) == 20
        return found

    measure(side, side, stages=Stages(rerank=spy, pool=20))


def test_the_report_shows_gain_and_loss_with_intervals_and_milliseconds(side):
    stages = Stages(rerank=rerank_stage("k-reciprocal:k1=8,k2=3"), expand=expand_stage("alpha:n=3"), pool=40)
    report = measure(side, side, stages=stages)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert set(plain["paired"]["map"]) >= {"difference", "interval", "p"}
    assert plain["plain"]["metrics"]["map"] == pytest.approx(
        plain["metrics"]["map"] - plain["paired"]["map"]["difference"]
    )
    assert set(plain["timings"]) >= {"expand_ms", "rerank_ms", "pool_ms"}
    text = report.to_text()
    assert "[stages]\nexpanded by alpha:n=3,alpha=3.0, re-ranked by k-reciprocal:k1=8" in text
    assert report.paired["map"].difference > 0  # clean clusters: this is what re-ranking is for


def test_a_stage_in_text_takes_its_settings_and_refuses_others():
    assert str(expand_stage("alpha:n=5,alpha=0")) == "alpha:n=5,alpha=0.0"
    for wrong, error in (("k-reciprokal", UnknownNameError), ("k-reciprocal:k3=1", UnknownNameError),
                         ("k-reciprocal:k1=many", InputError), ("k-reciprocal:k1=0", InputError)):  # fmt: skip
        with pytest.raises(error):
            rerank_stage(wrong)
    assert rerank_stage("k-reciprocal:strict_overlap=true").settings.strict_overlap is True


def test_saved_runs_of_one_protocol_are_compared_by_query_name_and_others_refused(side, tmp_path):
    measure(side, side).save(tmp_path / "a")
    noisy = dataclasses.replace(
        side, vectors=side.vectors + np.random.default_rng(0).normal(size=(72, 10)).astype("f4")
    )
    measure(noisy, noisy).save(tmp_path / "b")
    measure(side, side, metric="l2").save(tmp_path / "c")
    a, b, c = (load_run(tmp_path / name) for name in "abc")
    result = compare(a, b)["recall@1"]
    first, second = a.per_query["recall@1"], b.per_query["recall@1"]
    assert result.difference == pytest.approx(second.mean() - first.mean())
    assert (result.won, result.lost) == (int((second > first).sum()), int((second < first).sum()))
    shuffled = dataclasses.replace(
        b, names=b.names[::-1], per_query={name: values[::-1] for name, values in b.per_query.items()}
    )
    assert compare(a, shuffled)["recall@1"] == result
    with pytest.raises(ProtocolError, match="metric: 'cosine' != 'l2'"):
        compare(a, c)
    places = leaderboard(find_runs(tmp_path), "map")
    assert [place.run[-1] for place in places] == ["a", "b", "c"]  # the protocol of two runs first, best first
    with pytest.raises(UnknownNameError, match=r"recall@1\b"):
        leaderboard(find_runs(tmp_path), "recall@7")


def test_a_saved_run_keeps_every_digit_and_its_groups(side, tmp_path):
    report = measure(side, side, cluster="label").save(tmp_path / "a")
    run = load_run(tmp_path / "a")
    for name, values in report.per_query.items():
        assert np.array_equal(run.per_query[name], values, equal_nan=True)
    assert run.groups == report.groups
