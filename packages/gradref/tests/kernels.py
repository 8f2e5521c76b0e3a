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


def conv2d_relu_max_pool2d(
    s: Conv, p: Pool, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, reference: bool
) -> tuple[np.ndarray, np.ndarray]:
    y, indices = unwritten(p.y_shape), np.full(p.y_shape, -7, np.int32)
    _kernels.conv2d_relu_max_pool2d(y, indices, x, weight, bias, s.options, pool_options(p), reference)
    return y, indices


def fused_backward_input(
    s: Conv, grad: np.ndarray, indices: np.ndarray, weight: np.ndarray, reference: bool
) -> np.ndarray:
    dx = unwritten(s.x_shape)
    _kernels.conv2d_relu_max_pool2d_backward_input(dx, grad, indices, weight, s.y_shape[2:], s.options, reference)
    return dx


def fused_backward_weight(s: Conv, grad: np.ndarray, indices: np.ndarray, x: np.ndarray, reference: bool) -> np.ndarray:
    dw = unwritten(s.weight_shape)
    _kernels.conv2d_relu_max_pool2d_backward_weight(dw, grad, indices, x, s.y_shape[2:], s.options, reference)
    return dw


def fused_backward_bias(grad: np.ndarray, indices: np.ndarray) -> np.ndarray:
    db = unwritten(grad.shape[1:2])
    _kernels.conv2d_relu_max_pool2d_backward_bias(db, grad, indices)
    return db


def pool_options(p: Pool) -> tuple[tuple[int, int], ...]:
    return p.kernel, p.stride, p.padding, p.dilation


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, relu: bool, reference: bool) -> np.ndarray:
    y = unwritten((x.shape[0], weight.shape[0]))
    _kernels.linear(y, x, weight, bias, relu, reference)
    return y


def linear_backward_input(grad: np.ndarray, weight: np.ndarray, reference: bool) -> np.ndarray:
    dx = unwritten((grad.shape[0], weight.shape[1]))
    _kernels.linear_backward_input(dx, grad, weight, reference)
    return dx


def linear_backward_weight(grad: np.ndarray, x: np.ndarray, reference: bool) -> np.ndarray:
    dw = unwritten((grad.shape[1], x.shape[1]))
    _kernels.linear_backward_weight(dw, grad, x, reference)
    return dw
