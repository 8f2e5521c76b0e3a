"""x[key]: integers, slices, Ellipsis and None are strided views; one integer array or list takes entries."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcore.errors import ArgumentError
from gradcore.ops.shape import PermuteDims, Reshape, StridedSlice, take

if TYPE_CHECKING:
    from gradcore.tensor import Tensor


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key], as in NumPy. Raises ArgumentError for an index out of range, bool masks, or two index arrays."""
    given = key if isinstance(key, tuple) else (key,)
    keys = _expand(given, x.ndim)
    starts, stops, steps, shape = [], [], [], []
    chosen: tuple[int, Any] | None = None  # (axis of the sliced tensor, index array)
    axis = kept = 0
    for k in keys:
        if k is None:
            continue
        size = x.shape[axis]
        if isinstance(k, slice):
            try:
                start, stop, step = k.indices(size)
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"getitem: {k}: {error}") from None
            length = len(range(start, stop, step))
            if length == 0:
                start, stop, step = 0, 0, 1
        elif _is_array(k):
            if chosen is not None:
                raise ArgumentError("getitem: two index arrays in one key are not supported; take one axis at a time")
            chosen = kept, k
            start, stop, step = 0, size, 1
        else:
            index = operator.index(k)
            if not -size <= index < size:
                raise ArgumentError(f"getitem: index {index} is out of range for axis {axis} of size {size}")
            start, stop, step = index % size, index % size + 1, 1
        starts.append(start)
        stops.append(stop)
        steps.append(step)
        kept += not isinstance(k, int | np.integer)
        axis += 1
    y = StridedSlice(tuple(starts), tuple(stops), tuple(steps))(x)
    axis = 0
    for k in keys:
        if k is None:
            shape.append(1)
        elif not isinstance(k, int | np.integer):
            shape.append(y.shape[axis])
            axis += 1
        else:
            axis += 1
    if tuple(shape) != y.shape:
        y = Reshape(tuple(shape))(y)
    if chosen is not None:
        before = sum(1 for k in keys[: _position(keys)] if k is None)
        at, rest = chosen[0] + before, y.ndim - 1
        y = take(y, chosen[1], at)
        if _apart(given):
            moved = list(range(at, at + y.ndim - rest))
            y = PermuteDims((*moved, *(i for i in range(y.ndim) if i not in moved)))(y)
    return y


def _apart(keys: tuple[Any, ...]) -> bool:
    """Whether integers stand apart from the index array: NumPy then puts the array's axes first."""
    places = [i for i, k in enumerate(keys) if k is not None and k is not Ellipsis and not isinstance(k, slice)]
    return places[-1] - places[0] + 1 != len(places)


def _expand(keys: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """Write out Ellipsis and the axes left off."""
    given = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if given > ndim:
        raise ArgumentError(f"getitem: {given} indices for a tensor of {ndim} axes")
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        raise ArgumentError("getitem: only one Ellipsis is allowed")
    at = dots[0] if dots else len(keys)
    return (*keys[:at], *(slice(None),) * (ndim - given), *keys[at + 1 :])


def _is_array(k: Any) -> bool:
    if isinstance(k, bool | np.bool_) or getattr(k, "dtype", None) == np.bool_:
        raise ArgumentError("getitem: bool masks are not supported; use where, or take with integer indices")
    if isinstance(k, int | np.integer):
        return False
    if isinstance(k, list | np.ndarray) or hasattr(k, "_array"):
        return True
    raise ArgumentError(f"getitem: {k!r} is not an index: use integers, slices, Ellipsis, None or an integer array")


def _position(keys: tuple[Any, ...]) -> int:
    return next(i for i, k in enumerate(keys) if k is not None and not isinstance(k, slice | int | np.integer))
