"""SGD beside PyTorch with every option; cases 46 and 47."""

from typing import Any

import pytest

from gradcore.errors import ArgumentError
from gradcore.nn import Parameter
from gradcore.optim import SGD


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.5, "dampening": 1.0},
        {"momentum": 0.9, "nesterov": True},
    ],
)
def test_like_torch(like_torch: Any, options: Any, decay: float) -> None:
    torch = pytest.importorskip("torch")
    options = {"lr": 0.03, "weight_decay": decay, **options}
    like_torch(lambda p: SGD(p, **options), lambda p: torch.optim.SGD(p, **options), 0.03)


@pytest.mark.parametrize(
    ("options", "start", "grads", "values"),
    [
        ({"momentum": 0.9}, 0.0, [1, 1, 1], [-0.1, -0.29, -0.561]),
        ({"momentum": 0.9, "nesterov": True}, 0.0, [1, 1, 1], [-0.19, -0.461, -0.8049]),
        ({"weight_decay": 0.1}, 1.0, [0, 0], [0.99, 0.9801]),
        ({"momentum": 0.9, "weight_decay": 0.1}, 1.0, [1, 1], [0.89, 0.6821]),
        ({"momentum": 0.9, "weight_decay": 0.1}, 1.0, [1, None, None, 0], [0.89, 0.89, 0.89, 0.7821]),
        ({"momentum": 0.9, "weight_decay": 0.1}, 1.0, [1, 0, 0, 0], [0.89, 0.7821, 0.677169, 0.57595941]),
        # dampening: not on the first step that has a gradient
        ({"momentum": 0.9, "dampening": 0.5}, 0.0, [None, 1, 1], [0.0, -0.1, -0.24]),
    ],
)
def test_worked_out(run: Any, near: Any, options: Any, start: float, grads: Any, values: Any) -> None:
    """Cases 46 and 47: a gradient of None skips a parameter wholly, one of zero does not."""
    assert run(lambda p: SGD(p, lr=0.1, **options), start, *grads) == near(values)


def test_nesterov_needs_momentum() -> None:
    """Case 46's end."""
    p = [Parameter([1.0])]
    with pytest.raises(ArgumentError, match="SGD: nesterov needs a momentum"):
        SGD(p, lr=0.1, nesterov=True)
    with pytest.raises(ArgumentError, match="no dampening"):
        SGD(p, lr=0.1, momentum=0.9, dampening=0.1, nesterov=True)


@pytest.mark.parametrize("name", ["lr", "momentum", "dampening", "weight_decay"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "fast", None])
def test_senseless_numbers(name: str, value: Any) -> None:
    """Case 47: at construction."""
    with pytest.raises(ArgumentError, match=f"SGD: {name} must be"):
        SGD([Parameter([1.0])], **{"lr": 0.1, name: value})


def test_state_names() -> None:
    p = [Parameter([1.0]), Parameter([[2.0]])]
    assert list(SGD(p, lr=0.1).state_dict()) == ["lr", "step.0", "step.1"]
    assert list(SGD(p, lr=0.1, momentum=0.5).state_dict())[3:] == ["momentum_buffer.0", "momentum_buffer.1"]
