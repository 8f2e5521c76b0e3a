"""Max and average pooling; skipped without Pool2dOps. Cases: ../cases/pool.py. Here: values worked out by hand."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.protocol import Pool2dOps
from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation, requires

pytestmark = requires(Pool2dOps)

NAN = np.nan
NINE = np.arange(1.0, 10.0).reshape(3, 3)
HOLE = np.where(NINE == 5, NAN, NINE)
PEAK = np.where(np.arange(25).reshape(5, 5) == 12, 9.0, 1.0)
# name: x, kernel, stride, padding, out_size, y, gradient of x (upstream all ones)
MAXIMA: dict[str, tuple[Any, ...]] = {
    "nan_last": ([[1, 2], [3, NAN]], (2, 2), (2, 2), (0, 0), (1, 1), [NAN], [0, 0, 0, 1]),
    "nan_first": ([[NAN, 2], [3, 4]], (2, 2), (2, 2), (0, 0), (1, 1), [NAN], [1, 0, 0, 0]),
    "all_nan": ([[NAN, NAN], [NAN, NAN]], (2, 2), (2, 2), (0, 0), (1, 1), [NAN], [0, 0, 0, 1]),
    "nan_centre": (HOLE, (2, 2), (1, 1), (0, 0), (2, 2), [NAN] * 4, [0, 0, 0, 0, 4, 0, 0, 0, 0]),
    "tie": ([[1, 2], [2, 2]], (2, 2), (2, 2), (0, 0), (1, 1), [2], [0, 1, 0, 0]),
    "zeros": ([[0, 0], [0, 0]], (2, 2), (2, 2), (0, 0), (1, 1), [0], [1, 0, 0, 0]),
    "zeros_overlap": (np.zeros((3, 3)), (2, 2), (1, 1), (0, 0), (2, 2), [0] * 4, [1, 1, 0, 1, 1, 0, 0, 0, 0]),
    "padding_2x2": (-np.ones((2, 2)), (2, 2), (2, 2), (1, 1), (2, 2), [-1] * 4, [1] * 4),
    "padding_3x3": (-NINE, (3, 3), (2, 2), (1, 1), (2, 2), [-1, -2, -4, -5], [1, 1, 0, 1, 1, 0, 0, 0, 0]),
    "overlap": (PEAK, (3, 3), (1, 1), (0, 0), (3, 3), [9] * 9, [0] * 12 + [9] + [0] * 12),
    "overlap_row": ([[5, 3, 1, 2, 5]], (1, 2), (1, 1), (0, 0), (1, 4), [5, 3, 2, 5], [1, 1, 0, 1, 1]),
    "corners": (NINE, (2, 2), (2, 2), (1, 1), (2, 2), [1, 3, 7, 9], [1, 0, 1, 0, 0, 0, 1, 0, 1]),
}
# name: x, kernel, stride, padding, out_size, count_include_pad, y, gradient of x
AVERAGES: dict[str, tuple[Any, ...]] = {
    "ceil_row": ([[1, 2, 3, 4, 5]], (1, 2), (1, 2), (0, 0), (1, 3), True, [1.5, 3.5, 5], [0.5, 0.5, 0.5, 0.5, 1]),
    "counted": ([[1, 2], [3, 4]], (3, 3), (1, 1), (1, 1), (2, 2), True, [10 / 9] * 4, [4 / 9] * 4),
    "not_counted": ([[1, 2], [3, 4]], (3, 3), (1, 1), (1, 1), (2, 2), False, [2.5] * 4, [1] * 4),
}


@each_case("pool")
def test_pool(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


def image(backend: Any, x: Any) -> Any:
    return backend.asarray(np.array(x, np.float32)[None, None])


@operation("max_pool2d")
@pytest.mark.parametrize("name", MAXIMA)
def test_max_by_hand(backend: Any, name: str) -> None:
    x, *window, size, wanted, _ = MAXIMA[name]
    y, indices = backend.max_pool2d(image(backend, x), *window, (1, 1), size)
    assert_close(backend.to_numpy(y).ravel(), np.array(wanted, np.float32), rtol=0, atol=0)
    assert indices.dtype == np.int32


@operation("max_pool2d_backward")
@pytest.mark.parametrize("name", MAXIMA)
def test_max_backward_by_hand(backend: Any, name: str) -> None:
    x, *window, size, _, wanted = MAXIMA[name]
    array = image(backend, x)
    _, indices = backend.max_pool2d(array, *window, (1, 1), size)
    grad = backend.full((1, 1, *size), 1.0, np.float32)
    found = backend.max_pool2d_backward(grad, indices, array.shape, *window, (1, 1))
    assert_close(backend.to_numpy(found).ravel(), np.array(wanted, np.float32))


@operation("avg_pool2d")
@pytest.mark.parametrize("name", AVERAGES)
def test_average_by_hand(backend: Any, name: str) -> None:
    x, *window, size, include, wanted, _ = AVERAGES[name]
    y = backend.avg_pool2d(image(backend, x), *window, size, include)
    assert_close(backend.to_numpy(y).ravel(), np.array(wanted, np.float32))


@operation("avg_pool2d_backward")
@pytest.mark.parametrize("name", AVERAGES)
def test_average_backward_by_hand(backend: Any, name: str) -> None:
    x, *window, size, include, _, wanted = AVERAGES[name]
    grad = backend.full((1, 1, *size), 1.0, np.float32)
    found = backend.avg_pool2d_backward(grad, image(backend, x).shape, *window, include)
    assert_close(backend.to_numpy(found).ravel(), np.array(wanted, np.float32))


@operation("max_pool2d")
@pytest.mark.parametrize("channels", [1, 5, 33])
def test_channels_do_not_disturb_each_other(backend: Any, channels: int) -> None:
    """A NaN may be lost by the lane of a vector instruction that it falls into."""
    plane = np.where(np.random.default_rng(0).random((9, 11)) < 0.1, NAN, 1.0).astype(np.float32)
    window = (2, 2), (2, 2), (0, 0), (1, 1), (4, 5)
    alone, where = backend.max_pool2d(image(backend, plane), *window)
    many = backend.asarray(np.broadcast_to(plane, (2, channels, 9, 11)))
    y, indices = backend.max_pool2d(many, *window)
    for found, one in ((y, alone), (indices, where)):
        wanted = np.broadcast_to(backend.to_numpy(one), (2, channels, 4, 5))
        assert_close(backend.to_numpy(found), wanted, rtol=0, atol=0)
