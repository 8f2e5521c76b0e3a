"""Pooling in NumPy: one pass over all outputs for each tap (kernel row, kernel column) of the window.

The outputs whose tap falls inside the input form a rectangle, so a pass is plain slicing: no padded copy is made,
and padding can never win a maximum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradcore.backend.protocol import Pair, Shape

Slices = tuple[slice, slice]


class NumpyPool2d:
    """Pool2dOps on NumPy arrays of any float type."""

    def max_pool2d(
        self, x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, out_size: Pair
    ) -> tuple[np.ndarray, np.ndarray]:
        n, c, h, w = x.shape
        y = np.full((n, c, *out_size), -np.inf, x.dtype)
        indices = np.full(y.shape, -1, np.int32)
        plane = np.arange(h * w, dtype=np.int32).reshape(h, w)
        for out, tap in _taps((h, w), kernel, stride, padding, dilation, out_size):
            value, best, index = x[..., *tap], y[..., *out], indices[..., *out]
            wins = (value > best) | (value != value) | (index < 0)  # first maximum, last NaN, never padding
            np.copyto(best, value, where=wins)
            np.copyto(index, plane[tap], where=wins)
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
        n, c, h, w = x_shape
        planes = indices.reshape(n * c, indices.shape[2] * indices.shape[3])
        flat = planes + np.arange(n * c, dtype=np.int64)[:, None] * (h * w)
        if kernel[0] <= stride[0] and kernel[1] <= stride[1] and dilation == (1, 1):  # no entry is chosen twice
            grad_x = np.zeros(n * c * h * w, grad.dtype)
            grad_x[flat] = grad.reshape(planes.shape)
        else:
            grad_x = np.bincount(flat.ravel(), grad.ravel(), n * c * h * w).astype(grad.dtype)
        return grad_x.reshape(x_shape)

    def avg_pool2d(
        self, x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, out_size: Pair, count_include_pad: bool
    ) -> np.ndarray:
        many = kernel[0] * kernel[1] > 256  # one by one, float32 would lose digits
        y = np.zeros((*x.shape[:2], *out_size), np.float64 if many else x.dtype)
        for out, tap in _taps(x.shape[2:], kernel, stride, padding, (1, 1), out_size):
            y[..., *out] += x[..., *tap]
        count = _divisor(x.shape[2:], kernel, stride, padding, out_size, count_include_pad)
        return (y / count.astype(y.dtype)).astype(x.dtype, copy=False)

    def avg_pool2d_backward(
        self, grad: np.ndarray, x_shape: Shape, kernel: Pair, stride: Pair, padding: Pair, count_include_pad: bool
    ) -> np.ndarray:
        out_size: Pair = grad.shape[2:]
        share = grad / _divisor(x_shape[2:], kernel, stride, padding, out_size, count_include_pad).astype(grad.dtype)
        grad_x = np.zeros(x_shape, grad.dtype)
        for out, tap in _taps(x_shape[2:], kernel, stride, padding, (1, 1), out_size):
            grad_x[..., *tap] += share[..., *out]
        return grad_x


def _taps(
    size: Shape, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, out_size: Pair
) -> Iterator[tuple[Slices, Slices]]:
    """For each tap in row-major order: the outputs that see it inside the input, and where in the input."""
    rows = [_span(size[0], i * dilation[0] - padding[0], stride[0], out_size[0]) for i in range(kernel[0])]
    cols = [_span(size[1], j * dilation[1] - padding[1], stride[1], out_size[1]) for j in range(kernel[1])]
    for out_rows, in_rows in rows:
        for out_cols, in_cols in cols:
            yield (out_rows, out_cols), (in_rows, in_cols)


def _span(size: int, offset: int, stride: int, out_size: int) -> Slices:
    """The o in 0..out_size-1 with 0 <= o*stride + offset < size, as a slice of outputs and one of inputs."""
    first = max(0, -(offset // stride))
    last = min(out_size, (size - 1 - offset) // stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = first * stride + offset
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)


def _divisor(
    size: Shape, kernel: Pair, stride: Pair, padding: Pair, out_size: Pair, count_include_pad: bool
) -> np.ndarray:
    """(OH, OW) entries that each window averages over; the overhang of ceil_mode never counts."""

    def count(axis: int) -> np.ndarray:
        start = np.arange(out_size[axis]) * stride[axis] - padding[axis]
        if count_include_pad:
            return np.minimum(start + kernel[axis], size[axis] + padding[axis]) - start
        return np.minimum(start + kernel[axis], size[axis]) - np.maximum(start, 0)

    return np.multiply.outer(count(0), count(1))
