"""Schedules beside PyTorch's, their corners, and going on from a saved state."""

import math
from typing import Any

import numpy as np
import pytest

from gradcore.errors import ArgumentError
from gradcore.nn import Parameter
from gradcore.optim import SGD, CosineAnnealingLR, ExponentialLR, LambdaLR, LinearWarmupLR, StepLR


def optimizer(lr: float = 0.8) -> SGD:
    return SGD([Parameter([0.0])], lr=lr)


def rates(schedule: Any, steps: int) -> list[float]:
    found = [schedule.optimizer.lr]
    for _ in range(steps):
        schedule.step()
        found.append(schedule.optimizer.lr)
    return found


@pytest.mark.parametrize(
    ("make", "twin"),
    [
        (lambda o: StepLR(o, 3), lambda t, o: t.StepLR(o, 3)),
        (lambda o: StepLR(o, 1, 0.9), lambda t, o: t.StepLR(o, 1, 0.9)),
        (lambda o: ExponentialLR(o, 0.7), lambda t, o: t.ExponentialLR(o, 0.7)),
        (lambda o: CosineAnnealingLR(o, 12), lambda t, o: t.CosineAnnealingLR(o, 12)),
        (lambda o: CosineAnnealingLR(o, 12, 0.1), lambda t, o: t.CosineAnnealingLR(o, 12, 0.1)),
        (lambda o: LambdaLR(o, lambda n: 1 / (1 + n)), lambda t, o: t.LambdaLR(o, lambda n: 1 / (1 + n))),
        (lambda o: LinearWarmupLR(o, 5), lambda t, o: t.LinearLR(o, 1 / 5, 1.0, 4)),
    ],
)
def test_like_torch(make: Any, twin: Any) -> None:
    torch = pytest.importorskip("torch")
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
    theirs = twin(torch.optim.lr_scheduler, other)
    expected = [other.param_groups[0]["lr"]]
    for _ in range(12):
        other.step()
        theirs.step()
        expected.append(other.param_groups[0]["lr"])
    assert rates(make(optimizer()), 12) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_formulas() -> None:
    assert rates(StepLR(optimizer(), 2, 0.5), 4) == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.2])
    assert rates(LinearWarmupLR(optimizer(), 4), 5) == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8])
    half = CosineAnnealingLR(optimizer(), 2, 0.2)
    assert rates(half, 4) == pytest.approx([0.8, 0.5, 0.2, 0.2, 0.2])  # stays at the least, does not swing back


def test_the_rate_reaches_the_step() -> None:
    """A schedule that changed only a number nobody reads would pass all tests above."""
    step = optimizer(1.0)
    schedule = ExponentialLR(step, 0.5)
    for _ in range(3):
        step.parameters[0].grad = [-1.0]
        step.step()
        schedule.step()
    assert step.parameters[0].item() == 1.75
    assert step.state_dict()["lr"] == 0.125


@pytest.mark.parametrize(
    "make", [lambda o: StepLR(o, 3), lambda o: CosineAnnealingLR(o, 9), lambda o: LinearWarmupLR(o, 6)]
)
def test_resume(make: Any) -> None:
    """Case 49: the same rates to the last bit; count and base come with the state."""
    whole = rates(make(optimizer()), 10)
    first = make(optimizer())
    rates(first, 4)
    second = make(optimizer(0.1))
    second.load_state_dict(first.state_dict())
    assert [*rates(second, 6)] == whole[4:]


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"base": 0.1},
        {"base": -1.0, "count": 0},
        {"base": float("nan"), "count": 0},
        {"base": "x", "count": 0},
        {"base": 0.1, "count": -1},
        {"base": 0.1, "count": 1.5},
        {"base": 0.1, "count": None},
    ],
)
def test_a_state_that_makes_no_sense(state: Any) -> None:
    """Refused before any change."""
    schedule = StepLR(optimizer(), 1, 0.5)
    schedule.step()
    with pytest.raises(ArgumentError, match=r"StepLR.load_state_dict: "):
        schedule.load_state_dict(state)
    assert (schedule.base, schedule.count, schedule.optimizer.lr) == (0.8, 1, 0.4)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: StepLR(o, 0), "StepLR: step_size must be an integer of at least 1, got 0"),
        (lambda o: StepLR(o, 2.5), "StepLR: step_size.*2.5"),
        (lambda o: StepLR(o, 1, -0.5), "StepLR: gamma"),
        (lambda o: ExponentialLR(o, math.nan), "ExponentialLR: gamma"),
        (lambda o: CosineAnnealingLR(o, 0), "CosineAnnealingLR: total"),
        (lambda o: CosineAnnealingLR(o, 5, -0.1), "CosineAnnealingLR: least"),
        (lambda o: LinearWarmupLR(o, -1), "LinearWarmupLR: total"),
        (lambda o: LambdaLR(o, lambda n: -1.0), "SGD: lr must be at least 0"),
    ],
)
def test_senseless_options(make: Any, text: str) -> None:
    target = optimizer()
    with pytest.raises(ArgumentError, match=text):
        make(target)
    assert target.lr == 0.8


def test_long_runs() -> None:
    schedule = ExponentialLR(optimizer(), 0.1)
    schedule.load_state_dict({"base": 0.8, "count": 10**6})
    assert schedule.optimizer.lr == 0.0
    assert np.isfinite(schedule.optimizer.state_dict()["lr"])
