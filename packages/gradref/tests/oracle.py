"""What the kernels should give: float64, written apart from the C and from gradcore; and how to compare.

A convolution is one einsum for each tap over the zero-padded input; a pool is plain loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

Pair = tuple[int, int]


@dataclass(frozen=True)
class Conv:
    """Sizes and options of one convolution; the channels are those of one group."""

    n: int
    c: int
    size: Pair
    o: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def x_shape(self) -> tuple[int, ...]:
        return self.n, self.groups * self.c, *self.size

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return self.groups * self.o, self.c, *self.kernel

    @property
    def y_shape(self) -> tuple[int, ...]:
        out = [
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(self.size, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        ]
        return self.n, self.groups * self.o, *out

    @property
    def options(self) -> tuple[Pair, Pair, Pair, int]:
        return self.stride, self.padding, self.dilation, self.groups

    def taps(self) -> Iterator[tuple[int, int, slice, slice]]:
        """(row tap, column tap, the rows and columns of the padded input that this tap reads)."""
        for a, b in product(range(self.kernel[0]), range(self.kernel[1])):
            yield (
                a,
                b,
                *(
                    slice(tap * d, tap * d + (out - 1) * s + 1, s)
                    for tap, d, out, s in zip((a, b), self.dilation, self.y_shape[2:], self.stride, strict=True)
                ),
            )

    def grouped(self, a: np.ndarray) -> np.ndarray:
        """(N, channels, ...) -> (N, groups, channels of a group, ...)."""
        return a.reshape(a.shape[0], self.groups, -1 if a.size else a.shape[1] // self.groups, *a.shape[2:])

    def padded(self, x: np.ndarray) -> np.ndarray:
        (top, left) = self.padding
        return np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))


@np.errstate(invalid="ignore")
def conv2d(s: Conv, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    x, weight = s.grouped(s.padded(x.astype(float))), weight.astype(float)
    w = weight.reshape(s.groups, s.o, s.c, *s.kernel)
    y = np.zeros((s.n, s.groups, s.o, *s.y_shape[2:]))
    for a, b, rows, cols in s.taps():
        y += np.einsum("ngchw,goc->ngohw", x[..., rows, cols], w[..., a, b])
    y = y.reshape(s.y_shape)
    return y if bias is None else y + bias.astype(float)[:, None, None]


@np.errstate(invalid="ignore")
def conv2d_backward_input(s: Conv, grad: np.ndarray, weight: np.ndarray) -> np.ndarray:
    w = weight.astype(float).reshape(s.groups, s.o, s.c, *s.kernel)
    (top, left), (h, width) = s.padding, s.size
    dx = np.zeros((s.n, s.groups, s.c, h + 2 * top, width + 2 * left))
    for a, b, rows, cols in s.taps():
        dx[..., rows, cols] += np.einsum("ngohw,goc->ngchw", s.grouped(grad.astype(float)), w[..., a, b])
    return dx[..., top : top + h, left : left + width].reshape(s.x_shape)


@np.errstate(invalid="ignore")
def conv2d_backward_weight(s: Conv, grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    x, grad = s.grouped(s.padded(x.astype(float))), s.grouped(grad.astype(float))
    dw = np.zeros((s.groups, s.o, s.c, *s.kernel))
    for a, b, rows, cols in s.taps():
        dw[..., a, b] = np.einsum("ngohw,ngchw->goc", grad, x[..., rows, cols])
    return dw.reshape(s.weight_shape)


@dataclass(frozen=True)
class Pool:
    """Sizes and options of one pool; planes is (N, C)."""

    planes: Pair
    size: Pair
    out: Pair
    kernel: Pair
    stride: Pair
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)

    @property
    def x_shape(self) -> tuple[int, ...]:
        return *self.planes, *self.size

    @property
    def y_shape(self) -> tuple[int, ...]:
        return *self.planes, *self.out

    def window(self, i: int, j: int) -> list[Pair]:
        """Entries of the input under output (i, j), in row-major order."""
        return [
            (h, w)
            for a, b in product(range(self.kernel[0]), range(self.kernel[1]))
            for h in [i * self.stride[0] + a * self.dilation[0] - self.padding[0]]
            for w in [j * self.stride[1] + b * self.dilation[1] - self.padding[1]]
            if 0 <= h < self.size[0] and 0 <= w < self.size[1]
        ]

    def valid(self) -> bool:
        """Every window holds an entry."""
        return all(self.window(i, j) for i, j in product(range(self.out[0]), range(self.out[1])))

    def divisor(self, i: int, j: int, count_include_pad: bool) -> int:
        if not count_include_pad:
            return len(self.window(i, j))
        spans = [
            min(at * s - p + k, size + p) - (at * s - p)
            for at, s, p, k, size in zip((i, j), self.stride, self.padding, self.kernel, self.size, strict=True)
        ]
        return spans[0] * spans[1]


def max_pool2d(s: Pool, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, indices = np.empty(s.y_shape, x.dtype), np.empty(s.y_shape, np.int32)
    for n, c, i, j in np.ndindex(*s.y_shape):
        window = s.window(i, j)
        values = [x[n, c, h, w] for h, w in window]
        nan = [q for q, v in enumerate(values) if v != v]
        q = nan[-1] if nan else values.index(max(values))
        y[n, c, i, j], indices[n, c, i, j] = values[q], window[q][0] * s.size[1] + window[q][1]
    return y, indices


def max_pool2d_backward(s: Pool, grad: np.ndarray, indices: np.ndarray) -> np.ndarray:
    dx = np.zeros((*s.planes, s.size[0] * s.size[1]))
    for n, c, i, j in np.ndindex(*s.y_shape):
        dx[n, c, indices[n, c, i, j]] += grad[n, c, i, j]
    return dx.reshape(s.x_shape)


@np.errstate(invalid="ignore")
def avg_pool2d(s: Pool, x: np.ndarray, count_include_pad: bool) -> np.ndarray:
    y = np.empty(s.y_shape)
    for n, c, i, j in np.ndindex(*s.y_shape):
        y[n, c, i, j] = sum(float(x[n, c, h, w]) for h, w in s.window(i, j)) / s.divisor(i, j, count_include_pad)
    return y


@np.errstate(invalid="ignore")
def avg_pool2d_backward(s: Pool, grad: np.ndarray, count_include_pad: bool) -> np.ndarray:
    dx = np.zeros(s.x_shape)
    for n, c, i, j in np.ndindex(*s.y_shape):
        for h, w in s.window(i, j):
            dx[n, c, h, w] += float(grad[n, c, i, j]) / s.divisor(i, j, count_include_pad)
    return dx


def assert_same(got: np.ndarray, expected: np.ndarray, scale: float = 1.0) -> None:
    """Equal shapes; the same NaN and infinities; finite entries to float32 rounding of sums of about `scale`."""
    assert got.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(np.isinf(got), infinite)
    np.testing.assert_array_equal(got[infinite], expected[infinite])
    finite = np.isfinite(expected)
    np.testing.assert_allclose(got[finite], expected[finite], rtol=1e-5, atol=2e-6 * scale)


def data(shape: tuple[int, ...], seed: int, spoil: tuple[float, ...] = ()) -> np.ndarray:
    """Normal float32 values; each value of `spoil` written at some random place (none in an empty array)."""
    rng = np.random.default_rng([seed, *shape])
    a = rng.standard_normal(shape, dtype=np.float32)
    for value in spoil if a.size else ():
        a.flat[rng.integers(a.size)] = value
    return a
