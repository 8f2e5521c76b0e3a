"""Elementwise Functions and their slopes, with NumPy broadcasting.

At a kink: relu and abs have slope 0 at 0, tied operands of maximum take half the gradient each.
Next: reduce.py, shape.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcore.errors import BackendMismatch, ShapeError
from gradcore.function import Function, as_tensor

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array
    from gradcore.tensor import Tensor

Pair = tuple["Array | None", "Array | None"]


class Binary(Function):
    """Two operands that broadcast; the engine sums the gradients back."""

    __slots__ = ()
    broadcasts = True


class Add(Binary):
    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        return self.backend.add(a, b)

    def backward(self, grad: Array) -> Pair:
        return grad, grad


class Subtract(Binary):
    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        return self.backend.subtract(a, b)

    def backward(self, grad: Array) -> Pair:
        return grad, self.backend.negative(grad) if self.needs[1] else None


class Multiply(Binary):
    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        self.saved = a, b
        return self.backend.multiply(a, b)

    def backward(self, grad: Array) -> Pair:
        a, b = self.saved
        multiply = self.backend.multiply
        return multiply(grad, b) if self.needs[0] else None, multiply(grad, a) if self.needs[1] else None


class Divide(Binary):
    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        y = self.backend.divide(a, b)
        self.saved = b, y
        return y

    def backward(self, grad: Array) -> Pair:
        b, y = self.saved
        slope_a = self.backend.divide(grad, b)
        return slope_a, self.backend.negative(self.backend.multiply(slope_a, y)) if self.needs[1] else None


class Power(Binary):
    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        y = self.backend.power(a, b)
        self.saved = a, b, y
        return y

    def backward(self, grad: Array) -> Pair:
        a, b, y = self.saved
        back = self.backend
        slope_a = slope_b = None
        if self.needs[0]:  # b * a**(b-1), which is 0 for b = 0 also where a is 0
            slope = back.multiply(b, back.power(a, back.subtract(b, 1.0)))
            slope_a = back.multiply(grad, back.where(back.equal(b, 0.0), 0.0, slope))
        if self.needs[1]:  # a**b * log a, which is 0 where a is 0 and b is not negative
            slope = back.multiply(y, back.log(a))
            at_zero = back.where(back.greater_equal(b, 0.0), 0.0, slope)
            slope_b = back.multiply(grad, back.where(back.equal(a, 0.0), at_zero, slope))
        return slope_a, slope_b


class Maximum(Binary):
    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        self.saved = a, b
        return self.backend.maximum(a, b)

    def backward(self, grad: Array) -> Pair:
        a, b = self.saved
        back = self.backend
        shared = back.where(back.equal(a, b), back.multiply(grad, 0.5), grad)
        grad_a = back.where(back.greater(b, a), 0.0, shared) if self.needs[0] else None
        return grad_a, back.where(back.greater(a, b), 0.0, shared) if self.needs[1] else None


class WithScalar(Function):
    """One operand and a Python scalar."""

    __slots__ = ("scalar",)

    def __init__(self, scalar: float) -> None:
        self.scalar = scalar


class AddScalar(WithScalar):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        return self.backend.add(x, self.scalar)

    def backward(self, grad: Array) -> Array:
        return grad


class MultiplyScalar(WithScalar):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        return self.backend.multiply(x, self.scalar)

    def backward(self, grad: Array) -> Array:
        return self.backend.multiply(grad, self.scalar)


class DivideByScalar(WithScalar):
    """x / scalar."""

    __slots__ = ()

    def forward(self, x: Array) -> Array:
        return self.backend.divide(x, self.scalar)

    def backward(self, grad: Array) -> Array:
        return self.backend.divide(grad, self.scalar)


class DivideScalar(WithScalar):
    """scalar / x."""

    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.divide(self.scalar, x)
        self.saved = x, y
        return y

    def backward(self, grad: Array) -> Array:
        x, y = self.saved
        return self.backend.negative(self.backend.multiply(grad, self.backend.divide(y, x)))


class PowerScalar(WithScalar):
    """x ** scalar; slope 0 for scalar 0, also at x = 0."""

    __slots__ = ()

    def forward(self, x: Array) -> Array:
        self.saved = x
        return self.backend.power(x, self.scalar)

    def backward(self, grad: Array) -> Array:
        if self.scalar == 0.0:
            return self.backend.full(grad.shape, 0.0, grad.dtype)
        slope = self.backend.power(self.saved, self.scalar - 1.0)
        return self.backend.multiply(grad, self.backend.multiply(slope, self.scalar))


class ScalarPower(WithScalar):
    """scalar ** x."""

    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.power(self.scalar, x)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        slope = self.backend.log(self.backend.full((), self.scalar, grad.dtype))
        return self.backend.multiply(grad, self.backend.multiply(self.saved, slope))


class Negative(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        return self.backend.negative(x)

    def backward(self, grad: Array) -> Array:
        return self.backend.negative(grad)


class Abs(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        self.saved = x
        return self.backend.abs(x)

    def backward(self, grad: Array) -> Array:
        return self.backend.multiply(grad, self.backend.sign(self.saved))


class Exp(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.exp(x)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.multiply(grad, self.saved)


class Log(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        self.saved = x
        return self.backend.log(x)

    def backward(self, grad: Array) -> Array:
        return self.backend.divide(grad, self.saved)


class Sqrt(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.sqrt(x)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.divide(self.backend.multiply(grad, 0.5), self.saved)


class Where(Binary):
    """a where condition holds, else b; the condition, a bool array, is an option."""

    __slots__ = ("condition",)

    def __init__(self, condition: Array) -> None:
        self.condition = condition

    def forward(self, a: Array, b: Array) -> Array:
        return self.backend.where(self.condition, a, b)

    def backward(self, grad: Array) -> Pair:
        back = self.backend
        grad_a = back.where(self.condition, grad, 0.0) if self.needs[0] else None
        return grad_a, back.where(self.condition, 0.0, grad) if self.needs[1] else None


def maximum(a: Tensor, b: Any) -> Tensor:
    """Elementwise larger of the two; NaN if either is NaN. Tied entries take half the gradient each."""
    return Maximum()(a, as_tensor(b, a))


def minimum(a: Tensor, b: Any) -> Tensor:
    """Elementwise smaller of the two; NaN if either is NaN. Tied entries take half the gradient each."""
    return -Maximum()(-a, -as_tensor(b, a))


def where(condition: Tensor, a: Any, b: Any) -> Tensor:
    """a where condition holds, else b. condition: a bool tensor; at most one of a and b is a scalar or an array."""
    if condition.dtype.kind != "b":
        raise ShapeError(f"where: the condition must be a bool tensor, got {condition.dtype}")
    a = as_tensor(a, b if hasattr(b, "_array") else condition)
    b = as_tensor(b, a)
    return Where(condition._array)(a, b)


def compare(name: str, a: Tensor, b: Any, swap: bool = False) -> Tensor:
    """A comparison primitive of the backend as a bool tensor without graph."""
    operand: Any = b
    if not isinstance(b, int | float):
        other = as_tensor(b, a)
        if other.backend is not a.backend:
            raise BackendMismatch(f"{name}: tensors on backends {a.backend.name!r} and {other.backend.name!r}")
        operand = other._array
    left, right = (operand, a._array) if swap else (a._array, operand)
    return a._wrap(getattr(a.backend, name)(left, right), a.backend)
