"""The max pool kernels, fast and reference, against plain loops; ties, NaN and padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradref import _kernels

from . import kernels, oracle
from .oracle import Pool, assert_same, data
from .shapes import INF, NAN, POOLS, SPOILT, pools

both = pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])


def check(s: Pool, x: np.ndarray, reference: bool) -> None:
    y, indices = kernels.max_pool2d(s, x, reference)
    expected = oracle.max_pool2d(s, x)
    np.testing.assert_array_equal(y, expected[0])
    np.testing.assert_array_equal(indices, expected[1])
    grad = data(s.y_shape, 1)
    got = kernels.max_pool2d_backward(s, grad, indices, reference)
    assert_same(got, oracle.max_pool2d_backward(s, grad, indices))


@both
@pytest.mark.parametrize("name", POOLS)
def test_named_shapes(name: str, reference: bool) -> None:
    s = POOLS[name]
    check(s, data(s.x_shape, 0), reference)
    check(s, np.zeros(s.x_shape, np.float32), reference)
    check(s, np.full(s.x_shape, -INF, np.float32), reference)
    check(s, np.full(s.x_shape, NAN, np.float32), reference)


@settings(max_examples=150, deadline=None)
@given(s=pools(dilated=True), spoil=st.sampled_from(SPOILT), coarse=st.booleans(), reference=st.booleans())
def test_any_shape(s: Pool, spoil: tuple[float, ...], coarse: bool, reference: bool) -> None:
    x = data(s.x_shape, 0, spoil * 5)
    check(s, np.round(x) if coarse else x, reference)  # rounded: many ties


@both
@pytest.mark.parametrize("columns", [1, 20])
def test_nan_wins_and_the_last_of_them(columns: int, reference: bool) -> None:
    """Four kinds of windows below each other, in every lane of a vector."""
    s = Pool((1, 1), (8, 2 * columns), (4, columns), (2, 2), (2, 2))
    windows = [[1, 2, 3, NAN], [NAN, 2, 3, 4], [NAN] * 4, [-INF, NAN, NAN, INF]]
    rows = [row for w in windows for row in (w[:2] * columns, w[2:] * columns)]
    x = np.array(rows, np.float32).reshape(s.x_shape)
    y, indices = kernels.max_pool2d(s, x, reference)
    assert np.isnan(y).all()
    width = 2 * columns
    expected = [
        [i * 2 * width + 2 * j + at for j in range(columns)] for i, at in enumerate((width + 1, 0, width + 1, width))
    ]
    np.testing.assert_array_equal(indices[0, 0], expected)


@both
def test_nan_in_the_centre_reaches_four_windows(reference: bool) -> None:
    s = Pool((1, 1), (3, 3), (2, 2), (2, 2), (1, 1))
    x = np.arange(1, 10, dtype=np.float32).reshape(s.x_shape)
    x[0, 0, 1, 1] = NAN
    y, indices = kernels.max_pool2d(s, x, reference)
    assert np.isnan(y).all()
    dx = kernels.max_pool2d_backward(s, np.ones(s.y_shape, np.float32), indices, reference)
    assert dx.ravel().tolist() == [0, 0, 0, 0, 4, 0, 0, 0, 0]


@both
def test_ties_and_padding(reference: bool) -> None:
    s = Pool((1, 1), (2, 2), (1, 1), (2, 2), (2, 2))
    assert kernels.max_pool2d(s, np.array([1, 2, 2, 2], np.float32).reshape(s.x_shape), reference)[1].item() == 1
    s = Pool((1, 1), (2, 2), (2, 2), (2, 2), (2, 2), (1, 1))
    y, indices = kernels.max_pool2d(s, -np.ones(s.x_shape, np.float32), reference)
    assert (y.ravel().tolist(), indices.ravel().tolist()) == ([-1] * 4, [0, 1, 2, 3])
    s = Pool((1, 1), (3, 3), (2, 2), (3, 3), (2, 2), (1, 1))
    x = -np.arange(1, 10, dtype=np.float32).reshape(s.x_shape)
    assert kernels.max_pool2d(s, x, reference)[0].ravel().tolist() == [-1, -2, -4, -5]


@both
@pytest.mark.parametrize("name", ["2x2", "overlapping"])
@pytest.mark.parametrize("wrong", [-1, 10**6])
def test_an_index_outside_the_plane_is_an_error(name: str, wrong: int, reference: bool) -> None:
    s = POOLS[name]
    indices = np.full(s.y_shape, 0, np.int32)
    indices[-1, -1, -1, -1] = wrong
    with pytest.raises(ValueError, match="max_pool2d_backward: an index lies outside its plane"):
        kernels.max_pool2d_backward(s, data(s.y_shape, 1), indices, reference)


@both
def test_a_window_outside_the_input_is_an_error(reference: bool) -> None:
    x, y, indices = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 1, 3, 3), "i4")
    with pytest.raises(ValueError, match="max_pool2d: a window lies wholly outside the input"):
        _kernels.max_pool2d(y, indices, x, (2, 2), (2, 2), (0, 0), (1, 1), reference)


@pytest.mark.parametrize("name", POOLS)
def test_repeats_bit_for_bit(name: str) -> None:
    s = POOLS[name]
    x, grad = data(s.x_shape, 0), data(s.y_shape, 1)
    y, indices = kernels.max_pool2d(s, x, False)
    first = kernels.max_pool2d_backward(s, grad, indices, False).tobytes()
    for _ in range(3):
        again = kernels.max_pool2d(s, x, False)
        assert again[0].tobytes() == y.tobytes()
        assert again[1].tobytes() == indices.tobytes()
        assert kernels.max_pool2d_backward(s, grad, indices, False).tobytes() == first
