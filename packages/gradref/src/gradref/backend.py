"""RefBackend: the NumPy backend with convolution and pooling in sequential C.

An array is a NumPy array. A kernel takes contiguous float32 and an output allocated here; what is not contiguous (a
view, a broadcast) is copied first. Other float types are left to NumpyBackend.
Next: csrc/gradref.h, the contract of the kernels.
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from gradcore.backend import Pair, Shape
from gradcore.backend.numpy import NumpyBackend
from gradref import _kernels

Algorithm = Literal["fast", "reference"]
ENVIRONMENT = "GRADREF_ALGORITHM"


class RefBackend(NumpyBackend):
    """The backend `ref`. Sizes and options arrive checked by gradcore.ops; the kernels' bindings check them again.

    algorithm: "fast", or "reference" for the textbook loops, many times slower; default: the environment variable
    GRADREF_ALGORITHM, else "fast". The two agree to rounding; each repeats itself bit for bit.
    """

    name = "ref"

    def __init__(self, algorithm: Algorithm | None = None) -> None:
        chosen = algorithm or os.environ.get(ENVIRONMENT) or "fast"
        if chosen not in ("fast", "reference"):
            where = "algorithm" if algorithm else ENVIRONMENT
            raise ValueError(f"{where} must be 'fast' or 'reference', got {chosen!r}")
        self.algorithm = chosen
        self._reference = chosen == "reference"
        loops = "textbook loops" if self._reference else _kernels.instruction_set()
        self.device = f"CPU, 1 thread ({loops})"

    # Conv2dOps

    def conv2d(
        self,
        x: np.ndarray,
        weight: np.ndarray,
        bias: np.ndarray | None,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
        groups: int,
    ) -> np.ndarray:
        if not _float32(x, weight):
            return super().conv2d(x, weight, bias, stride, padding, dilation, groups)
        x, weight = _contiguous(x), _contiguous(weight)
        out = (
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
        )
        y = np.empty((x.shape[0], weight.shape[0], *out), np.float32)
        bias = None if bias is None else _contiguous(bias)
        _kernels.conv2d(y, x, weight, bias, stride, padding, dilation, groups, self._reference)
        return y

    def conv2d_backward_input(
        self,
        grad: np.ndarray,
        weight: np.ndarray,
        x_shape: Shape,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
        groups: int,
    ) -> np.ndarray:
        if not _float32(grad, weight):
            return super().conv2d_backward_input(grad, weight, x_shape, stride, padding, dilation, groups)
        dx = np.empty(x_shape, np.float32)
        _kernels.conv2d_backward_input(
            dx, _contiguous(grad), _contiguous(weight), stride, padding, dilation, groups, self._reference
        )
        return dx

    def conv2d_backward_weight(
        self,
        grad: np.ndarray,
        x: np.ndarray,
        weight_shape: Shape,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
        groups: int,
    ) -> np.ndarray:
        if not _float32(grad, x):
            return super().conv2d_backward_weight(grad, x, weight_shape, stride, padding, dilation, groups)
        dw = np.empty(weight_shape, np.float32)
        _kernels.conv2d_backward_weight(
            dw, _contiguous(grad), _contiguous(x), stride, padding, dilation, groups, self._reference
        )
        return dw

    # Pool2dOps

    def max_pool2d(
        self, x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, out_size: Pair
    ) -> tuple[np.ndarray, np.ndarray]:
        if not _float32(x):
            return super().max_pool2d(x, kernel, stride, padding, dilation, out_size)
        y = np.empty((*x.shape[:2], *out_size), np.float32)
        indices = np.empty(y.shape, np.int32)
        _kernels.max_pool2d(y, indices, _contiguous(x), kernel, stride, padding, dilation, self._reference)
        return y, indices

    def max_pool2d_backward(
        self,
        grad: np.ndarray,
        indices: np.ndarray,
        x_shape: Shape,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
    ) -> np.ndarray:
        if not _float32(grad):
            return super().max_pool2d_backward(grad, indices, x_shape, kernel, stride, padding, dilation)
        dx = np.empty(x_shape, np.float32)
        _kernels.max_pool2d_backward(
            dx, _contiguous(grad), _contiguous(indices), kernel, stride, padding, dilation, self._reference
        )
        return dx

    def avg_pool2d(
        self, x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, out_size: Pair, count_include_pad: bool
    ) -> np.ndarray:
        if not _float32(x):
            return super().avg_pool2d(x, kernel, stride, padding, out_size, count_include_pad)
        y = np.empty((*x.shape[:2], *out_size), np.float32)
        _kernels.avg_pool2d(y, _contiguous(x), kernel, stride, padding, count_include_pad, self._reference)
        return y

    def avg_pool2d_backward(
        self, grad: np.ndarray, x_shape: Shape, kernel: Pair, stride: Pair, padding: Pair, count_include_pad: bool
    ) -> np.ndarray:
        if not _float32(grad):
            return super().avg_pool2d_backward(grad, x_shape, kernel, stride, padding, count_include_pad)
        dx = np.empty(x_shape, np.float32)
        _kernels.avg_pool2d_backward(dx, _contiguous(grad), kernel, stride, padding, count_include_pad, self._reference)
        return dx


_contiguous = np.ascontiguousarray


def _float32(*arrays: np.ndarray) -> bool:
    """Whether all are float32 in native byte order."""
    return all(a.dtype == np.float32 for a in arrays)
