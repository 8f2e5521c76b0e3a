"""Comparisons, and the Functions that choose by one: maximum, minimum, where.

Tied operands of maximum take half the gradient each. A comparison is a bool tensor without graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcore.errors import BackendMismatch, DTypeError
from gradcore.function import FLOAT32, TENSOR_TYPES, as_tensor, watch
from gradcore.ops.elementwise import Binary, Pair

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Shape
    from gradcore.tensor import Tensor


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


class Where(Binary):
    """a where condition holds, else b; the condition, a bool array, is an option."""

    __slots__ = ("condition",)

    def __init__(self, condition: Array) -> None:
        self.condition = condition

    def forward(self, a: Array, b: Array) -> Array:
        return self.backend.where(self.condition, a, b)

    def explain(self, *shapes: Shape) -> None:
        super().explain(self.condition.shape, *shapes)

    def backward(self, grad: Array) -> Pair:
        back = self.backend
        grad_a = back.where(self.condition, grad, 0.0) if self.needs[0] else None
        return grad_a, back.where(self.condition, 0.0, grad) if self.needs[1] else None


class Comparison(Binary):
    """Never on the tape: it lends compare its name, conversions and errors."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def maximum(a: Any, b: Any) -> Tensor:
    """Elementwise larger of the two; NaN if either is NaN. Tied entries take half the gradient each."""
    return Maximum()(*_both("maximum", a, b))


def minimum(a: Any, b: Any) -> Tensor:
    """Elementwise smaller of the two; NaN if either is NaN. Tied entries take half the gradient each."""
    a, b = _both("minimum", a, b)
    return -Maximum()(-a, -b)


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where condition holds, else b. condition: bool; one of the three is a Tensor, the others may be arrays."""
    tensors = [x for x in (a, b, condition) if x.__class__ in TENSOR_TYPES]
    if not tensors:
        raise DTypeError("where: one of condition, a and b must be a Tensor")
    condition = as_tensor(condition, tensors[0])
    if condition.dtype.kind != "b":
        raise DTypeError(f"where: the condition must be bool, got {condition.dtype}")
    a = as_tensor(a, tensors[0])
    b = as_tensor(b, a)
    if condition.backend is not a.backend:
        names = f"{condition.backend.name!r} and {a.backend.name!r}"
        raise BackendMismatch(f"where: condition and operands on backends {names}: move one with .to(name)")
    return watch(Where(condition._array)(a, b), condition)


def _both(operation: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """The operands as tensors; one of them may be a scalar or an array."""
    for like in (a, b):
        if like.__class__ in TENSOR_TYPES:
            return as_tensor(a, like), as_tensor(b, like)
    raise DTypeError(f"{operation}: one operand must be a Tensor, got {type(a).__name__} and {type(b).__name__}")


def compare(name: str, a: Tensor, b: Any, swap: bool = False) -> Tensor:
    """A comparison primitive of the backend as a bool tensor without graph. Scalars are weak."""
    step = Comparison(name)
    b = b.item() if isinstance(b, np.generic) else b
    if isinstance(b, int | float):
        if isinstance(b, float) and a.dtype.kind != "f":
            a = a.astype(FLOAT32)
        right: Any = b
    else:
        other = as_tensor(b, a)
        if a.dtype.kind != "f" and other.dtype.kind != "f" and a.dtype != other.dtype:
            a, other = a.astype(np.int64), other.astype(np.int64)
        elif a.dtype != other.dtype or a.backend is not other.backend:
            a, other = step._settle((a, other))
        step.explain(a.shape, other.shape)
        right = other._array
    left: Any = a._array
    return a._wrap(getattr(a.backend, name)(*((right, left) if swap else (left, right))), a.backend)
