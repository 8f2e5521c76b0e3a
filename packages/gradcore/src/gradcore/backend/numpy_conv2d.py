"""Convolution in NumPy: unroll the input (PMPP chapter 16, "im2col"), then one matrix product a group.

columns (G, C/G*KH*KW, N*OH*OW) holds, for every output position, the patch of padded input under the kernel. Then
y = weight @ columns, the weight gradient is grad @ columns.T, and the input gradient folds weight.T @ grad back.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gradcore.backend.protocol import Pair, Shape


class NumpyConv2d:
    """Conv2dOps on NumPy arrays of any float type."""

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
        columns, out_size = _unroll(x, weight.shape, stride, padding, dilation, groups)
        y = _matmul(weight.reshape(groups, weight.shape[0] // groups, -1), columns)
        y = y.reshape(weight.shape[0], x.shape[0], *out_size).transpose(1, 0, 2, 3)
        y = np.ascontiguousarray(y)
        return y if bias is None else np.add(y, bias[:, None, None], out=y)

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
        n, c, h, w = x_shape
        kh, kw = weight.shape[2:]
        oh, ow = grad.shape[2:]
        by_group = weight.reshape(groups, weight.shape[0] // groups, -1)
        patches = _matmul(by_group.transpose(0, 2, 1), _by_group(grad, groups))
        patches = patches.reshape(c, kh, kw, n, oh, ow)
        padded = np.zeros((c, n, h + 2 * padding[0], w + 2 * padding[1]), grad.dtype)
        for i in range(kh):
            rows = slice(i * dilation[0], i * dilation[0] + (oh - 1) * stride[0] + 1, stride[0])
            for j in range(kw):
                cols = slice(j * dilation[1], j * dilation[1] + (ow - 1) * stride[1] + 1, stride[1])
                padded[:, :, rows, cols] += patches[:, i, j]
        inner = padded[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + w]
        return np.ascontiguousarray(inner.transpose(1, 0, 2, 3))

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
        columns, _ = _unroll(x, weight_shape, stride, padding, dilation, groups)
        return _matmul(_by_group(grad, groups), columns.transpose(0, 2, 1)).reshape(weight_shape)


def _unroll(
    x: np.ndarray, weight_shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> tuple[np.ndarray, Pair]:
    """columns (G, C/G*KH*KW, N*OH*OW) and (OH, OW)."""
    c = x.shape[1]
    kh, kw = weight_shape[2:]
    if padding != (0, 0):
        x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    reach = (kh - 1) * dilation[0] + 1, (kw - 1) * dilation[1] + 1
    windows = sliding_window_view(x, reach, axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]  # (N, C, OH, OW, KH, KW)
    out_size: Pair = windows.shape[2:4]
    columns = windows.transpose(1, 4, 5, 0, 2, 3).reshape(groups, c // groups * kh * kw, -1 if x.size else 0)
    return columns, out_size


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):  # infinities
        return np.matmul(a, b)


def _by_group(grad: np.ndarray, groups: int) -> np.ndarray:
    """(N, O, OH, OW) -> (G, O/G, N*OH*OW)."""
    n, o, oh, ow = grad.shape
    return grad.transpose(1, 0, 2, 3).reshape(groups, o // groups, n * oh * ow)
