"""Fused operations, composed from the plain ones: layers that stand side by side, as one call.

A backend overrides one where a kernel of its own saves memory traffic or arithmetic. Forward, a fused operation has the
values, NaN and infinities of its parts. Backward, an entry that ReLU closed or the pool did not choose contributes
exactly nothing, also where its factor is infinite; only the pooled positions are kept, neither the convolution's
output nor a mask. The fused and the plain network agree as two backends do.

Next: ops/fused.py, their rules; nn/fusion.py, which finds the neighbours in a Sequential.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from gradcore.backend.protocol import Conv2dOps, Pool2dOps

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Pair, Shape


@runtime_checkable
class ConvPoolOps(Conv2dOps, Pool2dOps, Protocol):
    """Both: what a fused convolution needs."""


ConvOptions = tuple["Pair", "Pair", "Pair", int]  # stride, padding, dilation, groups
PoolOptions = tuple["Pair", "Pair", "Pair", "Pair"]  # kernel, stride, padding, dilation


class FusedOperations:
    """Mixed into BaseBackend; self is one, with Conv2dOps and Pool2dOps where an operation needs them."""

    def linear_relu(self: Any, x: Array, weight: Array, bias: Array | None) -> Any:
        """relu(linear(x, weight, bias)) for x (N, in), weight (out, in), bias (out,) or None."""
        return self.relu(self.linear(x, weight, bias))

    def conv2d_relu_max_pool2d(
        self: Any,
        x: Array,
        weight: Array,
        bias: Array | None,
        conv: ConvOptions,
        pool: PoolOptions,
        out_size: Pair,
    ) -> Any:
        """(y, indices): y = max_pool2d(relu(conv2d(x, weight, bias))), of shape (N, O, PH, PW).

        indices: int32 position of each maximum in the convolution's OH*OW plane, -1 where it is not above 0 (a NaN is
        kept open).
        """
        y, indices = self.max_pool2d(self.relu(self.conv2d(x, weight, bias, *conv)), *pool, out_size)
        return y, self.where(self.greater_equal(0.0, y), -1, indices)

    def conv2d_relu_max_pool2d_backward_input(
        self: Any,
        grad: Array,
        indices: Array,
        weight: Array,
        x_shape: Shape,
        conv_size: Pair,
        conv: ConvOptions,
        pool: PoolOptions,
    ) -> Any:
        """Gradient of x from grad (N, O, PH, PW); conv_size is (OH, OW) of the convolution."""
        return self.conv2d_backward_input(self._unpool(grad, indices, conv_size, pool), weight, x_shape, *conv)

    def conv2d_relu_max_pool2d_backward_weight(
        self: Any,
        grad: Array,
        indices: Array,
        x: Array,
        weight_shape: Shape,
        conv_size: Pair,
        conv: ConvOptions,
        pool: PoolOptions,
    ) -> Any:
        """Gradient of the weight."""
        return self.conv2d_backward_weight(self._unpool(grad, indices, conv_size, pool), x, weight_shape, *conv)

    def conv2d_relu_max_pool2d_backward_bias(self: Any, grad: Array, indices: Array) -> Any:
        """Gradient of the bias, (O,): the sum over the open entries."""
        return self.sum(self._opened(grad, indices), (0, 2, 3), False)

    def _opened(self: Any, grad: Array, indices: Array) -> Any:
        return self.where(self.greater_equal(indices, 0), grad, 0.0)

    def _unpool(self: Any, grad: Array, indices: Array, conv_size: Pair, pool: PoolOptions) -> Any:
        """The gradient of the convolution's output. A closed entry brings its 0 to the first entry of its window."""
        first = self.asarray(_first_entries(conv_size, pool, grad.shape[2:]))
        placed = self.where(self.greater_equal(indices, 0), indices, first)
        return self.max_pool2d_backward(self._opened(grad, indices), placed, (*grad.shape[:2], *conv_size), *pool)


def _first_entries(size: Pair, pool: PoolOptions, out_size: Shape) -> np.ndarray:
    """int32 (PH, PW): the flat position of each window's first entry inside a plane of `size`."""
    _, stride, padding, dilation = pool

    def first(axis: int) -> np.ndarray:
        start = np.arange(out_size[axis]) * stride[axis] - padding[axis]
        return np.where(start < 0, start % dilation[axis], start)

    flat: np.ndarray = first(0)[:, None] * size[1] + first(1)[None, :]
    return flat.astype(np.int32)
