"""Whole runs on small made-up vectors: exact resume, every way to stop, verdicts that claim no more than they may."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")
pytest.importorskip("accelerate")

from lookalike.arrays import factorise  # noqa: E402
from lookalike.errors import InputError, NotFoundError  # noqa: E402
from lookalike.evaluate.splits import holdout  # noqa: E402
from lookalike.train.loop import CachedVectors, Loop  # noqa: E402
from lookalike.train.losses import make_loss  # noqa: E402
from lookalike.train.material import Material, plan  # noqa: E402
from lookalike.train.run import train  # noqa: E402
from lookalike.train.settings import HeadSettings, Settings  # noqa: E402


def material(classes=14, each=6, dim=24, noise=1.0, seed=0, **more):
    """Identities in a few dimensions, under noise in all of them: a head can learn which to keep."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((classes, dim))
    centres[:, :4] = rng.normal(size=(classes, 4))
    labels = np.repeat(np.arange(classes), each)
    scale = np.r_[np.full(4, 0.15), np.full(dim - 4, noise)]
    vectors = centres[labels] + rng.normal(size=(labels.size, dim)) * scale
    return Material(vectors=vectors, labels=[f"identity {code}" for code in labels], **more)


def settings(**more):
    defaults = {"head": HeadSettings(dim=8), "classes": 4, "per_class": 3, "epochs": 3, "threads": 1}
    return Settings(**{**defaults, **more})


def weights(trained):
    return {name: value.clone() for name, value in trained.model.state_dict().items()}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


