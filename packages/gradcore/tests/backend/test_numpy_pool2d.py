"""NumPy's pooling against plain loops, written apart: values, indices, gradients, divisors."""

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ShapeError
from gradcore.ops.pool import check_window
from gradcore.ops.window import output_size

back = NumpyBackend()

# size, kernel, stride, padding, dilation, ceil_mode
SETTINGS = [
    ((4, 4), 2, 2, 0, 1, False),
    ((5, 6), 3, 1, 1, 1, False),
    ((5, 5), 2, 3, 0, 1, True),
    ((6, 7), (2, 3), (1, 2), (1, 0), 1, True),
    ((7, 7), 3, 2, 1, 2, False),
    ((8, 10), 3, 4, 0, 1, True),
    ((3, 3), 3, 3, 1, 1, False),
    ((1, 1), 1, 1, 0, 1, False),
    ((9, 5), (4, 1), 1, (2, 0), (2, 1), False),
]


def window(setting: tuple) -> tuple:
    """(kernel, stride, padding, dilation, out_size) in their one form."""
    size, kernel, stride, padding, dilation, ceil = setting
    options = check_window("op", kernel, stride, padding, dilation)
    return (*options, output_size("op", size, *options, ceil))


def taps(
    size: tuple, at: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> list[tuple[int, int]]:
    """Positions that the window of one output sees inside the input, in row-major order."""
    start = [at[d] * stride[d] - padding[d] for d in range(2)]
    every = [
        (start[0] + p * dilation[0], start[1] + q * dilation[1]) for p in range(kernel[0]) for q in range(kernel[1])
    ]
    return [(i, j) for i, j in every if 0 <= i < size[0] and 0 <= j < size[1]]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("values", ["ties", "NaN and infinities"])
def test_max_against_plain_loops(setting: tuple, kind: str, values: str) -> None:
    """Cases 10, 11, 13, 14: the last NaN, else the first maximum; padding never wins."""
    *options, out = window(setting)
    rng = np.random.default_rng(0)
    choices = [-2, -1, 0] if values == "ties" else [-np.inf, np.nan, 1.0, np.inf, -1.0, 2.0, 3.0]
    x = rng.choice(choices, (2, 3, *setting[0])).astype(kind)
    y, indices = back.max_pool2d(x, *options, out)
    assert (y.dtype, indices.dtype, y.shape, indices.shape) == (kind, np.int32, (2, 3, *out), (2, 3, *out))
    grad = rng.normal(size=y.shape).astype(kind)
    expected = np.zeros(x.shape)
    for n, c, i, j in np.ndindex(*y.shape):
        seen = [(x[n, c, p, q], (p, q)) for p, q in taps(setting[0], (i, j), *options)]
        bad = [place for value, place in seen if np.isnan(value)]
        best = bad[-1] if bad else next(place for value, place in seen if value == max(v for v, _ in seen))
        assert indices[n, c, i, j] == best[0] * setting[0][1] + best[1]
        np.testing.assert_equal(y[n, c, i, j], x[n, c, best[0], best[1]])
        expected[n, c, best[0], best[1]] += grad[n, c, i, j]
    found = back.max_pool2d_backward(grad, indices, x.shape, *options)
    assert found.dtype == kind
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s[4] == 1], ids=str)
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_average_against_plain_loops(setting: tuple, include: bool, kind: str) -> None:
    """Case 15: the padding counts or not, the overhang of ceil_mode never."""
    kernel, stride, padding, dilation, out = window(setting)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, *setting[0])).astype(kind)
    y = back.avg_pool2d(x, kernel, stride, padding, out, include)
    grad = rng.normal(size=y.shape).astype(kind)
    exact, expected = np.zeros(y.shape), np.zeros(x.shape)
    for n, c, i, j in np.ndindex(*y.shape):
        places = taps(setting[0], (i, j), kernel, stride, padding, dilation)
        extent = [
            min(a * s - p + k, m + p) - (a * s - p)
            for a, s, p, k, m in zip((i, j), stride, padding, kernel, setting[0], strict=True)
        ]
        divisor = extent[0] * extent[1] if include else len(places)
        exact[n, c, i, j] = sum(float(x[n, c, p, q]) for p, q in places) / divisor
        for p, q in places:
            expected[n, c, p, q] += grad[n, c, i, j] / divisor
    found = back.avg_pool2d_backward(grad, x.shape, kernel, stride, padding, include)
    assert (y.dtype, found.dtype) == (kind, kind)
    np.testing.assert_allclose(y, exact, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [16, 17, 40])
def test_the_average_of_many(kernel: int) -> None:
    """Case 4's kind, on both sides of the border where float64 helps."""
    x = np.random.default_rng(0).uniform(0, 1, (1, 2, 80, 80)).astype(np.float32)
    k = (kernel, kernel)
    y = back.avg_pool2d(x, k, k, (0, 0), (80 // kernel, 80 // kernel), True)
    first = x[:, :, :kernel, :kernel].astype(np.float64).mean((2, 3))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y[:, :, 0, 0], first, rtol=2e-6)


def test_empty_batches() -> None:
    """Case 24."""
    x = np.zeros((0, 2, 6, 6), np.float32)
    for stride in ((2, 2), (1, 1)):  # apart, and overlapping
        out = output_size("op", (6, 6), (2, 2), stride, (0, 0), (1, 1))
        y, indices = back.max_pool2d(x, (2, 2), stride, (0, 0), (1, 1), out)
        assert y.shape == (0, 2, *out)
        assert back.max_pool2d_backward(y, indices, x.shape, (2, 2), stride, (0, 0), (1, 1)).shape == x.shape
        y = back.avg_pool2d(x, (2, 2), stride, (0, 0), out, True)
        assert back.avg_pool2d_backward(y, x.shape, (2, 2), stride, (0, 0), True).shape == x.shape


def test_sizes_are_checked_before() -> None:
    """Case 17: a backend never sees a window larger than the padded input."""
    with pytest.raises(ShapeError):
        window(((2, 2), 3, 1, 0, 1, False))
