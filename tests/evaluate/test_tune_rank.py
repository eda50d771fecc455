"""Settings are chosen on some identities and reported on others."""

from __future__ import annotations

import numpy as np
import pytest

from lookalike.errors import InputError, UnknownNameError
from lookalike.evaluate.run import measure
from lookalike.evaluate.sides import Side
from lookalike.evaluate.staged import Stages
from lookalike.evaluate.tune_rank import tune_rank
from lookalike.index.neighbours import Neighbours
from lookalike.rank.stages import rerank_stage


@pytest.fixture
def side() -> Side:
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(14), 6)
    rows = rng.normal(size=(14, 10))[labels] + rng.normal(scale=0.8, size=(84, 10))
    return Side(vectors=rows.astype(np.float32), ids=np.arange(84), columns={"label": labels.astype(str).tolist()})


def reverse(_store, _queries, found: Neighbours) -> Neighbours:
    return Neighbours.from_rows([(ids[::-1], scores[::-1]) for ids, scores in found], found.metric)


def test_no_identity_that_chose_is_reported(side):
    seen: list[set[str]] = []

    def spy(_store, _queries, found: Neighbours) -> Neighbours:
        seen.append({str(len(found))})
        return found

    trials = [Stages(rerank=rerank_stage("k-reciprocal:k1=6,k2=2"), pool=40), Stages(rerank=spy, pool=40)]
    found = tune_rank(side, side, trials, by="label", seed=1)
    reported = {side.column("label")[int(name)] for name in found.report.query_names}
    assert len(reported) == 7
    assert found.report.num_gallery == 84
    again = tune_rank(side, side, trials, by="label", seed=1)
    assert again.report.query_names == found.report.query_names
    assert tune_rank(side, side, trials, by="label", seed=2).report.query_names != found.report.query_names


def test_the_best_on_validation_is_reported_beside_the_plain_run(side):
    trials = [Stages(rerank=reverse, pool=40), Stages(rerank=rerank_stage("k-reciprocal:k1=6,k2=2"), pool=40)]
    found = tune_rank(side, side, trials, by="label")
    assert found.best.stages is trials[1]
    assert found.best.value > found.plain > found.trials[0].value
    assert found.report.plain is not None
    assert "map" in found.report.paired


def test_where_nothing_is_better_the_plain_run_is_reported(side):
    found = tune_rank(side, side, [Stages(rerank=reverse, pool=40)], by="label")
    assert found.best.value < found.plain
    assert found.report.plain is None


def test_the_value_of_a_trial_is_that_of_a_full_measurement(side):
    stages = Stages(rerank=rerank_stage("k-reciprocal:k1=6,k2=2"), pool=40)
    found = tune_rank(side, side, [stages], by="label", optimise="ndcg@10")
    reported = {int(name) for name in found.report.query_names}
    choosing = side.having([i for i in range(84) if i not in reported])
    assert found.best.value == pytest.approx(measure(choosing, side, stages=stages).metrics["ndcg@10"])


def test_refusals_name_the_value(side):
    stages = [Stages(rerank=reverse)]
    with pytest.raises(InputError, match="at least one setting"):
        tune_rank(side, side, [], by="label")
    with pytest.raises(InputError, match=r"validation=1\.5"):
        tune_rank(side, side, stages, by="label", validation=1.5)
    with pytest.raises(UnknownNameError, match="'mapp'"):
        tune_rank(side, side, stages, by="label", optimise="mapp")
    few = side.having(range(12))
    with pytest.raises(InputError, match="holds 2 identities"):
        tune_rank(few, few, stages, by="label")
