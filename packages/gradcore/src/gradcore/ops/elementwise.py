"""Elementwise Functions and their slopes, with NumPy broadcasting.

At its kink abs has slope 0. Next: compare.py, reduce.py, shape.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradcore.errors import ShapeError
from gradcore.function import Function

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Shape

Pair = tuple["Array | None", "Array | None"]


class Binary(Function):
    """Two operands that broadcast; the engine sums the gradients back."""

    __slots__ = ()
    broadcasts = True

    def explain(self, *shapes: Shape) -> None:
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            got = " and ".join(str(shape) for shape in shapes)
            raise ShapeError(f"{self!r}: got {got}, the shapes do not broadcast") from None


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
        if self.needs[0]:  # b * a**(b-1), which is 0 for b = 0 also where a is 0: 0 * 0**0
            exponent = back.subtract(back.where(back.equal(b, 0.0), 1.0, b), 1.0)
            slope_a = back.multiply(grad, back.multiply(b, back.power(a, exponent)))
        if self.needs[1]:  # a**b * log a, which is 0 where a is 0 and b is not negative: 0 * log 1
            one_at_zero = back.where(back.equal(a, 0.0), 1.0, a)
            base = back.where(back.greater_equal(b, 0.0), one_at_zero, a)
            slope_b = back.multiply(grad, back.multiply(y, back.log(base)))
        return slope_a, slope_b


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
        back, y = self.backend, self.saved
        if self.scalar == 0.0:  # slope 0, and minus infinity where x is negative and y infinite
            return back.multiply(grad, back.where(back.greater(y, 1.0), back.negative(y), 0.0))
        slope = back.log(back.full((), self.scalar, grad.dtype))
        return back.multiply(grad, back.multiply(y, slope))


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
