"""conv2d and its two backwards; skipped without Conv2dOps. Cases: ../cases/conv.py. Here: values worked out by hand."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.protocol import Conv2dOps
from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation, requires

pytestmark = requires(Conv2dOps)

OPERATIONS = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]
PLAIN = ((1, 1), (0, 0), (1, 1), 1)
ONE_TO_FOUR = np.arange(1.0, 5.0).reshape(1, 1, 2, 2)
# name: x, weight, options, y, gradient of x, gradient of weight (upstream all ones)
BY_HAND: dict[str, tuple[Any, ...]] = {
    "no_flip": (ONE_TO_FOUR, [[[[0, 1], [0, 0]]]], PLAIN, [2], [0, 1, 0, 0], [1, 2, 3, 4]),
    "whole_input": (
        np.arange(9).reshape(1, 1, 3, 3),
        np.ones((1, 1, 3, 3)),
        PLAIN,
        [36],
        [1] * 9,
        list(range(9)),
    ),
    "one_by_one": (
        np.arange(8).reshape(1, 2, 2, 2),
        [[[[10]], [[1]]]],
        PLAIN,
        [4, 15, 26, 37],
        [10] * 4 + [1] * 4,
        [6, 22],
    ),
    "groups_stride_padding": (
        np.arange(18).reshape(1, 2, 3, 3),
        np.arange(1, 9).reshape(2, 1, 2, 2),
        ((2, 2), (1, 1), (1, 1), 2),
        [0, 11, 30, 67, 72, 158, 192, 397],
        [4, 3, 4, 2, 1, 2, 4, 3, 4, 8, 7, 8, 6, 5, 6, 8, 7, 8],
        [4, 8, 8, 16, 13, 26, 26, 52],
    ),
}


@each_case("conv")
def test_conv(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("which", [pytest.param(name, marks=operation(name)) for name in OPERATIONS])
def test_by_hand(backend: Any, which: str, name: str) -> None:
    x, weight, options, *wanted = BY_HAND[name]
    x, weight = (backend.asarray(np.array(a, np.float32)) for a in (x, weight))
    grad = backend.full((1, weight.shape[0], *out_size(x, weight, options)), 1.0, np.float32)
    if which == "conv2d":
        found = backend.conv2d(x, weight, None, *options)
    elif which == "conv2d_backward_input":
        found = backend.conv2d_backward_input(grad, weight, x.shape, *options)
    else:
        found = backend.conv2d_backward_weight(grad, x, weight.shape, *options)
    assert_close(backend.to_numpy(found).ravel(), np.array(wanted[OPERATIONS.index(which)], np.float32))


def out_size(x: Any, weight: Any, options: Any) -> tuple[int, ...]:
    stride, padding, _, _ = options
    return tuple((x.shape[i] + 2 * padding[i - 2] - weight.shape[i]) // stride[i - 2] + 1 for i in (2, 3))


@operation("conv2d")
def test_many_positions(backend: Any) -> None:
    """65,536 outputs of one channel: corners 4, edges 6, inside 9."""
    x, weight = backend.full((1, 1, 256, 256), 1.0, np.float32), backend.full((1, 1, 3, 3), 1.0, np.float32)
    y = backend.to_numpy(backend.conv2d(x, weight, None, (1, 1), (1, 1), (1, 1), 1))
    assert (y[0, 0, 0, 0], y[0, 0, 0, 7], y[0, 0, 7, 7], y.sum()) == (4, 6, 9, 586756)


@operation("conv2d_backward_weight")
def test_no_image_gives_a_gradient_of_zeros(backend: Any) -> None:
    grad, x = (backend.asarray(np.zeros(shape, np.float32)) for shape in [(0, 4, 6, 6), (0, 3, 8, 8)])
    found = backend.to_numpy(backend.conv2d_backward_weight(grad, x, (4, 3, 3, 3), *PLAIN))
    assert_close(found, np.zeros((4, 3, 3, 3), np.float32), rtol=0, atol=0)


@operation("conv2d")
def test_an_image_does_not_depend_on_its_batch(backend: Any) -> None:
    rng = np.random.default_rng(0)
    x, weight = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in [(5, 3, 8, 8), (4, 3, 3, 3)])
    together, alone = (
        backend.to_numpy(backend.conv2d(backend.asarray(part), backend.asarray(weight), None, *PLAIN))
        for part in (x, x[2:3])
    )
    assert_close(together[2:3], alone)
