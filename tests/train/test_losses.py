"""Losses by name: the figures worked out by hand, and every typing error refused with the right spelling."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_metric_learning")

from lookalike.errors import InputError, InputTypeError, UnknownNameError  # noqa: E402
from lookalike.train.loss import Loss  # noqa: E402
from lookalike.train.losses import LOSSES, make_loss, name_of  # noqa: E402
from lookalike.train.objective import Objective  # noqa: E402
from lookalike.train.pair_losses import Triplet  # noqa: E402


def at_cosines(positive, negative):
    """Anchor, positive, negative with these cosines to the anchor; unit rows."""
    rows = [[1, 0, 0], [positive, np.sqrt(1 - positive**2), 0], [negative, 0, np.sqrt(1 - negative**2)]]
    return torch.tensor(rows, dtype=torch.float32)


@pytest.mark.parametrize(("name", "value"), [("triplet", 0.0844), ("triplet-squared", 0.06)])
def test_the_loss_of_cosines_85_and_78_is_the_one_worked_out_by_hand(name, value):
    loss = make_loss(name, {"margin": 0.2}).build(classes=2, dim=3)
    indices = tuple(torch.tensor([i]) for i in (0, 1, 2))
    found = loss(at_cosines(0.85, 0.78), torch.tensor([0, 0, 1]), indices)
    assert found.item() == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("mining", ["all", "batch-hard", "semi-hard", "semi-hard-pairs"])
@pytest.mark.parametrize("name", ["triplet", "triplet-squared"])
def test_eight_equal_vectors_lose_exactly_the_margin_under_every_miner(name, mining):
    objective = Objective(make_loss(name), mining=mining, classes=2, dim=4)
    outcome = objective(torch.ones(8, 4, requires_grad=True), torch.tensor([0] * 4 + [1] * 4))
    assert outcome.loss.item() == np.float32(0.2)


def test_a_hundred_equal_vectors_are_exactly_zero_apart_too():
    # above 25 rows the library's own distance takes a shortcut that puts them 3e-4 apart
    rows = torch.nn.functional.normalize(torch.randn(1, 64, generator=torch.Generator().manual_seed(0)))
    outcome = Objective(Triplet(), mining="all", classes=2, dim=64)(rows.repeat(100, 1), torch.arange(100) % 2)
    assert outcome.loss.item() == np.float32(0.2)


@pytest.mark.parametrize("name", [name for name, kind in LOSSES.items() if kind.pairs])
def test_a_batch_without_a_positive_or_of_one_class_is_a_finite_zero_and_no_step(name):
    objective = Objective(make_loss(name), mining=None, classes=4, dim=8)
    vectors = torch.randn(4, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for codes in (torch.arange(4), torch.zeros(4, dtype=torch.int64)):
        outcome = objective(vectors, codes)
        assert (outcome.loss.item(), outcome.learns) == (0.0, False)
        outcome.loss.backward()  # still joined to the graph, so that a caller's backward does not fail
        assert not vectors.grad.any()


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_of_the_table_gives_a_finite_number_and_a_gradient(name):
    loss = make_loss(name)
    objective = Objective(loss, mining=None, classes=4, dim=8)
    generator = torch.Generator().manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(16, 8, generator=generator)).requires_grad_()
    outcome = objective(vectors, torch.arange(16) % 4)
    assert outcome.learns
    assert np.isfinite(outcome.loss.item())
    outcome.loss.backward()
    assert vectors.grad.abs().sum() > 0
    if not loss.pairs:
        assert all(parameter.grad.abs().sum() > 0 for parameter in objective.parameters())


def test_the_settings_of_every_loss_name_real_options_and_are_found_under_a_name():
    for name, kind in LOSSES.items():
        assert issubclass(kind, Loss)
        assert LOSSES[name_of(make_loss(name))] is kind


def test_an_unknown_loss_or_option_is_refused_with_the_right_spelling():
    with pytest.raises(UnknownNameError, match="Did you mean 'triplet"):
        make_loss("triplett")
    with pytest.raises(UnknownNameError, match="Did you mean 'margin'"):
        make_loss("triplet", {"margn": 0.2})
    with pytest.raises(UnknownNameError, match="'semi-hard'"):
        Objective(Triplet(), mining="seminard", classes=2, dim=2)
    with pytest.raises(TypeError):
        Triplet(margn=0.2)


def test_options_given_as_text_take_the_type_of_the_default():
    assert make_loss("triplet", {"margin": "0.1", "swap": "yes"}) == Triplet(margin=0.1, swap=True)
    assert make_loss("contrastive", {"neg_margin": 1}).neg_margin == 1.0
    for value in ("wide", None, [0.2]):
        with pytest.raises(InputTypeError, match="margin="):
            make_loss("triplet", {"margin": value})
    with pytest.raises(InputTypeError, match="yes or no"):
        make_loss("triplet", {"swap": "perhaps"})


@pytest.mark.parametrize(
    ("name", "options"),
    [("triplet", {"margin": 0.0}), ("ntxent", {"temperature": -1.0}), ("triplet", {"margin": float("nan")}),
     ("subcenter-arcface", {"sub_centers": 0})],
)  # fmt: skip
def test_an_option_outside_its_range_is_refused(name, options):
    with pytest.raises(InputError, match=next(iter(options))):
        make_loss(name, options)


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Triplet().margin = 1.0


def test_mining_for_a_loss_with_proxies_is_refused():
    with pytest.raises(InputError, match="proxies"):
        Objective(make_loss("proxy-anchor"), mining="semi-hard", classes=3, dim=4)


def test_a_batch_is_compared_with_the_queue_and_the_queue_is_saved_with_its_position():
    def made():
        return Objective(make_loss("contrastive"), mining=None, classes=4, dim=3, memory=10)

    generator = torch.Generator().manual_seed(1)
    batches = [(torch.randn(4, 3, generator=generator), torch.arange(4)) for _ in range(5)]
    unbroken = made()
    losses = [unbroken(*batch).loss.item() for batch in batches]
    assert losses[0] != losses[1]  # the first batch has no positive but itself, the second finds the first
    stopped = made()
    for batch in batches[:3]:
        stopped(*batch)
    resumed = made()
    resumed.load_state_dict(stopped.state_dict())
    assert [resumed(*batch).loss.item() for batch in batches[3:]] == losses[3:]
