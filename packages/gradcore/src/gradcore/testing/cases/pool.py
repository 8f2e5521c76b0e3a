"""max_pool2d and avg_pool2d with their backwards: plain loops over images, channels and windows (PMPP chapter 16).

A tie goes to the first maximum in row-major order, a NaN wins (the window's last), padding never wins. An average
divides by the window's entries inside the padded input, or inside the input alone, never by the overhang of ceil_mode.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcore.backend.protocol import Pair, Pool2dOps, Shape
from gradcore.testing.cases.case import (
    EXACT,
    Case,
    Maker,
    Tolerance,
    of,
    permuted,
    shuffled,
    stretched,
    strided,
    uniform,
    values,
)

NAN, INF = math.nan, math.inf
ONE = (1, 1)


def window(start: int, kernel: int, dilation: int, size: int) -> list[int]:
    """The rows (or columns) of the input that a window holds."""
    return [start + i * dilation for i in range(kernel) if 0 <= start + i * dilation < size]


def max_pool2d(
    x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, size: Pair
) -> tuple[np.ndarray, np.ndarray]:
    n, c, h, w = x.shape
    y, indices = np.empty((n, c, *size)), np.empty((n, c, *size), np.int32)
    for i, j in itertools.product(range(size[0]), range(size[1])):
        rows = window(i * stride[0] - padding[0], kernel[0], dilation[0], h)
        columns = window(j * stride[1] - padding[1], kernel[1], dilation[1], w)
        flat = [row * w + column for row in rows for column in columns]
        entries = x.reshape(n * c, h * w)[:, flat].tolist()
        chosen = [flat[winner(values)] for values in entries]
        indices[:, :, i, j] = np.array(chosen, np.int32).reshape(n, c)
    for at in np.ndindex(*y.shape):
        y[at] = x[at[0], at[1], indices[at] // w, indices[at] % w]
    return y, indices


def winner(entries: list[float]) -> int:
    best = 0
    for i, value in enumerate(entries):
        if value > entries[best] or value != value:
            best = i
    return best  # once a NaN stands there, nothing is larger, but a later NaN


def max_pool2d_backward(grad: np.ndarray, indices: np.ndarray, x_shape: Shape, *_: Any) -> np.ndarray:
    grad_x = np.zeros(x_shape)
    for at in np.ndindex(*grad.shape):
        grad_x[at[0], at[1], indices[at] // x_shape[3], indices[at] % x_shape[3]] += grad[at]
    return grad_x


def windows(
    x_shape: Shape, kernel: Pair, stride: Pair, padding: Pair, size: Pair, include_pad: bool
) -> Iterator[tuple[int, int, slice, slice, int]]:
    """(output row, output column, rows, columns, what to divide by)."""
    for i, j in itertools.product(range(size[0]), range(size[1])):
        spans, count = [], 1
        for axis, o in ((0, i), (1, j)):
            start, n = o * stride[axis] - padding[axis], x_shape[2 + axis]
            inside = window(start, kernel[axis], 1, n)
            spans.append(slice(inside[0], inside[-1] + 1))
            within = [start + k for k in range(kernel[axis]) if start + k < n + padding[axis]]
            count *= len(within) if include_pad else len(inside)
        yield i, j, spans[0], spans[1], count


def avg_pool2d(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, size: Pair, include_pad: bool) -> np.ndarray:
    y = np.zeros((*x.shape[:2], *size))
    for i, j, rows, columns, count in windows(x.shape, kernel, stride, padding, size, include_pad):
        y[:, :, i, j] = x[:, :, rows, columns].sum((2, 3)) / count
    return y


def avg_pool2d_backward(
    grad: np.ndarray, x_shape: Shape, kernel: Pair, stride: Pair, padding: Pair, include_pad: bool
) -> np.ndarray:
    grad_x = np.zeros(x_shape)
    for i, j, rows, columns, count in windows(x_shape, kernel, stride, padding, grad.shape[2:], include_pad):
        grad_x[:, :, rows, columns] += (grad[:, :, i, j] / count)[:, :, None, None]
    return grad_x


def out_size(shape: Shape, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool) -> Pair:
    """Count the windows that start early enough, as gradcore.ops does with a formula."""
    counts = []
    for axis in (0, 1):
        n, reach = shape[2 + axis], dilation[axis] * (kernel[axis] - 1) + 1
        starts = range(-padding[axis], n, stride[axis])
        fitting = [s for s in starts if s + reach <= n + padding[axis]]
        count = len(fitting)
        if ceil_mode and fitting[-1] + reach < n + padding[axis] and fitting[-1] + stride[axis] < n:
            count += 1
        counts.append(count)
    return counts[0], counts[1]


# name: x shape, kernel, stride, padding, dilation, ceil_mode
SETTINGS: dict[str, tuple[Shape, Pair, Pair, Pair, Pair, bool]] = {
    "smallest": ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0), ONE, False),
    "plain": ((2, 3, 6, 6), (2, 2), (2, 2), (0, 0), ONE, False),
    "odd": ((2, 3, 7, 9), (2, 2), (2, 2), (0, 0), ONE, False),
    "three": ((2, 2, 9, 9), (3, 3), (3, 3), (0, 0), ONE, False),
    "uneven_kernel": ((2, 3, 7, 8), (3, 2), (3, 2), (0, 0), ONE, False),
    "row": ((1, 2, 1, 9), (1, 2), (1, 1), (0, 0), ONE, False),
    "whole_input": ((2, 3, 5, 4), (5, 4), (5, 4), (0, 0), ONE, False),
    "kernel_1_stride_2": ((1, 1, 5, 5), (1, 1), (2, 2), (0, 0), ONE, False),
    "stride_over_kernel": ((1, 2, 8, 9), (2, 2), (3, 4), (0, 0), ONE, False),
    "overlapping": ((2, 3, 7, 7), (3, 3), (1, 1), (0, 0), ONE, False),
    "overlapping_2": ((2, 3, 9, 8), (3, 3), (2, 2), (0, 0), ONE, False),
    "padding": ((2, 3, 6, 6), (3, 3), (2, 2), (1, 1), ONE, False),
    "padding_uneven": ((2, 2, 5, 7), (2, 4), (2, 3), (1, 2), ONE, False),
    "padding_2x2": ((1, 1, 2, 2), (2, 2), (2, 2), (1, 1), ONE, False),
    "ceil": ((2, 2, 25, 25), (2, 2), (2, 2), (0, 0), ONE, True),
    "ceil_overhang": ((1, 2, 8, 10), (3, 3), (4, 4), (0, 0), ONE, True),
    "ceil_stride_3": ((1, 1, 7, 7), (2, 2), (3, 3), (0, 0), ONE, True),
    "ceil_dropped": ((1, 2, 6, 7), (1, 1), (2, 2), (0, 0), ONE, True),
    "ceil_padding": ((2, 2, 4, 4), (3, 3), (2, 2), (1, 1), ONE, True),
    "ceil_padding_dropped": ((1, 2, 5, 5), (2, 2), (2, 2), (1, 1), ONE, True),
    "no_image": ((0, 3, 8, 8), (2, 2), (2, 2), (0, 0), ONE, False),
    "large_batch": ((70_000, 1, 2, 2), (2, 2), (2, 2), (0, 0), ONE, False),
    "large_channels": ((1, 70_000, 2, 2), (2, 2), (2, 2), (0, 0), ONE, False),
    "mnist_1": ((4, 16, 28, 28), (2, 2), (2, 2), (0, 0), ONE, False),
    "mnist_2": ((4, 32, 14, 14), (2, 2), (2, 2), (0, 0), ONE, False),
}
DILATED: dict[str, tuple[Shape, Pair, Pair, Pair, Pair, bool]] = {
    "dilation": ((2, 2, 8, 9), (2, 3), (2, 1), (0, 0), (2, 3), False),
    "dilation_padding": ((2, 2, 7, 7), (3, 3), (2, 2), (2, 2), (2, 2), False),
    "dilation_ceil": ((1, 2, 8, 8), (2, 2), (3, 3), (1, 0), (3, 2), True),
}


def pool_cases() -> Iterator[Case]:
    for name, (shape, kernel, stride, padding, dilation, ceil) in {**SETTINGS, **DILATED}.items():
        size = out_size(shape, kernel, stride, padding, dilation, ceil)
        setting = kernel, stride, padding, dilation
        yield maximum("", name, of(shuffled(*shape, step=0.25), *setting, size), max_pool2d)
        back = saved(shuffled(*shape), setting, size, uniform(*shape[:2], *size))
        yield maximum("_backward", name, back, max_pool2d_backward, Tolerance(kernel[0] * kernel[1]))
        if dilation != ONE:
            continue
        for include_pad in (True, False):
            if not include_pad and padding == (0, 0) and not ceil:
                continue  # nothing to leave out
            suffix = name if include_pad else f"{name}_exclude_pad"
            options = kernel, stride, padding
            grad = uniform(*shape[:2], *size)
            yield average("", suffix, of(uniform(*shape), *options, size, include_pad), avg_pool2d)
            yield average("_backward", suffix, of(grad, shape, *options, include_pad), avg_pool2d_backward)


def saved(x: Maker, setting: tuple[Pair, Pair, Pair, Pair], size: Pair, grad: Maker) -> Callable[..., list[Any]]:
    """Arguments of max_pool2d_backward, the indices from the forward's reference."""

    def build(rng: np.random.Generator, dtype: str) -> list[Any]:
        array = x(rng, "float64")
        return [grad(rng, dtype), max_pool2d(array, *setting, size)[1], array.shape, *setting]

    return build


