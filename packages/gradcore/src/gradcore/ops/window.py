"""Window arguments of convolution and pooling: pairs, their ranges, and the one rule for output sizes."""

from __future__ import annotations

import operator
from typing import Any

from gradcore.backend.protocol import Pair, Shape
from gradcore.errors import ArgumentError, ShapeError


def pair(operation: str, name: str, value: Any, least: int) -> Pair:
    """An int or a pair of ints (rows, columns), each at least `least`."""
    values = tuple(value) if isinstance(value, tuple | list) else (value, value)
    try:
        first, second = (operator.index(v) for v in values)
    except (TypeError, ValueError):
        raise ArgumentError(f"{operation}: {name} must be an integer or a pair of integers, got {value!r}") from None
    if min(first, second) < least:
        raise ArgumentError(f"{operation}: {name} must be at least {least}, got {value}")
    return first, second


def image_shape(operation: str, shape: Shape) -> Shape:
    """The shape, if it is (N, C, H, W)."""
    if len(shape) != 4:
        raise ShapeError(f"{operation}: input must be (N, C, H, W), got {shape}")
    return shape


def output_size(
    operation: str, size: Shape, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool = False
) -> Pair:
    """(OH, OW) for an input of (H, W): (H + 2*padding - reach) // stride + 1, with reach = dilation*(kernel-1) + 1.

    ceil_mode rounds up, and drops a last window that would start past the input and its left padding.
    """
    out = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        room = n + 2 * p - reach
        if room < 0:
            padded = "x".join(str(m + 2 * q) for m, q in zip(size, padding, strict=True))
            window = "x".join(str(e * (j - 1) + 1) for j, e in zip(kernel, dilation, strict=True))
            raise ShapeError(f"{operation}: kernel {window} is larger than the padded input {padded}")
        count = (room + s - 1) // s + 1 if ceil_mode else room // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        out.append(count)
    return out[0], out[1]
