"""The compositions of fused.py: their values are in gradcore.testing; here what a window's first entry is."""

import itertools

import numpy as np
import pytest

from gradcore.backend import BaseBackend
from gradcore.backend.fused import ConvPoolOps, FusedOperations, _first_entries
from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import NotSupported

WINDOWS = [
    ((2, 2), (2, 2), (0, 0), (1, 1)),
    ((3, 3), (2, 2), (1, 1), (1, 1)),
    ((3, 2), (1, 3), (1, 0), (1, 1)),
    ((3, 3), (2, 1), (2, 2), (2, 2)),
    ((2, 2), (3, 3), (1, 0), (3, 2)),
]


@pytest.mark.parametrize("pool", WINDOWS)
def test_first_entries(pool: tuple[tuple[int, int], ...]) -> None:
    size, out = (8, 9), (3, 3)
    found = _first_entries(size, pool, out)  # type: ignore[arg-type]
    kernel, stride, padding, dilation = pool
    for i, j in itertools.product(range(out[0]), range(out[1])):
        rows = [r for k in range(kernel[0]) if (r := i * stride[0] - padding[0] + k * dilation[0]) >= 0]
        columns = [c for k in range(kernel[1]) if (c := j * stride[1] - padding[1] + k * dilation[1]) >= 0]
        assert found[i, j] == rows[0] * size[1] + columns[0]
    assert found.dtype == np.int32


def test_a_closed_entry_does_not_erase_an_open_one() -> None:
    """The pool's backward may write each position once: a closed entry's 0 must not land on another's gradient."""
    back = NumpyBackend()
    grad, indices = np.ones((1, 1, 2, 2), np.float32), np.array([[[[0, -1], [-1, -1]]]], np.int32)
    options = (4, 4), ((1, 1), (0, 0), (1, 1), 1), ((2, 2), (2, 2), (0, 0), (1, 1))
    weight = np.full((1, 1, 1, 1), 3.0, np.float32)
    found = back.conv2d_relu_max_pool2d_backward_input(grad, indices, weight, (1, 1, 4, 4), *options)
    assert found.ravel().tolist() == [3.0] + [0.0] * 15


def test_numpy_has_both_and_a_bare_backend_says_what_is_missing() -> None:
    assert isinstance(NumpyBackend(), ConvPoolOps)
    assert issubclass(BaseBackend, FusedOperations)

    class Bare(BaseBackend):
        name = "bare"

    with pytest.raises(NotSupported, match="backend 'bare' has no max_pool2d: implement Pool2dOps"):
        Bare().conv2d_relu_max_pool2d(None, None, None, ((1, 1), (0, 0), (1, 1), 1), WINDOWS[0], (1, 1))
