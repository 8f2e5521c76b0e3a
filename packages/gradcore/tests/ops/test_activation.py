"""tanh, sigmoid and relu beside PyTorch, and far from zero."""

from collections.abc import Callable

import numpy as np
import pytest

from gradcore import tensor

pytestmark = pytest.mark.usefixtures("backend")

NAMES = ["tanh", "sigmoid", "relu"]


def method(name: str) -> Callable:
    return lambda x: getattr(x, name)()


@pytest.mark.parametrize("shape", [(), (1,), (5, 4), (0, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_beside_torch(
    name: str, shape: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    against_torch(method(name), method(name), rng.normal(size=shape, scale=2).astype(dtype), layout=layout)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NAMES)
def test_far_from_zero(name: str, dtype: str, against_torch) -> None:
    ends = np.array([-np.inf, -1e30, -100, -30, -1e-30, 0.0, 1e-30, 30, 100, 1e30, np.inf], dtype)
    against_torch(method(name), method(name), ends, atol=1e-12)


@pytest.mark.parametrize(("name", "slope"), [("tanh", 0.41997434), ("sigmoid", 0.19661193), ("relu", 1.0)])
def test_nan_stays_nan(name: str, slope: float) -> None:
    """And harms no neighbour."""
    x = tensor([np.nan, 1.0], requires_grad=True)
    y = method(name)(x)
    assert np.isnan(y.numpy()).tolist() == [True, False]
    y.backward([1.0, 1.0])
    assert x.grad.numpy()[1] == pytest.approx(slope)


def test_relu_at_zero() -> None:
    """Case 7: slope 0, also at minus 0."""
    x = tensor([0.0, -0.0, 1e-38, -1e-38], requires_grad=True)
    x.relu().sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 0]


def test_integers_become_float32() -> None:
    y = tensor(np.array([-1, 0, 2])).relu()
    assert (y.dtype, y.tolist()) == (np.float32, [0, 0, 2])
