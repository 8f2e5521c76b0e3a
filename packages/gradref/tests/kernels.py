"""Calls of the compiled kernels, with outputs that are filled with a mark before: no entry may be left unwritten."""

from __future__ import annotations

import numpy as np

from gradref import _kernels

from .oracle import Conv, Pool


def unwritten(shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, 12345.0, np.float32)


def conv2d(s: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, reference: bool) -> np.ndarray:
    y = unwritten(s.y_shape)
    _kernels.conv2d(y, x, weight, bias, *s.options, reference)
    return y


def conv2d_backward_input(s: Conv, grad: np.ndarray, weight: np.ndarray, reference: bool) -> np.ndarray:
    dx = unwritten(s.x_shape)
    _kernels.conv2d_backward_input(dx, grad, weight, *s.options, reference)
    return dx


def conv2d_backward_weight(s: Conv, grad: np.ndarray, x: np.ndarray, reference: bool) -> np.ndarray:
    dw = unwritten(s.weight_shape)
    _kernels.conv2d_backward_weight(dw, grad, x, *s.options, reference)
    return dw


def max_pool2d(s: Pool, x: np.ndarray, reference: bool) -> tuple[np.ndarray, np.ndarray]:
    y, indices = unwritten(s.y_shape), np.full(s.y_shape, -7, np.int32)
    _kernels.max_pool2d(y, indices, x, s.kernel, s.stride, s.padding, s.dilation, reference)
    return y, indices


def max_pool2d_backward(s: Pool, grad: np.ndarray, indices: np.ndarray, reference: bool) -> np.ndarray:
    dx = unwritten(s.x_shape)
    _kernels.max_pool2d_backward(dx, grad, indices, s.kernel, s.stride, s.padding, s.dilation, reference)
    return dx


def avg_pool2d(s: Pool, x: np.ndarray, count_include_pad: bool, reference: bool) -> np.ndarray:
    y = unwritten(s.y_shape)
    _kernels.avg_pool2d(y, x, s.kernel, s.stride, s.padding, count_include_pad, reference)
    return y


def avg_pool2d_backward(s: Pool, grad: np.ndarray, count_include_pad: bool, reference: bool) -> np.ndarray:
    dx = unwritten(s.x_shape)
    _kernels.avg_pool2d_backward(dx, grad, s.kernel, s.stride, s.padding, count_include_pad, reference)
    return dx