def special_cases() -> Iterator[Case]:
    """NaN, ties and infinities, alone and together: 3x3 windows over values from a short list."""

    def drawn(*choices: float) -> Maker:
        return lambda rng, dtype: np.asarray(rng.choice(choices, (3, 5, 8, 9)), dtype)

    for name, x in [
        ("ties", drawn(0.0, 1.0)),
        ("zeros", values(np.zeros((1, 2, 6, 6)))),
        ("nan", drawn(NAN, 0.0, 1.0, 2.0, 3.0)),
        ("all_nan", values(np.full((1, 1, 4, 4), NAN))),
        ("infinity", drawn(-INF, INF, 0.0)),
        ("minus_infinity", values(np.full((1, 2, 5, 5), -INF))),
        ("nan_minus_infinity", drawn(-INF, -INF, -INF, NAN)),
        ("negative", uniform(2, 3, 8, 8, low=-9, high=-1)),
        ("signed_zeros", drawn(-0.0, 0.0)),
    ]:
        shape = np.shape(x(np.random.default_rng(0), "float64"))
        for kernel, stride, padding in [((2, 2), (2, 2), (0, 0)), ((3, 3), (1, 1), (1, 1)), ((3, 2), (2, 3), (1, 1))]:
            setting = kernel, stride, padding, ONE
            size = out_size(shape, *setting, False)
            suffix = f"{name}_{kernel[0]}x{kernel[1]}"
            yield maximum("", suffix, of(x, *setting, size), max_pool2d)
            back = saved(x, setting, size, uniform(*shape[:2], *size))
            yield maximum("_backward", suffix, back, max_pool2d_backward, Tolerance(9))
    special = np.arange(36.0).reshape(1, 1, 6, 6)
    special[0, 0, 1, 1], special[0, 0, 4, 4], special[0, 0, 5, 0] = NAN, INF, -INF
    loose = Tolerance(4, size=36.0)
    yield average("", "special", of(values(special), (2, 2), (2, 2), (1, 1), (4, 4), True), avg_pool2d, loose)


