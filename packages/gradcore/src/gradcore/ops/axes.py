"""Axis and shape arguments, brought to one form: non-negative, checked, in the operation's own words."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from gradcore.errors import ArgumentError, ShapeError

Axes = int | Sequence[int] | None


def one_axis(operation: str, axis: Any, ndim: int) -> int:
    """axis as 0..ndim-1."""
    try:
        index = operator.index(axis)
    except TypeError:
        raise ArgumentError(f"{operation}: axis must be an integer, got {axis!r}") from None
    if not -ndim <= index < ndim:
        raise ArgumentError(f"{operation}: axis {index} is out of range for {ndim} axes")
    return index % ndim


def many_axes(operation: str, axis: Axes, ndim: int) -> tuple[int, ...] | None:
    """axis as a sorted tuple of 0..ndim-1; None stays None (all axes)."""
    if axis is None:
        return None
    axes = [one_axis(operation, a, ndim) for a in (axis if isinstance(axis, tuple | list) else [axis])]
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"{operation}: an axis is named twice in {axis}")
    return tuple(sorted(axes))


def full_shape(operation: str, shape: Any, size: int) -> tuple[int, ...]:
    """A target shape for `size` elements, with at most one -1 worked out."""
    try:
        wanted = [operator.index(n) for n in shape]
    except TypeError:
        raise ArgumentError(f"{operation}: a shape is a tuple of integers, got {shape!r}") from None
    known = 1
    for n in wanted:
        known *= 1 if n == -1 else n
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise ShapeError(f"{operation}: shape {tuple(wanted)} may have one -1 and no other negative size")
    if -1 in wanted and known and size % known == 0:
        wanted[wanted.index(-1)] = size // known
    elif known != size or -1 in wanted:
        raise ShapeError(f"{operation}: shape {tuple(wanted)} does not hold {size} elements")
    return tuple(wanted)
