"""The average pool kernels, fast and reference, against plain loops; what they divide by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import kernels, oracle
from .oracle import Pool, assert_same, data
from .shapes import POOLS, SPOILT, pools

both = pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
padding_counts = pytest.mark.parametrize("count", [False, True], ids=["input only", "padding counts"])


def check(s: Pool, count: bool, reference: bool, spoil: tuple[float, ...] = ()) -> None:
    x, grad = data(s.x_shape, 0, spoil), data(s.y_shape, 1, spoil)
    assert_same(kernels.avg_pool2d(s, x, count, reference), oracle.avg_pool2d(s, x, count))
    assert_same(kernels.avg_pool2d_backward(s, grad, count, reference), oracle.avg_pool2d_backward(s, grad, count))


@both
@padding_counts
@pytest.mark.parametrize("name", POOLS)
def test_named_shapes(name: str, count: bool, reference: bool) -> None:
    check(POOLS[name], count, reference)


@settings(max_examples=150, deadline=None)
@given(s=pools(dilated=False), spoil=st.sampled_from(SPOILT), count=st.booleans(), reference=st.booleans())
def test_any_shape(s: Pool, spoil: tuple[float, ...], count: bool, reference: bool) -> None:
    check(s, count, reference, spoil)


@both
def test_overhang_never_counts(reference: bool) -> None:
    s = Pool((1, 1), (1, 5), (1, 3), (1, 2), (1, 2))
    x = np.arange(1, 6, dtype=np.float32).reshape(s.x_shape)
    assert kernels.avg_pool2d(s, x, True, reference).ravel().tolist() == [1.5, 3.5, 5]
    dx = kernels.avg_pool2d_backward(s, np.ones(s.y_shape, np.float32), True, reference)
    assert dx.ravel().tolist() == [0.5, 0.5, 0.5, 0.5, 1]
    s = Pool((1, 1), (7, 7), (3, 3), (2, 2), (3, 3))
    x = np.arange(49, dtype=np.float32).reshape(s.x_shape)
    assert kernels.avg_pool2d(s, x, True, reference).ravel().tolist() == [4, 7, 9.5, 25, 28, 30.5, 42.5, 45.5, 48]


@both
def test_padding_counts_or_not(reference: bool) -> None:
    s = Pool((1, 1), (2, 2), (2, 2), (3, 3), (1, 1), (1, 1))
    x = np.arange(1, 5, dtype=np.float32).reshape(s.x_shape)
    one = np.ones(s.y_shape, np.float32)
    for count, mean, slope in ((True, 10 / 9, 4 / 9), (False, 2.5, 1.0)):
        np.testing.assert_allclose(kernels.avg_pool2d(s, x, count, reference), mean, rtol=1e-6)
        np.testing.assert_allclose(kernels.avg_pool2d_backward(s, one, count, reference), slope, rtol=1e-6)


@padding_counts
@pytest.mark.parametrize("name", POOLS)
def test_repeats_bit_for_bit(name: str, count: bool) -> None:
    s = POOLS[name]
    x, grad = data(s.x_shape, 0), data(s.y_shape, 1)
    y, dx = kernels.avg_pool2d(s, x, count, False), kernels.avg_pool2d_backward(s, grad, count, False)
    for _ in range(3):
        assert kernels.avg_pool2d(s, x, count, False).tobytes() == y.tobytes()
        assert kernels.avg_pool2d_backward(s, grad, count, False).tobytes() == dx.tobytes()