def view_cases() -> Iterator[Case]:
    setting, size = ((2, 2), (2, 2), (0, 0), ONE), (3, 2)
    for name, x, grad in [
        ("channels_last", permuted(shuffled(2, 3, 6, 5), (0, 2, 3, 1)), permuted(uniform(2, 3, 3, 2), (0, 2, 3, 1))),
        ("stretched", stretched(shuffled(1, 3, 1, 5), 2, 3, 6, 5), stretched(uniform(1, 3, 1, 1), 2, 3, 3, 2)),
        ("strided", strided(shuffled(2, 3, 6, 5)), strided(uniform(2, 3, 3, 2))),
    ]:
        yield maximum("", name, of(x, *setting, size), max_pool2d)
        back = saved(shuffled(2, 3, 6, 5), setting, size, grad)
        yield maximum("_backward", name, back, max_pool2d_backward, EXACT)
        yield average("", name, of(x, *setting[:3], size, True), avg_pool2d, Tolerance(4, size=90.0))
        yield average("_backward", name, of(grad, (2, 3, 6, 5), *setting[:3], True), avg_pool2d_backward)


def maximum(suffix: str, name: str, arguments: Any, reference: Any, tolerance: Tolerance = EXACT) -> Case:
    return Case(f"max_pool2d{suffix}", name, arguments, reference, tolerance, Pool2dOps)


def average(suffix: str, name: str, arguments: Any, reference: Any, tolerance: Tolerance | None = None) -> Case:
    return Case(f"avg_pool2d{suffix}", name, arguments, reference, tolerance or Tolerance(25), Pool2dOps)


CASES = [*pool_cases(), *special_cases(), *view_cases()]
