"""Layer.astype: a whole network in the other float type, gradients and buffers with it."""

import numpy as np
import pytest

from gradcore import nn, optim
from gradcore.errors import DTypeError


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))


def test_there_and_back() -> None:
    model = network()
    before = model.state_dict()
    model(np.ones((2, 1, 4, 4), np.float32)).sum().backward()
    assert model.astype("float64") is model
    assert {value.dtype.name for value in model.state_dict().values()} == {"float64", "int64"}
    assert all(p.grad is not None and p.grad.dtype == np.float64 for p in model.parameters())
    assert model(np.ones((2, 1, 4, 4))).dtype == np.float64
    for name, value in model.astype("float32").state_dict().items():
        if "running" not in name and "tracked" not in name:
            np.testing.assert_array_equal(value, before[name])


def test_it_trains_in_float64() -> None:
    model = network().astype(np.float64)
    optimizer = optim.Adam(model.parameters())
    before = model.state_dict()["0.weight"]
    model(np.random.default_rng(0).random((2, 1, 4, 4))).sum().backward()
    optimizer.step()
    after = model.state_dict()["0.weight"]
    assert after.dtype == np.float64
    assert not np.array_equal(after, before)


def test_only_float_types() -> None:
    with pytest.raises(DTypeError, match=r"Sequential.astype: .* got int64"):
        network().astype("int64")


def test_frozen_parameters_stay() -> None:
    """An optimizer takes frozen parameters and leaves them alone, as PyTorch does."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    for p in model[0].parameters():
        p.requires_grad_(False)
    before = model.state_dict()
    optimizer = optim.Adam(model.parameters(), lr=0.1, weight_decay=0.1)
    model(np.ones((3, 2), np.float32)).sum().backward()
    optimizer.step()
    after = model.state_dict()
    np.testing.assert_array_equal(after["0.weight"], before["0.weight"])
    assert not np.array_equal(after["1.weight"], before["1.weight"])
