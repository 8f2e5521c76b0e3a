"""Reductions: sum, mean, max, argmax, var. axis is one axis, several, or None for all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcore.errors import ArgumentError
from gradcore.function import Function
from gradcore.ops.axes import Axes, many_axes, one_axis

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Shape
    from gradcore.tensor import Tensor


class Reduction(Function):
    """axis: a sorted tuple, or None for all axes."""

    __slots__ = ("axis", "keepdims", "shape")

    def __init__(self, axis: Shape | None, keepdims: bool) -> None:
        self.axis = axis
        self.keepdims = keepdims

    def kept_shape(self, shape: Shape) -> Shape:
        """shape with the reduced axes at size 1."""
        return tuple(1 if self.axis is None or i in self.axis else n for i, n in enumerate(shape))


class Sum(Reduction):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return self.backend.sum(x, self.axis, self.keepdims)

    def backward(self, grad: Array) -> Array:
        grad = self.backend.reshape(grad, self.kept_shape(self.shape))
        return self.backend.broadcast_to(grad, self.shape)


class Mean(Reduction):
    __slots__ = ("count",)

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        self.count = math.prod(n for i, n in enumerate(x.shape) if self.axis is None or i in self.axis)
        return self.backend.divide(self.backend.sum(x, self.axis, self.keepdims), self.count)

    def backward(self, grad: Array) -> Array:
        grad = self.backend.reshape(grad, self.kept_shape(self.shape))
        return self.backend.broadcast_to(self.backend.divide(grad, self.count), self.shape)


class Max(Reduction):
    """Tied entries share the gradient evenly, so that their gradients sum to the upstream value."""

    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.max(x, self.axis, self.keepdims)
        self.saved = x, y
        return y

    def backward(self, grad: Array) -> Array:
        x, y = self.saved
        back = self.backend
        kept = self.kept_shape(x.shape)
        tied = back.equal(x, back.reshape(y, kept))
        chosen = back.where(back.equal(x, x), tied, True)  # a NaN is the maximum, and equals nothing
        share = back.astype(chosen, grad.dtype)
        count = back.sum(share, self.axis, True)
        return back.multiply(back.divide(share, count), back.reshape(grad, kept))


def sum(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Sum over `axis`; 0 over no elements."""
    return Sum(many_axes("sum", axis, x.ndim), keepdims)(x)


def mean(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Mean over `axis`; NaN over no elements."""
    return Mean(many_axes("mean", axis, x.ndim), keepdims)(x)


def max(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Largest over `axis`; NaN if there is one. Raises ArgumentError over no elements."""
    axes = many_axes("max", axis, x.ndim)
    _refuse_empty("max", x, axes)
    return Max(axes, keepdims)(x)


def min(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Smallest over `axis`; NaN if there is one. Raises ArgumentError over no elements."""
    axes = many_axes("min", axis, x.ndim)
    _refuse_empty("min", x, axes)
    return -Max(axes, keepdims)(-x)


def var(x: Tensor, axis: Axes = None, keepdims: bool = False, correction: float = 0.0) -> Tensor:
    """Variance over `axis`: squared deviations from the mean over count - correction (1 is Bessel's)."""
    axes = many_axes("var", axis, x.ndim)
    count = math.prod(n for i, n in enumerate(x.shape) if axes is None or i in axes)
    deviation = x - mean(x, axis, keepdims=True)
    total = sum(deviation * deviation, axis, keepdims)
    return total / (count - correction if count > correction else math.nan)


def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first NaN, else of the first of the largest. Raises ArgumentError over no elements."""
    index = None if axis is None else one_axis("argmax", axis, x.ndim)
    _refuse_empty("argmax", x, None if index is None else (index,))
    return x._wrap(x.backend.argmax(x._array, index, keepdims), x.backend)


def _refuse_empty(operation: str, x: Tensor, axes: Shape | None) -> None:
    if any(n == 0 for i, n in enumerate(x.shape) if axes is None or i in axes):
        raise ArgumentError(f"{operation}: no elements to choose from in shape {x.shape}, axis {axes}")
