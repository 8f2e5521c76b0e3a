"""The numpy backend's own care: types, views, exact sums, silence, indices. What all backends share: the suite."""

import itertools

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ArgumentError, GraphError

back = NumpyBackend()


def test_asarray_owns_a_contiguous_copy() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    for array in (host, host.T, host[::-1], np.broadcast_to(host[0], (4, 3))):
        mine = back.asarray(array)
        assert mine.flags.c_contiguous
        assert mine.flags.writeable
        assert not np.shares_memory(mine, host)
        assert mine.tolist() == array.tolist()


def test_memory() -> None:
    assert back.empty((2, 3), np.int32).shape == (2, 3)
    assert back.full((2,), 1.5, np.float32).tolist() == [1.5, 1.5]
    x = back.asarray(np.zeros(3, np.float32))
    back.copy_(x, np.ones(3, np.float32))
    assert x.tolist() == [1, 1, 1]
    assert np.shares_memory(back.from_dlpack(x), x)
    back.synchronize()
    with pytest.raises(GraphError, match=r"copy_: a broadcast view of shape \(2, 3\)"):
        back.copy_(back.broadcast_to(x, (2, 3)), x)


@pytest.mark.filterwarnings("error")
def test_astype() -> None:
    x = np.array([1.9, -1.9, 0.0], np.float32)
    assert back.astype(x, np.int64).tolist() == [1, -1, 0]
    assert back.astype(x, np.bool_).tolist() == [True, True, False]
    assert back.astype(np.float32(2.5), np.float64).tolist() == 2.5
    assert not np.shares_memory(back.astype(x, np.float32), x)
    back.astype(np.array([np.nan, np.inf, 1e300]), np.int32)
    assert back.astype(np.array([1e300]), np.float32).tolist() == [np.inf]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_scalar_takes_the_arrays_type(kind: str) -> None:
    """Also beside an array without axes, for which older NumPy would choose float64."""
    for x in (np.ones((2,), kind), np.ones((), kind)):
        for name in ("add", "subtract", "multiply", "divide", "power", "maximum"):
            assert getattr(back, name)(x, 0.1).dtype == kind, name
        for name in ("subtract", "divide", "power"):
            assert getattr(back, name)(0.1, x).dtype == kind, name
        assert back.where(back.greater(x, 0.5), x, 0.0).dtype == kind
        assert back.where(back.greater(x, 0.5), 0.0, x).dtype == kind


@pytest.mark.filterwarnings("error")
def test_silence() -> None:
    """What passes through infinity or NaN in correct programs does not warn."""
    x = np.array([0.0, -1.0, np.inf, -np.inf, np.nan, 1e38], np.float32)
    for y in (
        back.divide(x, 0.0),
        back.divide(1.0, x),
        back.power(x, -1.5),
        back.exp(x),
        back.log(x),
        back.log1p(x),
        back.sqrt(x),
    ):
        assert y.dtype == np.float32
    back.log_softmax(np.full((1, 3), -np.inf, np.float32), 1)
    back.matmul(x[None], x[:, None], False, False)


# sums


@pytest.mark.parametrize(
    "shape",
    [(1_000_000, 2), (2, 1_000_000), (1000, 2, 500), (100, 100, 100, 2), (60, 2, 60, 300), (16, 16, 16, 16, 16)],
    ids=str,
)
def test_sums_over_all_axes_and_orders(shape: tuple) -> None:
    """Case 4: whichever axes, however they lie; against float64."""
    values = np.random.default_rng(0).uniform(0.05, 0.15, shape).astype(np.float32)
    wide = values.astype(np.float64)
    axes = [a for n in range(1, len(shape) + 1) for a in itertools.combinations(range(len(shape)), n)]
    for order in (tuple(range(len(shape))), tuple(reversed(range(len(shape))))):
        x, exact = values.transpose(order), wide.transpose(order)
        for axis in axes[:: max(1, len(axes) // 8)]:
            np.testing.assert_allclose(back.sum(x, axis, False), exact.sum(axis), rtol=2e-5)


def test_sum_keeps_axes_and_types() -> None:
    x = np.ones((300, 5, 300), np.float32)
    assert back.sum(x, (0, 2), True).shape == (1, 5, 1)
    assert back.sum(x, (), False).shape == x.shape
    assert back.sum(x, None, False).shape == ()
    for kind in ("float32", "float64"):
        assert back.sum(x.astype(kind), (0,), False).dtype == kind
    assert back.sum(np.zeros((0, 300, 300), np.float32), (0,), False).any() == np.False_
    before = x.copy()
    back.sum(x, (0, 1), False)
    np.testing.assert_array_equal(x, before)


# indices


def test_take_checks_what_numpy_would_take_from_the_end() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for axis, length in ((0, 2), (1, 3)):
        with pytest.raises(ArgumentError, match=rf"take: index {length} is not one of 0..{length - 1}"):
            back.take(x, np.array([0, length]), axis)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (0,), (2, 0)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_and_its_backward(shape: tuple, axis: int) -> None:
    """Case 34, for indices of any shape on any axis."""
    rng = np.random.default_rng(1)
    x, indices = rng.normal(size=(3, 4, 5)).astype(np.float32), rng.integers(0, 3, shape)
    y = back.take(x, indices, axis)
    assert y.shape == (*x.shape[:axis], *shape, *x.shape[axis + 1 :])
    grad = rng.normal(size=y.shape).astype(np.float32)
    expected = np.zeros(x.shape)
    for at in np.ndindex(*shape):
        here = (slice(None),) * axis
        expected[(*here, indices[at])] += grad[(*here, *at)]
    found = back.take_backward(grad, indices, axis, x.shape[axis])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_strided_slices_down_to_the_first() -> None:
    """A negative step may have stop -1, which NumPy would read as 'before the last'."""
    x = np.arange(12.0).reshape(3, 4)
    y = back.strided_slice(x, (2, 3), (-1, 0), (-1, -2))
    np.testing.assert_array_equal(y, x[::-1, 3:0:-2])
    found = back.strided_slice_backward(np.ones(y.shape), x.shape, (2, 3), (-1, 0), (-1, -2))
    assert found.tolist() == [[0, 1, 0, 1]] * 3


def test_cross_entropy_checks_labels() -> None:
    """Case 3: before NumPy would take -1 from the end."""
    logits = np.zeros((2, 3), np.float32)
    for label in (3, -1):
        with pytest.raises(ArgumentError, match=f"cross_entropy: label {label} is not one of 0..2"):
            back.softmax_cross_entropy(logits, np.array([0, label]), -100, "mean")
