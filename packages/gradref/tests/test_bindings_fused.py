"""What the bindings of the fused step and of the dense kernels refuse, and how they say so; see test_bindings.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradref import _kernels

from .oracle import Conv, data

CONV = Conv(2, 3, (6, 5), 4, (3, 3), padding=(1, 1))
FUSED_POOL = (2, 2), (2, 2), (0, 0), (1, 1)


def fused_arrays() -> dict[str, np.ndarray]:
    return {
        "y": np.zeros((2, 4, 3, 2), np.float32),
        "indices": np.zeros((2, 4, 3, 2), np.int32),
        "x": data(CONV.x_shape, 0),
        "weight": data(CONV.weight_shape, 1),
        "bias": data((4,), 2),
    }


@pytest.mark.parametrize(
    ("name", "change", "error", "text"),
    [
        ("x", lambda a: a.astype(float), TypeError, "x must be float32, got float64"),
        ("indices", lambda a: a.astype("i8"), TypeError, "indices must be int32, got int64"),
        ("weight", np.asfortranarray, ValueError, "weight must be C-contiguous"),
        ("y", lambda a: a[:, :, :, :1].copy(), ValueError, r"indices must have shape \(2, 4, 3, 1\), got .*"),
        ("y", lambda a: a[:1].copy(), ValueError, r"y must have shape \(2, 4, 3, 2\), got \(1, 4, 3, 2\)"),
        ("bias", lambda a: a[:3].copy(), ValueError, r"bias must have shape \(4,\), got \(3,\)"),
    ],
)
def test_fused_step_refuses(name: str, change: Callable, error: type, text: str) -> None:
    arrays = fused_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(error, match=f"^conv2d_relu_max_pool2d: {text}$"):
        _kernels.conv2d_relu_max_pool2d(*arrays.values(), CONV.options, FUSED_POOL, False)


def test_fused_step_refuses_windows_outside_and_wrong_sizes() -> None:
    arrays = fused_arrays()
    pool = (2, 2), (3, 3), (0, 0), (1, 1)
    with pytest.raises(ValueError, match="a window lies wholly outside the input"):
        _kernels.conv2d_relu_max_pool2d(*arrays.values(), CONV.options, pool, False)
    y, indices, x, weight, _ = arrays.values()
    for size in ((6, 6), (5, 5), (0, 0)):
        with pytest.raises(ValueError, match="backward_weight: conv_size is not the convolution's output size"):
            _kernels.conv2d_relu_max_pool2d_backward_weight(weight, y, indices, x, size, CONV.options, False)
        with pytest.raises(ValueError, match="backward_input: conv_size is not the convolution's output size"):
            _kernels.conv2d_relu_max_pool2d_backward_input(x, y, indices, weight, size, CONV.options, False)
    with pytest.raises(ValueError, match=r"db must have shape \(4,\)"):
        _kernels.conv2d_relu_max_pool2d_backward_bias(np.zeros(3, np.float32), y, indices)


def test_dense_kernels_refuse() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    one, labels = np.zeros((), np.float32), np.zeros(2, np.int64)
    for text, call in (
        (
            r"linear: weight must have shape \(3, 3\), got \(3, 2\)",
            lambda: _kernels.linear(a, a, b, None, False, False),
        ),
        (r"linear_relu: y must have shape", lambda: _kernels.linear(a, b, b, None, True, False)),
        (r"linear_backward_input: grad must have", lambda: _kernels.linear_backward_input(a, b, a, False)),
        (r"linear_backward_weight: grad must have", lambda: _kernels.linear_backward_weight(a, b, a, False)),
        (r"relu: y must have shape \(3, 2\), got \(2, 3\)", lambda: _kernels.relu(a, b)),
        (r"relu_backward: grad must have", lambda: _kernels.relu_backward(a, b, a)),
        (r"relu: x must be C-contiguous", lambda: _kernels.relu(a, b.T)),
        (r"channel_sum: x must have 4 axes", lambda: _kernels.channel_sum(a[0], b)),
        (r"sgd_: velocity must have", lambda: _kernels.sgd(a, a, b, 0.1, 0.9, 1, 0, False)),
        (r"adam_: second must have", lambda: _kernels.adam(a, a, a, b, *range(9))),
        (
            r"softmax_cross_entropy: labels must have shape \(3,\)",
            lambda: _kernels.softmax_cross_entropy(one, b, b, labels, -1, 1),
        ),
        (
            r"softmax_cross_entropy: unknown reduction",
            lambda: _kernels.softmax_cross_entropy(one, a, a, labels, -1, 3),
        ),
        (
            r"softmax_cross_entropy: loss must have 1 axis",
            lambda: _kernels.softmax_cross_entropy(one, a, a, labels, -1, 0),
        ),
        (
            r"softmax_cross_entropy_backward: there must be at least one class",
            lambda: _kernels.softmax_cross_entropy_backward(a[:, :0], one, a[:, :0], labels, -1, 1),
        ),
    ):
        with pytest.raises(ValueError, match=f"^{text}"):
            call()
    with pytest.raises(TypeError, match=r"^softmax_cross_entropy: labels must be int64, got int32$"):
        _kernels.softmax_cross_entropy(one, a, a, labels.astype("i4"), -1, 1)
