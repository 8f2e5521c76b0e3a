"""Dropout: statistics, the mask in backward, and exact replay from the counter."""

import copy
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import nn
from gradcore.backend.philox import uniform
from gradcore.errors import ArgumentError


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_statistics(p: float, dtype: Any) -> None:
    """A share p is zero, the rest is 1/(1-p), within five standard deviations; no two entries hang together."""
    size = 40_000
    y = nn.Dropout(p)(np.ones((size // 100, 100), dtype)).numpy()
    assert y.dtype == dtype
    assert set(np.unique(y)) == {0.0, dtype.type(1.0) * dtype.type(1.0 / (1.0 - p))}
    bound = 5 * np.sqrt(p * (1 - p) / size)
    kept = (y > 0).astype(float)
    assert abs(kept.mean() - (1 - p)) < bound
    for neighbour in (kept[:, 1:] * kept[:, :-1], kept[1:] * kept[:-1]):
        assert abs(neighbour.mean() - (1 - p) ** 2) < 3 * bound


def test_backward_uses_the_mask_of_its_forward(dtype: Any) -> None:
    layer = nn.Dropout(0.3)
    x = np.full((50, 7), 2.0, dtype)
    y = layer(x).numpy()
    np.testing.assert_array_equal(layer.backward(np.full_like(x, 2.0)), y)


def test_each_call_and_each_layer_has_a_mask_of_its_own() -> None:
    x = np.ones(1000, np.float32)
    layer, other = nn.Dropout(), nn.Dropout()
    masks = [layer(x).numpy(), layer(x).numpy(), other(x).numpy()]
    for i, mask in enumerate(masks):
        assert not any(np.array_equal(mask, later) for later in masks[i + 1 :])


def test_equal_seeds_equal_masks() -> None:
    """Case 74."""
    runs = []
    for seed in (3, 3, 4):
        gradcore.manual_seed(seed)
        layer = nn.Dropout(0.4)
        runs.append([layer(np.ones(99, np.float32)).tolist() for _ in range(3)])
    assert runs[0] == runs[1] != runs[2]


def test_replay_from_key_and_counter() -> None:
    """The mask is a pure function of (key, counter): the stream that philox.py defines, whatever the backend."""
    layer = nn.Dropout(0.25)
    x = np.ones((5, 3), np.float32)
    for calls in range(3):
        assert layer.counter.item() == 4 * calls  # 15 numbers are 4 blocks
        expected = np.where(uniform(layer.key, 4 * calls, 15) >= 0.25, np.float32(1 / 0.75), 0.0)
        np.testing.assert_array_equal(layer(x).numpy().ravel(), expected.astype(np.float32))
    layer.counter.copy_(4)
    np.testing.assert_array_equal(layer(x).numpy().ravel() > 0, uniform(layer.key, 4, 15) >= 0.25)


def test_evaluation_passes_everything_and_leaves_the_stream(dtype: Any) -> None:
    layer = nn.Dropout(0.5).eval()
    x = gradcore.tensor(np.arange(4, dtype=dtype), requires_grad=True)
    np.testing.assert_array_equal(layer(x), x)
    assert layer.backward(np.ones(4, dtype)).tolist() == [1.0] * 4
    assert layer.counter.item() == 0


@pytest.mark.parametrize(("p", "factor"), [(0.0, 1.0), (1.0, 0.0)])
def test_never_and_always(p: float, factor: float, dtype: Any) -> None:
    layer = nn.Dropout(p)
    x = np.arange(1, 5, dtype=dtype)
    np.testing.assert_array_equal(layer(x), x * factor)
    np.testing.assert_array_equal(layer.backward(x), x * factor)


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_small_inputs(shape: tuple[int, ...]) -> None:
    layer = nn.Dropout(0.5)
    assert layer(np.ones(shape, np.float32)).shape == shape
    assert layer.backward(np.ones(shape, np.float32)).shape == shape


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), "half", None])
def test_probability_is_checked(p: Any) -> None:
    with pytest.raises(ArgumentError, match="Dropout: p must"):
        nn.Dropout(p)


def test_the_counter_is_no_part_of_the_state_dict() -> None:
    """PyTorch's Dropout has no state; a copy keeps this, and goes on with the same masks."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    twin = copy.deepcopy(net)
    assert list(net.state_dict()) == list(twin.state_dict()) == ["0.weight", "0.bias"]
    x = np.ones((8, 2), np.float32)
    np.testing.assert_array_equal(net(x), twin(x))


def test_repr() -> None:
    assert repr(nn.Dropout(0.25)) == "Dropout(0.25)"
