"""The arithmetic and the methods of Tensor, spelled out one by one: each makes a Function and calls it.

`x * 2.0` is MultiplyScalar(2.0)(x): a Python or NumPy scalar is an option of the Function, not an operand, and takes
the tensor's type. Anything else that is not a Tensor is converted beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcore.errors import ShapeError
from gradcore.function import TENSOR_TYPES, as_tensor
from gradcore.ops import reduce
from gradcore.ops import shape as shapes
from gradcore.ops.activation import ReLU, Sigmoid, Tanh
from gradcore.ops.compare import compare
from gradcore.ops.elementwise import (
    Abs,
    Add,
    AddScalar,
    Divide,
    DivideByScalar,
    DivideScalar,
    Exp,
    Log,
    Multiply,
    MultiplyScalar,
    Negative,
    Power,
    PowerScalar,
    ScalarPower,
    Sqrt,
    Subtract,
)
from gradcore.ops.indexing import getitem
from gradcore.ops.linalg import matmul
from gradcore.ops.softmax import log_softmax, softmax

if TYPE_CHECKING:
    from gradcore.tensor import Tensor

Axes = int | Sequence[int] | None
_SCALARS = (int, float, np.floating, np.integer, np.bool_)
_INTEGERS = (int, np.integer)


class Operators:
    """Mixed into Tensor; `self` is a Tensor throughout."""

    __slots__ = ()

    def __add__(self: Tensor, other: Any) -> Tensor:
        if other.__class__ in TENSOR_TYPES:
            return Add().binary(self, other)
        if isinstance(other, _SCALARS):
            return AddScalar(float(other)).unary(self)
        return Add()(self, as_tensor(other, self))

    __radd__ = __add__

    def __sub__(self: Tensor, other: Any) -> Tensor:
        if other.__class__ in TENSOR_TYPES:
            return Subtract().binary(self, other)
        if isinstance(other, _SCALARS):
            return AddScalar(-float(other)).unary(self)
        return Subtract()(self, as_tensor(other, self))

    def __rsub__(self: Tensor, other: Any) -> Tensor:
        if isinstance(other, _SCALARS):
            return AddScalar(float(other))(Negative().unary(self))
        return Subtract()(as_tensor(other, self), self)

    def __mul__(self: Tensor, other: Any) -> Tensor:
        if other.__class__ in TENSOR_TYPES:
            return Multiply().binary(self, other)
        if isinstance(other, _SCALARS):
            return MultiplyScalar(float(other)).unary(self)
        return Multiply()(self, as_tensor(other, self))

    __rmul__ = __mul__

    def __truediv__(self: Tensor, other: Any) -> Tensor:
        if other.__class__ in TENSOR_TYPES:
            return Divide().binary(self, other)
        if isinstance(other, _SCALARS):
            return DivideByScalar(float(other)).unary(self)
        return Divide()(self, as_tensor(other, self))

    def __rtruediv__(self: Tensor, other: Any) -> Tensor:
        if isinstance(other, _SCALARS):
            return DivideScalar(float(other)).unary(self)
        return Divide()(as_tensor(other, self), self)

    def __pow__(self: Tensor, other: Any) -> Tensor:
        if other.__class__ in TENSOR_TYPES:
            return Power().binary(self, other)
        if isinstance(other, _SCALARS):
            return PowerScalar(float(other)).unary(self)
        return Power()(self, as_tensor(other, self))

    def __rpow__(self: Tensor, other: Any) -> Tensor:
        if isinstance(other, _SCALARS):
            return ScalarPower(float(other)).unary(self)
        return Power()(as_tensor(other, self), self)

    def __matmul__(self: Tensor, other: Any) -> Tensor:
        return matmul(self, other)

    def __rmatmul__(self: Tensor, other: Any) -> Tensor:
        return matmul(as_tensor(other, self), self)

    def __neg__(self: Tensor) -> Tensor:
        return Negative().unary(self)

    def __abs__(self: Tensor) -> Tensor:
        return Abs().unary(self)

    # comparisons: bool tensors, elementwise, no gradient

    def __gt__(self: Tensor, other: Any) -> Tensor:
        return compare("greater", self, other)

    def __ge__(self: Tensor, other: Any) -> Tensor:
        return compare("greater_equal", self, other)

    def __lt__(self: Tensor, other: Any) -> Tensor:
        return compare("greater", self, other, swap=True)

    def __le__(self: Tensor, other: Any) -> Tensor:
        return compare("greater_equal", self, other, swap=True)

    def __eq__(self: Tensor, other: Any) -> Tensor:  # type: ignore[override]
        return compare("equal", self, other)

    def __ne__(self: Tensor, other: Any) -> Tensor:  # type: ignore[override]
        equal = compare("equal", self, other)
        return compare("equal", equal, False)

    __hash__ = object.__hash__

    # elementwise

    def exp(self: Tensor) -> Tensor:
        return Exp().unary(self)

    def log(self: Tensor) -> Tensor:
        return Log().unary(self)

    def sqrt(self: Tensor) -> Tensor:
        return Sqrt().unary(self)

    def tanh(self: Tensor) -> Tensor:
        return Tanh().unary(self)

    def sigmoid(self: Tensor) -> Tensor:
        return Sigmoid().unary(self)

    def relu(self: Tensor) -> Tensor:
        return ReLU().unary(self)

    def abs(self: Tensor) -> Tensor:
        return Abs().unary(self)

    # reductions

    def sum(self: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """Sum over `axis` (one, several, or all)."""
        return reduce.sum(self, axis, keepdims)

    def mean(self: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """Mean over `axis`; NaN over no elements."""
        return reduce.mean(self, axis, keepdims)

    def max(self: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """Largest over `axis`; tied entries share the gradient evenly."""
        return reduce.max(self, axis, keepdims)

    def min(self: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """Smallest over `axis`; tied entries share the gradient evenly."""
        return reduce.min(self, axis, keepdims)

    def var(self: Tensor, axis: Axes = None, keepdims: bool = False, correction: float = 0.0) -> Tensor:
        """Variance; divides by count - correction."""
        return reduce.var(self, axis, keepdims, correction)

    def argmax(self: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """int64 position of the first NaN, else of the first largest; no gradient."""
        return reduce.argmax(self, axis, keepdims)

    # shape

    def reshape(self: Tensor, *shape: Any) -> Tensor:
        """The same elements in another shape; one size may be -1."""
        return shapes.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], _INTEGERS) else shape)

    def flatten(self: Tensor, start_axis: int = 0) -> Tensor:
        """Merge the axes from start_axis on."""
        return shapes.flatten(self, start_axis)

    def permute_dims(self: Tensor, *axes: Any) -> Tensor:
        """Reorder the axes."""
        return shapes.permute_dims(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], _INTEGERS) else axes)

    def transpose(self: Tensor, axis0: int, axis1: int) -> Tensor:
        """Swap two axes."""
        return shapes.transpose(self, axis0, axis1)

    @property
    def T(self: Tensor) -> Tensor:
        """The transpose of a matrix."""
        if len(self.shape) != 2:
            raise ShapeError(f"T: a matrix is needed, the tensor has shape {self.shape}; use transpose or permute_dims")
        return shapes.transpose(self, 0, 1)

    def squeeze(self: Tensor, axis: Axes = None) -> Tensor:
        """Drop axes of size 1."""
        return shapes.squeeze(self, axis)

    def expand_dims(self: Tensor, axis: int) -> Tensor:
        """Insert an axis of size 1."""
        return shapes.expand_dims(self, axis)

    def broadcast_to(self: Tensor, shape: Sequence[int]) -> Tensor:
        return shapes.broadcast_to(self, shape)

    def take(self: Tensor, indices: Any, axis: int = 0) -> Tensor:
        """Entries at integer indices along one axis; an index taken twice collects both gradients."""
        return shapes.take(self, indices, axis)

    def __getitem__(self: Tensor, key: Any) -> Tensor:
        return getitem(self, key)

    def __iter__(self: Tensor) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # linear algebra and softmax

    def matmul(self: Tensor, other: Any) -> Tensor:
        return matmul(self, other)

    def softmax(self: Tensor, axis: int = -1) -> Tensor:
        return softmax(self, axis)

    def log_softmax(self: Tensor, axis: int = -1) -> Tensor:
        return log_softmax(self, axis)
