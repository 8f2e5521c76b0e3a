"""Pooling on gradcore's table of cases, the kernels for disjoint 2x2 windows beside the general ones, bit for bit."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.testing.cases import pool
from gradcore.testing.check import check_case

pytestmark = pytest.mark.gpu

HALVES = ((2, 2), (2, 2), (0, 0), (1, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", pool.CASES, ids=lambda case: case.id)
def test_case(backend: Any, case: Any, dtype: str) -> None:
    check_case(backend, case, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(28, 28), (14, 14), (2, 2), (6, 10), (7, 9), (8, 9), (9, 8)], ids=str)
def test_two_by_two(backend: Any, size: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (3, 5, *size)).astype(dtype)  # many ties
    x[rng.random(x.shape) < 0.05] = np.nan
    out = size[0] // 2, size[1] // 2
    y, indices = backend.max_pool2d(backend.asarray(x), *HALVES, out)
    want_y, want_indices = NumpyBackend().max_pool2d(x, *HALVES, out)
    np.testing.assert_array_equal(backend.to_numpy(y), want_y)
    np.testing.assert_array_equal(backend.to_numpy(indices), want_indices)
    grad = rng.uniform(-1, 1, want_y.shape).astype(dtype)
    dx = backend.max_pool2d_backward(backend.asarray(grad), indices, x.shape, *HALVES)
    np.testing.assert_array_equal(
        backend.to_numpy(dx), NumpyBackend().max_pool2d_backward(grad, want_indices, x.shape, *HALVES)
    )


def test_overlapping_gradients_repeat_bit_for_bit(backend: Any) -> None:
    rng = np.random.default_rng(0)
    x = backend.asarray(rng.integers(0, 3, (4, 3, 30, 30)).astype(np.float32))
    window = (3, 3), (1, 1), (1, 1), (1, 1)
    _, indices = backend.max_pool2d(x, *window, (30, 30))
    grad = backend.asarray(rng.uniform(-1, 1, (4, 3, 30, 30)).astype(np.float32))
    runs = {
        np.array(backend.to_numpy(backend.max_pool2d_backward(grad, indices, x.shape, *window))).tobytes()
        for _ in range(10)
    }
    assert len(runs) == 1