VARIANTS = {
    "triplet": {},
    "proxies": {"loss": make_loss("proxy-anchor")},
    "queue": {"loss": make_loss("contrastive"), "memory": 30},
    "dropout in parts": {"head": HeadSettings(dim=8, layers=2, hidden=16, dropout=0.3), "micro_batch": 5},
    "cosine": {"schedule": "cosine", "warm_up": 4},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_epochs_and_two_more_equal_four_bit_for_bit(variant, tmp_path):
    made = material()
    four = settings(epochs=4, **VARIANTS[variant])
    unbroken = train(made, four, folder=tmp_path / "unbroken")
    train(made, four, folder=tmp_path / "resumed", stop_after=2)
    resumed = train(made, four, folder=tmp_path / "resumed", resume=True)
    assert same(weights(unbroken), weights(resumed))
    assert resumed.records == unbroken.records  # everything but the seconds
    assert [record.epoch for record in resumed.records] == [1, 2, 3, 4]
    states = [torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("unbroken", "resumed")]
    for part in ("objective", "model"):
        left, right = (dict(state["loop"][part]) for state in states)
        extras = [left.pop("loss._extra_state", None), right.pop("loss._extra_state", None)]
        assert extras[0] == extras[1]
        assert same(left, right)
    lines = (tmp_path / "resumed" / "epochs.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4]


def test_more_epochs_can_be_asked_for_when_resuming(tmp_path):
    made = material()
    train(made, settings(epochs=2), folder=tmp_path / "run")
    longer = train(made, settings(epochs=4), folder=tmp_path / "run", resume=True)
    assert same(weights(longer), weights(train(made, settings(epochs=4))))


def test_a_run_that_is_cancelled_resumes_at_its_last_whole_epoch(tmp_path):
    made, batches = material(), []

    def cancel():
        batches.append(1)
        if len(batches) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(made, settings(), folder=tmp_path / "run", check=cancel)
    resumed = train(made, settings(), folder=tmp_path / "run", resume=True)
    assert same(weights(resumed), weights(train(made, settings())))


def test_training_does_not_depend_on_or_disturb_the_random_state_around_it():
    torch.manual_seed(1)
    first = train(material(), settings(epochs=1))
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    second = train(material(), settings(epochs=1))
    assert same(weights(first), weights(second))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_checkpoint_of_other_settings_data_or_none_at_all_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="no checkpoint"):
        train(material(), settings(), folder=tmp_path, resume=True)
    train(material(), settings(epochs=1), folder=tmp_path / "run")
    with pytest.raises(InputError, match="other settings"):
        train(material(), settings(learning_rate=0.1), folder=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="other data"):
        train(material(seed=1), settings(), folder=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="already holds a run"):
        train(material(), settings(), folder=tmp_path / "run")
    with pytest.raises(InputError, match="folder"):
        train(material(), settings(), resume=True)


def test_a_batch_in_parts_has_the_gradient_of_the_whole_batch():
    made = material()

    def gradients(micro_batch):
        chosen = settings(micro_batch=micro_batch, loss=make_loss("supcon"))
        loop, model = a_loop(made, chosen)
        loop.optimiser.step = lambda: None  # look at the gradient, take no step
        loop.step(np.arange(30), epoch=1)
        return [parameter.grad for parameter in model.parameters()]

    for whole, parts in zip(gradients(None), gradients(7), strict=True):
        assert torch.allclose(whole, parts, atol=1e-6)
        assert whole.abs().sum() > 0


def a_loop(made, chosen):
    from lookalike.train.head import Head
    from lookalike.train.objective import Objective
    from lookalike.train.processes import Processes

    model = Head(chosen.head, dim_in=made.vectors.shape[1])
    codes = factorise(made.labels)[0]
    objective = Objective(chosen.loss, mining=chosen.mining, classes=int(codes.max()) + 1, dim=chosen.head.dim)
    source = CachedVectors(torch.from_numpy(made.vectors), np.arange(len(codes)))
    groups = [{"params": list(model.parameters()), "lr": chosen.learning_rate}]
    return Loop(model, objective, source, codes, chosen, groups=groups, processes=Processes()), model


def test_a_batch_of_different_labels_takes_no_step_and_is_counted():
    made = material()
    loop, model = a_loop(made, settings())
    before = [parameter.clone() for parameter in model.parameters()]
    vectors, loss = loop.step(np.arange(0, 84, 6), epoch=1)  # one picture of each identity
    assert loss is None
    assert loop.steps == 0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert np.isfinite(vectors).all()


def test_an_epoch_without_anything_to_learn_is_counted_and_said():
    apart = Material(vectors=np.repeat(np.eye(8), 4, axis=0), labels=np.repeat(np.arange(8), 4).tolist())
    trained = train(apart, settings(epochs=2, holdout=0.0, validation=0.0))
    assert trained.records[-1].empty_batches == trained.records[-1].batches
    assert trained.records[-1].loss == 0.0
    assert "nothing is left to learn" in str(trained.records[-1])


def test_collapse_is_recognised_explained_and_stopped():
    # identical vectors: nothing any loss can pull apart
    made = Material(vectors=np.ones((24, 6)), labels=np.repeat(np.arange(6), 4).tolist())
    start = HeadSettings(dim=4, start="random")
    trained = train(made, settings(head=start, epochs=5))
    assert len(trained.records) == 1
    assert trained.records[0].loss == pytest.approx(0.2, abs=1e-7)
    assert trained.stopped.startswith("collapsed: all vectors have become (nearly) one point")
    assert "the loss stands at the margin, 0.2" in trained.stopped
    assert not trained.verdict.better


def test_an_absurd_rate_is_recognised_and_stopped():
    made = material(noise=0.1)
    trained = train(made, settings(learning_rate=1e30, epochs=20, head=HeadSettings(dim=8, layers=2, hidden=8)))
    assert trained.stopped is not None
    assert trained.stopped.startswith(("diverged", "collapsed"))
    assert "1e+30" in trained.stopped
    assert len(trained.records) < 5
    assert np.isfinite(trained.encode(made.vectors)).all()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_not_above_zero_is_refused(rate):
    with pytest.raises(InputError, match="learning_rate"):
        settings(learning_rate=rate)


def test_patience_keeps_the_best_epoch_and_says_so():
    made = material(noise=0.0)
    trained = train(made, settings(epochs=30, patience=2))
    assert trained.stopped == "no better held-out recall@1 for 2 epochs; the weights of epoch 1 are kept"
    assert (trained.best_epoch, len(trained.records)) == (1, 3)
    assert same(weights(trained), weights(train(made, settings(epochs=1))))


def test_a_run_that_lost_patience_goes_on_where_it_is_given_more(tmp_path):
    made = material(noise=0.0)
    train(made, settings(epochs=30, patience=2), folder=tmp_path / "run")
    longer = train(made, settings(epochs=30, patience=4), folder=tmp_path / "run", resume=True)
    assert len(longer.records) == 5
    assert longer.records == train(made, settings(epochs=30, patience=4)).records


def test_no_identity_is_in_two_of_training_validation_and_test():
    made = material()
    planned = plan(made, settings())
    labels = np.array(made.labels)
    parts = [set(labels[np.array(rows)]) for rows in (planned.train, planned.validation.query, planned.test.query)]
    assert all(parts)
    assert len(set.union(*parts)) == sum(len(part) for part in parts) == 14
    assert planned.classes == len(parts[0])


def test_a_verdict_is_better_only_where_the_whole_interval_is_above_zero():
    noisy = train(material(classes=60), settings(epochs=40, loss=make_loss("supcon"), patience=None, validation=0.0))
    pair = noisy.verdict.paired["recall@1"]
    assert pair["interval"][0] > 0
    assert noisy.verdict.better
    assert noisy.verdict.sentence.startswith("Better than the frozen encoder")
    easy = train(material(noise=0.0), settings(epochs=2))
    assert easy.verdict.paired["recall@1"]["interval"][0] <= 0 <= easy.verdict.paired["recall@1"]["interval"][1]
    assert not easy.verdict.better
    assert easy.verdict.sentence.startswith(("Not shown to be better", "Worse"))


def test_labels_may_be_text_numbers_beyond_two_to_the_24th_or_missing():
    base = 2**24
    made = material(classes=6)
    numbers = [base + i // 6 for i in range(36)]
    a = train(Material(vectors=made.vectors, labels=made.labels), settings(epochs=2))
    b = train(Material(vectors=made.vectors, labels=numbers), settings(epochs=2, holdout=0.0, validation=0.0))
    assert a.plan.classes + len({made.labels[r] for r in (*a.plan.test.query, *a.plan.validation.query)}) == 6
    assert b.plan.classes == 6
    some = [None if i % 6 == 0 else label for i, label in enumerate(made.labels)]
    c = train(Material(vectors=made.vectors, labels=some), settings(epochs=1, holdout=0.0, validation=0.0))
    assert c.coverage.unlabelled == 6


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["only"] * 12, "of one class"), ([str(i) for i in range(12)], "the largest of 1"), ([None] * 12, "has a label")],
)
def test_labels_nothing_can_be_learned_from_are_refused_before_training(labels, message):
    with pytest.raises(InputError, match=message):
        train(Material(vectors=np.random.default_rng(0).normal(size=(12, 5)), labels=labels), settings())


