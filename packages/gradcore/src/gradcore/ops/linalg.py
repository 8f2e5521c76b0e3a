"""Matrix products: matmul for any number of leading axes, and Linear, y = x @ w.T + b, as one step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradcore.errors import ShapeError
from gradcore.function import Function, as_tensor

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Shape
    from gradcore.tensor import Tensor


class MatMul(Function):
    """(..., n, k) @ (..., k, m); the leading axes broadcast."""

    __slots__ = ()
    broadcasts = True

    def forward(self, a: Array, b: Array) -> Array:
        self.saved = a, b
        return self.backend.matmul(a, b, False, False)

    def backward(self, grad: Array) -> Any:
        a, b = self.saved
        grad_a = self.backend.matmul(grad, b, False, True) if self.needs[0] else None
        return grad_a, self.backend.matmul(a, grad, True, False) if self.needs[1] else None


class Linear(Function):
    """x (..., in), weight (out, in), bias (out,) or none: y (..., out)."""

    __slots__ = ()

    def forward(self, x: Array, weight: Array, bias: Array | None = None) -> Array:
        rows = self.backend.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        self.saved = rows, weight
        y = self.backend.linear(rows, weight, bias)
        return self.backend.reshape(y, (*x.shape[:-1], weight.shape[0]))

    def backward(self, grad: Array) -> Any:
        x, weight = self.saved
        return self.rule(self.backend.reshape(grad, (x.shape[0], weight.shape[0])), x, weight, grad.shape)

    def rule(self, grad: Array, x: Array, weight: Array, shape: Shape) -> Any:
        """Gradients of x, weight and bias from grad (rows, out); shape is that of the output."""
        back = self.backend
        grad_x = grad_weight = None
        if self.needs[0]:
            grad_x = back.reshape(back.linear_backward_input(grad, weight), (*shape[:-1], weight.shape[1]))
        if self.needs[1]:
            grad_weight = back.linear_backward_weight(grad, x)
        if len(self.needs) == 2:
            return grad_x, grad_weight
        return grad_x, grad_weight, back.sum(grad, (0,), False) if self.needs[2] else None


def matmul(a: Tensor, b: Any) -> Tensor:
    """Matrix product with NumPy's rules: a vector is a row on the left, a column on the right, and is dropped again."""
    b = as_tensor(b, a)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul: got {a.shape} and {b.shape}, each needs at least one axis; use * to scale")
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(f"matmul: got {a.shape} and {b.shape}, inner sizes must agree")
    for n, m in zip(reversed(left.shape[:-2]), reversed(right.shape[:-2]), strict=False):
        if n != m and 1 not in (n, m):
            raise ShapeError(f"matmul: got {a.shape} and {b.shape}, leading axes do not broadcast")
    y = MatMul()(left, right)
    if a.ndim == 1:
        y = y.squeeze(-2)
    return y.squeeze(-1) if b.ndim == 1 else y


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y = x @ weight.T + bias. x (..., in), weight (out, in), bias (out,)."""
    check_linear(x, weight, bias)
    return Linear()(x, weight) if bias is None else Linear()(x, weight, bias)


def check_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Raise ShapeError if the operands of a linear layer do not fit."""
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(f"linear: got input {x.shape} and weight {weight.shape}, expected (..., in) and (out, in)")
    if bias is not None and bias.shape != (weight.shape[0],):
        raise ShapeError(f"linear: got bias {bias.shape}, expected {(weight.shape[0],)} for weight {weight.shape}")
