"""Functions that move elements without changing them: reshape, permute, broadcast, concatenate, take, convert.

Their outputs may share memory with the operand, so both share one version. Next: indexing.py, linalg.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcore.errors import ArgumentError, BackendMismatch, DTypeError, ShapeError
from gradcore.function import Function, watch
from gradcore.ops.axes import Axes, full_shape, many_axes, one_axis

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Shape
    from gradcore.tensor import Tensor


class View(Function):
    """Moves any element type; may share memory."""

    __slots__ = ()
    aliases = True
    takes_integers = True


class Reshape(View):
    __slots__ = ("before", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def forward(self, x: Array) -> Array:
        self.before = x.shape
        return self.backend.reshape(x, self.shape)

    def backward(self, grad: Array) -> Array:
        return self.backend.reshape(grad, self.before)


class PermuteDims(View):
    __slots__ = ("axes",)

    def __init__(self, axes: Shape) -> None:
        self.axes = axes

    def forward(self, x: Array) -> Array:
        return self.backend.permute_dims(x, self.axes)

    def backward(self, grad: Array) -> Array:
        inverse = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        return self.backend.permute_dims(grad, tuple(inverse))


class BroadcastTo(View):
    __slots__ = ("shape",)
    broadcasts = True

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def forward(self, x: Array) -> Array:
        return self.backend.broadcast_to(x, self.shape)

    def backward(self, grad: Array) -> Array:
        return grad


class StridedSlice(View):
    """One start, stop and step per axis, as Backend.strided_slice takes them."""

    __slots__ = ("before", "starts", "steps", "stops")

    def __init__(self, starts: Shape, stops: Shape, steps: Shape) -> None:
        self.starts, self.stops, self.steps = starts, stops, steps

    def forward(self, x: Array) -> Array:
        self.before = x.shape
        return self.backend.strided_slice(x, self.starts, self.stops, self.steps)

    def backward(self, grad: Array) -> Array:
        return self.backend.strided_slice_backward(grad, self.before, self.starts, self.stops, self.steps)


class Concat(Function):
    __slots__ = ("axis", "sizes")
    takes_integers = True

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, *arrays: Array) -> Array:
        self.sizes = [a.shape[self.axis] for a in arrays]
        return self.backend.concat(arrays, self.axis)

    def backward(self, grad: Array) -> Any:
        pieces, start = [], 0
        starts, stops, steps = [0] * len(grad.shape), list(grad.shape), (1,) * len(grad.shape)
        for size in self.sizes:
            starts[self.axis], stops[self.axis] = start, start + size
            pieces.append(self.backend.strided_slice(grad, tuple(starts), tuple(stops), steps))
            start += size
        return tuple(pieces)


class Take(Function):
    """Entries at `indices` (an integer array of the backend) along one axis."""

    __slots__ = ("axis", "indices", "length")
    takes_integers = True

    def __init__(self, indices: Array, axis: int) -> None:
        self.indices = indices
        self.axis = axis

    def forward(self, x: Array) -> Array:
        self.length = x.shape[self.axis]
        return self.backend.take(x, self.indices, self.axis)

    def backward(self, grad: Array) -> Array:
        return self.backend.take_backward(grad, self.indices, self.axis, self.length)


class AsType(Function):
    """Convert the element type; a gradient converts back."""

    __slots__ = ("before", "dtype")
    takes_integers = True

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def forward(self, x: Array) -> Array:
        self.before = x.dtype
        return self.backend.astype(x, self.dtype)

    def backward(self, grad: Array) -> Array:
        return self.backend.astype(grad, self.before)


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same elements in another shape; one size may be -1."""
    return Reshape(full_shape("reshape", shape, x.size))(x)


def flatten(x: Tensor, start_axis: int = 0) -> Tensor:
    """Merge the axes from start_axis on: (N, C, H, W) with start_axis 1 gives (N, C*H*W)."""
    start = one_axis("flatten", start_axis, x.ndim) if x.ndim else 0
    return Reshape((*x.shape[:start], math.prod(x.shape[start:])))(x)


