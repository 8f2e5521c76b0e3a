"""ReLU, its gradient and the sum over all axes but the channels, through RefBackend."""

from __future__ import annotations

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradref.backend import RefBackend

from .oracle import assert_same, data
from .shapes import INF, NAN

BACKEND = RefBackend()
EDGES = np.array([-INF, -1, -1e-45, -0.0, 0, 1e-45, 1, INF, NAN], np.float32)
SHAPES = [(), (0,), (1,), (17,), (3, 5, 7), (2, 0, 3), (64, 16, 28, 28)]


@pytest.mark.parametrize("shape", SHAPES)
def test_relu(shape: tuple[int, ...]) -> None:
    x, grad = data(shape, 0), data(shape, 1)
    y = BACKEND.relu(x)
    np.testing.assert_array_equal(y, np.where(x > 0, x, 0))
    dx = BACKEND.relu_backward(grad, y)
    np.testing.assert_array_equal(dx, np.where(x > 0, grad, 0))
    assert y.shape == dx.shape == shape
    assert y.dtype == dx.dtype == np.float32


def test_edges() -> None:
    y = BACKEND.relu(EDGES)
    np.testing.assert_array_equal(y, [0, 0, 0, 0, 0, np.float32(1e-45), 1, INF, NAN])
    grad = np.full(EDGES.shape, INF, np.float32)
    np.testing.assert_array_equal(BACKEND.relu_backward(grad, y), [0, 0, 0, 0, 0, INF, INF, INF, INF])


def test_any_array() -> None:
    """Read-only, strided, transposed, float64, integers: as NumpyBackend."""
    numpy = NumpyBackend()
    x = data((6, 8), 0)
    x.flags.writeable = False
    for a in (x, x[:, ::2], x.T, x[::-1], x.astype(float), np.asfortranarray(x), np.broadcast_to(x[0], (3, 8))):
        y = BACKEND.relu(a)
        assert y.dtype == a.dtype
        np.testing.assert_array_equal(y, numpy.relu(a))
        np.testing.assert_array_equal(BACKEND.relu_backward(a, y), numpy.relu_backward(a, y))
    assert BACKEND.relu(np.array([-3, 3])).tolist() == [0, 3]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", [(64, 16, 28, 28), (2, 3, 1, 1), (0, 3, 4, 4), (1, 5, 33, 65), (2, 0, 3, 3)])
def test_channel_sum(shape: tuple[int, ...], keepdims: bool) -> None:
    x = data(shape, 0)
    assert_same(BACKEND.sum(x, (0, 2, 3), keepdims), x.sum((0, 2, 3), dtype=float, keepdims=keepdims), 250)
    turned = x.transpose(1, 0, 3, 2)
    assert_same(BACKEND.sum(turned, (0, 2, 3), keepdims), turned.sum((0, 2, 3), dtype=float, keepdims=keepdims), 250)


def test_channel_sum_is_accurate_and_keeps_nan() -> None:
    x = np.full((1000, 2, 40, 40), 0.1, np.float32)
    assert_same(BACKEND.sum(x, (0, 2, 3), False), np.full(2, 1.6e6 * float(np.float32(0.1))), 0)
    x[3, 0, 1, 1], x[4, 1, 0, 0] = NAN, -INF
    np.testing.assert_array_equal(BACKEND.sum(x, (0, 2, 3), False), [NAN, -INF])


def test_other_sums_are_numpys() -> None:
    x = data((3, 4, 5, 6), 0)
    for axes in ((0,), (1, 2, 3), None, (0, 1, 2, 3)):
        assert_same(BACKEND.sum(x, axes, False), np.asarray(x.sum(axes, dtype=float)), 2)
    assert BACKEND.sum(np.ones((2, 3, 4, 4), np.int64), (0, 2, 3), False).tolist() == [32] * 3
    assert BACKEND.sum(np.full((2, 3, 4, 4), 1e300), (0, 2, 3), False)[0] == 3.2e301


def test_repeats_bit_for_bit() -> None:
    x = data((5, 3, 30, 31), 0)
    first = BACKEND.sum(x, (0, 2, 3), False).tobytes()
    assert all(BACKEND.sum(x, (0, 2, 3), False).tobytes() == first for _ in range(3))
