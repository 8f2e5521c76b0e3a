"""Rules of the fused operations: linear + ReLU, and convolution + ReLU + max pool, each as one step of the tape.

The arguments are checked as the single operations check them, in their names. Semantics: backend/fused.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcore.function import Function
from gradcore.ops.conv import Options, check_operands
from gradcore.ops.linalg import Linear, check_linear
from gradcore.ops.pool import Window, max_pool_size

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Pair
    from gradcore.tensor import Tensor


class LinearReLU(Linear):
    """x (..., in), weight (out, in), bias (out,) or none: y (..., out), not below 0."""

    __slots__ = ()

    def forward(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        back = self.backend
        rows = back.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        y = back.linear_relu(rows, weight, bias)
        self.saved = rows, weight, y
        return back.reshape(y, (*x.shape[:-1], weight.shape[0]))

    def backward(self, grad: Array) -> Any:
        x, weight, y = self.saved
        opened = self.backend.relu_backward(self.backend.reshape(grad, y.shape), y)
        return self.rule(opened, x, weight, grad.shape)


class Conv2dReLUMaxPool2d(Function):
    """x (N, C, H, W), weight (O, C/groups, KH, KW), bias (O,) or none: y (N, O, PH, PW)."""

    __slots__ = ("conv", "conv_size", "out_size", "pool")
    backend: Any  # with Conv2dOps and Pool2dOps; one without says so

    def __init__(self, conv: Options, pool: Window, conv_size: Pair, out_size: Pair) -> None:
        self.conv, self.pool, self.conv_size, self.out_size = conv, pool, conv_size, out_size

    def forward(self, x: Array, weight: Array, bias: Array | None = None) -> Any:
        y, indices = self.backend.conv2d_relu_max_pool2d(x, weight, bias, self.conv, self.pool, self.out_size)
        self.saved = x, weight, indices
        return y

    def backward(self, grad: Array) -> Any:
        x, weight, indices = self.saved
        back, options = self.backend, (self.conv_size, self.conv, self.pool)
        grad_x = grad_weight = None
        if self.needs[0]:
            grad_x = back.conv2d_relu_max_pool2d_backward_input(grad, indices, weight, x.shape, *options)
        if self.needs[1]:
            grad_weight = back.conv2d_relu_max_pool2d_backward_weight(grad, indices, x, weight.shape, *options)
        if len(self.needs) == 2:
            return grad_x, grad_weight
        grad_bias = back.conv2d_relu_max_pool2d_backward_bias(grad, indices) if self.needs[2] else None
        return grad_x, grad_weight, grad_bias


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """relu(linear(x, weight, bias)) in one step."""
    check_linear(x, weight, bias)
    return LinearReLU()(x, weight) if bias is None else LinearReLU()(x, weight, bias)


def conv2d_relu_max_pool2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, conv: Options, pool: Window, ceil_mode: bool = False
) -> Tensor:
    """max_pool2d(relu(conv2d(x, weight, bias))) in one step; conv and pool are options in their one form."""
    conv_size = check_operands(x, weight, bias, conv)
    step = Conv2dReLUMaxPool2d(conv, pool, conv_size, max_pool_size(conv_size, pool, ceil_mode))
    return step(x, weight) if bias is None else step(x, weight, bias)
