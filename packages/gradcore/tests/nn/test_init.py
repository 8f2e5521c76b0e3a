"""Initialisers: bounds, means and standard deviations; what the layers start from."""

import math
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, nn
from gradcore.errors import ArgumentError, ShapeError
from gradcore.nn import init

SHAPES = [(200, 300), (64, 32, 3, 5)]


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def check_uniform(values: Any, bound: float) -> None:
    values = np.asarray(values, np.float64)
    assert np.abs(values).max() <= bound * (1 + 1e-6)
    assert np.abs(values).max() > bound * 0.99
    check_moments(values, 0.0, bound / math.sqrt(3.0))


def check_moments(values: Any, mean: float, std: float) -> None:
    """Within five standard errors."""
    values = np.asarray(values, np.float64)
    assert abs(values.mean() - mean) < 5 * std / math.sqrt(values.size)
    assert abs(values.std() / std - 1) < 5 / math.sqrt(2 * values.size)


@pytest.mark.parametrize("shape", SHAPES)
def test_uniform_rules(shape: Any, dtype: Any) -> None:
    w = Tensor(np.zeros(shape, dtype))
    fan_in, fan_out = fans(shape)
    check_uniform(init.kaiming_uniform_(w), math.sqrt(6 / fan_in))
    check_uniform(init.kaiming_uniform_(w, "linear"), math.sqrt(3 / fan_in))
    check_uniform(init.xavier_uniform_(w), math.sqrt(6 / (fan_in + fan_out)))
    check_uniform(init.xavier_uniform_(w, 2.0), 2 * math.sqrt(6 / (fan_in + fan_out)))
    check_uniform(init.uniform_(w, -3.0, 3.0), 3.0)
    assert w.dtype == dtype


@pytest.mark.parametrize("shape", SHAPES)
def test_normal_rules(shape: Any, dtype: Any) -> None:
    w = Tensor(np.zeros(shape, dtype))
    fan_in, fan_out = fans(shape)
    check_moments(init.kaiming_normal_(w), 0.0, math.sqrt(2 / fan_in))
    check_moments(init.kaiming_normal_(w, "tanh"), 0.0, 5 / 3 / math.sqrt(fan_in))
    check_moments(init.xavier_normal_(w), 0.0, math.sqrt(2 / (fan_in + fan_out)))
    check_moments(init.normal_(w, 2.0, 0.5), 2.0, 0.5)


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [(lambda: nn.Linear(400, 300), 400), (lambda: nn.Conv2d(16, 128, (3, 5), groups=2), 8 * 15)],
)
def test_what_layers_start_from(layer: Any, fan_in: int) -> None:
    """PyTorch's default: U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for weight and bias."""
    made = layer()
    check_uniform(made.weight, 1 / math.sqrt(fan_in))
    assert np.abs(made.bias.numpy()).max() <= 1 / math.sqrt(fan_in)
    assert abs(made.bias.numpy().std() * math.sqrt(3 * fan_in) - 1) < 0.25


def test_the_bounds_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in (
        (nn.Linear(50, 400), torch.nn.Linear(50, 400)),
        (nn.Conv2d(8, 64, 3), torch.nn.Conv2d(8, 64, 3)),
    ):
        for name, value in ours.state_dict().items():
            other = theirs.state_dict()[name].numpy()
            assert value.shape == other.shape
            assert np.abs(value).max() == pytest.approx(np.abs(other).max(), rel=0.05)
    for name in ("linear", "sigmoid", "tanh", "relu"):
        assert init.gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))


def test_constants(dtype: Any) -> None:
    w = Tensor(np.ones((2, 3), dtype))
    assert init.zeros_(w) is w
    assert w.tolist() == [[0.0] * 3] * 2
    assert init.ones_(w).tolist() == [[1.0] * 3] * 2
    assert init.constant_(w, 0.5).tolist() == [[0.5] * 3] * 2


def test_seeds() -> None:
    """Case 74: equal seeds, equal layers; the next layer differs."""
    made = []
    for seed in (0, 0, 1):
        gradcore.manual_seed(seed)
        made.append((nn.Linear(3, 3).state_dict(), nn.Linear(3, 3).state_dict()))
    np.testing.assert_equal(made[0], made[1])
    assert not np.array_equal(made[0][0]["weight"], made[0][1]["weight"])
    assert not np.array_equal(made[0][0]["weight"], made[2][0]["weight"])


def test_a_parameter_stays_one() -> None:
    """In place: the layer's own parameter, which still wants a gradient."""
    layer = nn.Linear(2, 2)
    init.kaiming_normal_(layer.weight)
    assert layer.weight.requires_grad
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="init: nonlinearity 'gelu' is not one of"):
        init.kaiming_normal_(Tensor([[1.0]]), "gelu")
    with pytest.raises(ShapeError, match=r"init: fans need a weight of at least two axes, got \(3,\)"):
        init.xavier_uniform_(Tensor([1.0, 2.0, 3.0]))