def permute_dims(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Reorder the axes: the result's axis i is x's axis axes[i]."""
    order = tuple(one_axis("permute_dims", a, x.ndim) for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ArgumentError(f"permute_dims: axes {tuple(axes)} do not name each of {x.ndim} axes once")
    return PermuteDims(order)(x)


def transpose(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two axes."""
    order = list(range(x.ndim))
    i, j = one_axis("transpose", axis0, x.ndim), one_axis("transpose", axis1, x.ndim)
    order[i], order[j] = j, i
    return PermuteDims(tuple(order))(x)


def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """Drop axes of size 1: those named, or all of them."""
    axes = many_axes("squeeze", axis, x.ndim)
    if axes is not None and any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"squeeze: axis {axis} of shape {x.shape} has not size 1")
    kept = [n for i, n in enumerate(x.shape) if (n != 1 if axes is None else i not in axes)]
    return Reshape(tuple(kept))(x)


def expand_dims(x: Tensor, axis: int) -> Tensor:
    """Insert an axis of size 1 at `axis`."""
    at = one_axis("expand_dims", axis, x.ndim + 1)
    return Reshape((*x.shape[:at], 1, *x.shape[at:]))(x)


def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Stretch axes of size 1, and add axes in front."""
    try:
        target = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise ArgumentError(f"broadcast_to: a shape is a tuple of integers, got {shape!r}") from None
    stretches = x.ndim <= len(target) and min(target, default=0) >= 0
    if not stretches or any(n not in (1, target[i - x.ndim]) for i, n in enumerate(x.shape)):
        raise ShapeError(f"broadcast_to: shape {x.shape} does not stretch to {target}")
    return BroadcastTo(target)(x)


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors along an axis; their other sizes agree."""
    tensors = list(tensors)
    if not tensors:
        raise ArgumentError("concat: at least one tensor is needed")
    at = one_axis("concat", axis, tensors[0].ndim)
    for t in tensors:
        if t.ndim != tensors[0].ndim or any(
            n != m for i, (n, m) in enumerate(zip(t.shape, tensors[0].shape, strict=True)) if i != at
        ):
            raise ShapeError(f"concat: got {tensors[0].shape} and {t.shape}, they must agree but for axis {at}")
    return Concat(at)(*tensors)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis."""
    tensors = list(tensors)
    if not tensors:
        raise ArgumentError("stack: at least one tensor is needed")
    for t in tensors:
        if t.shape != tensors[0].shape:
            raise ShapeError(f"stack: got {tensors[0].shape} and {t.shape}, they must be equal")
    return concat([expand_dims(t, axis) for t in tensors], one_axis("stack", axis, tensors[0].ndim + 1))


def take(x: Tensor, indices: Any, axis: int = 0) -> Tensor:
    """Entries at integer indices along `axis`. indices: integers of any shape; from the host, negative ones count from
    the end.

    Indices from the host are checked here; those in a tensor by the backend (ArgumentError names the value).
    """
    at = one_axis("take", axis, x.ndim)
    array = index_array("take", indices, x, x.shape[at])
    if hasattr(indices, "_array"):
        x.backend.check_indices(array, x.shape[at], "take")
    return watch(Take(array, at)(x), indices)


def index_array(operation: str, indices: Any, x: Tensor, length: int, ignore: int | None = None) -> Array:
    """Labels or indices as an int64 or int32 array on x's backend, checked if they come from the host."""
    if hasattr(indices, "_array"):
        if indices.dtype.kind not in "iu":
            raise DTypeError(f"{operation}: labels and indices are integers, got {indices.dtype}; use .astype('int64')")
        if indices.backend is not x.backend:
            raise BackendMismatch(
                f"{operation}: values on backend {x.backend.name!r} and labels or indices on "
                f"{indices.backend.name!r}: move one with .to(name)"
            )
        array: Array = (indices if indices.dtype.kind == "i" else indices.astype(np.int64))._array
        return array
    host = np.asarray(indices)
    if host.size == 0 and host.dtype.kind == "f":
        host = host.astype(np.int64)
    if host.dtype.kind not in "iu":
        raise DTypeError(f"{operation}: labels and indices are integers, got {host.dtype}; use .astype('int64')")
    host = host.astype(np.int64)
    if operation != "cross_entropy":
        host = np.where(host < 0, host + length, host)
    bad = (host < 0) | (host >= length)
    if ignore is not None:
        bad &= host != ignore
    if bad.any():
        from gradcore.backend.base import bad_index

        raise ArgumentError(bad_index(operation, int(np.asarray(indices)[bad][0]), length))
    return x.backend.asarray(host)