def test_training_on_a_picture_of_the_test_is_refused():
    made = material()
    split = holdout([str(i) for i in range(84)], made.labels, 0.3)
    with pytest.raises(InputError, match="trained on as well"):
        train(dataclasses.replace(made, test=split, train=[split.query[0], *split.gallery[:5]]), settings())


def test_a_queue_smaller_than_a_batch_or_for_a_loss_without_one_is_refused():
    with pytest.raises(InputError, match="memory=5"):
        settings(loss=make_loss("contrastive"), memory=5)
    with pytest.raises(InputError, match="queue"):
        settings(loss=make_loss("arcface"), memory=100)


def test_guessed_labels_are_judged_by_true_ones_or_the_number_is_called_a_guess():
    made = material()
    guessed = [f"guess {i // 3}" for i in range(84)]  # each identity split in two
    judged = train(dataclasses.replace(made, labels=guessed, truth=made.labels, guessed=True), settings(epochs=1))
    asked = {made.labels[row] for row in judged.plan.test.query}
    assert judged.measured["identities"] == len(asked) == 4
    assert not asked & {made.labels[row] for row in judged.plan.train}
    assert not judged.plan.notes
    alone = train(dataclasses.replace(made, labels=guessed, guessed=True), settings(epochs=1))
    assert "not a measurement" in alone.plan.notes[0]
