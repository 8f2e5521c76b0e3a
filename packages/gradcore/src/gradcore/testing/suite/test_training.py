"""Whole training runs: XOR is learned; the first 10 losses match float64; two runs of one seed have equal bits.

The losses to match are those of the numpy backend in float64, where every rule is gradient-checked. After some steps
Adam amplifies rounding (two correct float32 programs differ by 2e-4 after 50), so no more than 10 are compared.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore import nn, ops, optim
from gradcore.backend.protocol import Conv2dOps, Pool2dOps
from gradcore.backend.registry import get_backend
from gradcore.random import manual_seed
from gradcore.tensor import Tensor
from gradcore.testing.compare import assert_close, same_bits
from gradcore.testing.marks import requires

Forward = Callable[[Tensor, dict[str, Tensor]], Tensor]


def conv_network(x: Tensor, p: dict[str, Tensor]) -> Tensor:
    y = ops.max_pool2d(ops.conv2d(x, p["w1"], p["b1"], padding=1).relu(), 2)
    y = ops.avg_pool2d(ops.conv2d(y, p["w2"], p["b2"], stride=2, padding=1).relu(), 2, stride=1)
    return ops.linear(y.flatten(1), p["w3"], p["b3"])


def dense_network(x: Tensor, p: dict[str, Tensor]) -> Tensor:
    y = ops.linear(x.flatten(1), p["w1"].flatten(1), p["b1"]).tanh()
    return ops.linear(y, p["w3"], p["b3"])


CONV = {"w1": (4, 1, 3, 3), "b1": (4,), "w2": (8, 4, 3, 3), "b2": (8,), "w3": (5, 8), "b3": (5,)}
DENSE = {"w1": (16, 64), "b1": (16,), "w3": (5, 16), "b3": (5,)}
needs_conv = [requires(Conv2dOps), requires(Pool2dOps)]
NETWORKS = pytest.mark.parametrize(
    ("forward", "shapes"),
    [pytest.param(conv_network, CONV, id="conv", marks=needs_conv), pytest.param(dense_network, DENSE, id="dense")],
)
OPTIMIZERS = pytest.mark.parametrize("optimizer", ["sgd", "adam"])


def train(
    backend: Any, dtype: str, forward: Forward, shapes: dict[str, Any], optimizer: str, steps: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """(losses, weights afterwards) of cross-entropy on random 8x8 images."""
    rng = np.random.default_rng(0)
    images = Tensor(rng.uniform(0, 1, (32, 1, 8, 8)).astype(np.float32).astype(dtype), backend=backend)
    labels = rng.integers(0, 5, 32)
    weights = {
        name: Tensor(
            rng.uniform(-0.4, 0.4, shape).astype(np.float32).astype(dtype), backend=backend, requires_grad=True
        )
        for name, shape in shapes.items()
    }
    step = (
        optim.SGD(weights.values(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        if optimizer == "sgd"
        else optim.Adam(weights.values(), lr=0.01)
    )
    losses = []
    for _ in range(steps):
        loss = ops.cross_entropy(forward(images, weights), labels)
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return np.array(losses), [np.array(one.numpy()) for one in weights.values()]


@OPTIMIZERS
@NETWORKS
def test_first_losses_match_float64(backend: Any, forward: Forward, shapes: dict[str, Any], optimizer: str) -> None:
    found, _ = train(backend, "float32", forward, shapes, optimizer, 10)
    wanted, _ = train(get_backend("numpy"), "float64", forward, shapes, optimizer, 10)
    assert wanted[-1] < wanted[0]
    assert_close(found, wanted, rtol=0, atol=1e-6)


@OPTIMIZERS
@NETWORKS
def test_two_runs_have_equal_bits(backend: Any, forward: Forward, shapes: dict[str, Any], optimizer: str) -> None:
    first, weights = train(backend, "float32", forward, shapes, optimizer, 10)
    second, again = train(backend, "float32", forward, shapes, optimizer, 10)
    assert same_bits(first, second)
    assert all(same_bits(a, b) for a, b in zip(weights, again, strict=True))


@OPTIMIZERS
def test_xor_is_learned(backend: Any, optimizer: str) -> None:
    manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid()).to(backend)
    x = Tensor([[0, 0], [0, 1], [1, 0], [1, 1]], backend=backend)
    target = Tensor([[0], [1], [1], [0]], backend=backend)
    criterion = nn.MSELoss()
    step = (
        optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
        if optimizer == "sgd"
        else optim.Adam(model.parameters(), lr=0.05)
    )
    for _ in range(400):
        loss = criterion(model(x), target)
        step.zero_grad()
        loss.backward()
        step.step()
    assert loss.item() < 0.01
    assert (model(x).numpy() > 0.5).ravel().tolist() == [False, True, True, False]
