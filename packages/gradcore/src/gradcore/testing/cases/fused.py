"""Fused operations: linear_relu, conv2d_relu_max_pool2d and its backwards, composed of their parts' references.

Operands of the convolution are small whole numbers, so that its sums are exact in every dtype: which entry a pool
chooses, and what ReLU closes, is then the same everywhere, ties included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcore.backend.fused import ConvPoolOps
from gradcore.backend.protocol import Pair, Shape
from gradcore.testing.cases import conv, pool
from gradcore.testing.cases.case import EXACT, Case, Tolerance, of, permuted, uniform, values

ConvSetting = tuple[Pair, Pair, Pair, int]
PoolSetting = tuple[Pair, Pair, Pair, Pair]
ONE, NONE = (1, 1), (0, 0)


def relu(x: np.ndarray) -> np.ndarray:
    return np.where(x <= 0.0, 0.0, x)


def linear_relu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    y = np.array([[sum(a * b for a, b in zip(row, w, strict=True)) for w in weight] for row in x.tolist()])
    y = y.reshape(x.shape[0], weight.shape[0])
    return relu(y if bias is None else y + bias)


def forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, c: ConvSetting, p: PoolSetting, size: Pair
) -> tuple[np.ndarray, np.ndarray]:
    y, indices = pool.max_pool2d(relu(conv.conv2d(x, weight, bias, *c)), *p, size)
    return y, np.where(y <= 0.0, -1, indices).astype(np.int32)


def unpool(grad: np.ndarray, indices: np.ndarray, conv_size: Pair) -> np.ndarray:
    """grad where it came from; a closed entry goes nowhere."""
    out = np.zeros((*grad.shape[:2], *conv_size))
    for at in np.ndindex(*grad.shape):
        if indices[at] >= 0:
            out[at[0], at[1], indices[at] // conv_size[1], indices[at] % conv_size[1]] += grad[at]
    return out


def backward_input(
    grad: np.ndarray, indices: np.ndarray, w: np.ndarray, x_shape: Shape, size: Pair, c: ConvSetting, _: PoolSetting
) -> np.ndarray:
    return conv.conv2d_backward_input(unpool(grad, indices, size), w, x_shape, *c)


def backward_weight(
    grad: np.ndarray, indices: np.ndarray, x: np.ndarray, w_shape: Shape, size: Pair, c: ConvSetting, _: PoolSetting
) -> np.ndarray:
    return conv.conv2d_backward_weight(unpool(grad, indices, size), x, w_shape, *c)


def backward_bias(grad: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.array([grad[:, o][indices[:, o] >= 0].sum() for o in range(grad.shape[1])])


# name: x shape, weight shape, convolution's options, pool's options, ceil_mode
SETTINGS: dict[str, tuple[Shape, Shape, ConvSetting, PoolSetting, bool]] = {
    "plain": ((2, 3, 8, 8), (4, 3, 3, 3), (ONE, ONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "odd": ((3, 2, 9, 7), (5, 2, 3, 2), (ONE, NONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "one_channel": ((2, 1, 12, 12), (3, 1, 5, 5), (ONE, NONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "one_by_one": ((2, 6, 4, 4), (3, 6, 1, 1), (ONE, NONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "stride": ((2, 3, 13, 12), (4, 3, 3, 3), ((2, 2), ONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "dilation": ((1, 2, 12, 12), (3, 2, 3, 3), (ONE, (2, 2), (2, 2), 1), ((2, 2), (2, 2), NONE, ONE), False),
    "groups": ((2, 4, 8, 8), (6, 2, 3, 3), (ONE, ONE, ONE, 2), ((2, 2), (2, 2), NONE, ONE), False),
    "depthwise": ((2, 5, 8, 8), (5, 1, 3, 3), (ONE, ONE, ONE, 5), ((2, 2), (2, 2), NONE, ONE), False),
    "overlapping": ((2, 3, 9, 9), (4, 3, 3, 3), (ONE, ONE, ONE, 1), ((3, 3), (2, 2), ONE, ONE), False),
    "overlapping_1": ((1, 2, 6, 7), (3, 2, 2, 3), (ONE, NONE, ONE, 1), ((2, 3), ONE, NONE, ONE), False),
    "ceil": ((2, 2, 9, 9), (3, 2, 3, 3), (ONE, NONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), True),
    "pool_dilation": ((1, 2, 10, 10), (3, 2, 3, 3), (ONE, NONE, ONE, 1), ((2, 2), (2, 2), NONE, (2, 2)), False),
    "whole_plane": ((2, 2, 5, 5), (3, 2, 3, 3), (ONE, ONE, ONE, 1), ((5, 5), (5, 5), NONE, ONE), False),
    "no_image": ((0, 3, 8, 8), (4, 3, 3, 3), (ONE, ONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "many_channels": ((1, 20, 6, 6), (35, 20, 3, 3), (ONE, ONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "mnist_1": ((4, 1, 28, 28), (16, 1, 3, 3), (ONE, ONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
    "mnist_2": ((4, 16, 14, 14), (32, 16, 3, 3), (ONE, ONE, ONE, 1), ((2, 2), (2, 2), NONE, ONE), False),
}


def whole(rng: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray:
    return rng.integers(-2, 3, shape).astype(dtype)


def conv_cases() -> Iterator[Case]:
    for name, (x_shape, w_shape, c, p, ceil_mode) in SETTINGS.items():
        conv_size = conv.out_size(x_shape, w_shape, c)
        size = pool.out_size((*x_shape[:1], w_shape[0], *conv_size), *p, ceil_mode)
        build = operands(x_shape, w_shape, c, p, size)
        _, to_input, to_weight = conv.terms(x_shape, w_shape, c)
        yield case("", name, lambda r, d, b=build: b(r, d)[0], forward, EXACT)
        tail = (conv_size, c, p)

        def to_x(rng: Any, dtype: str, b: Any = build, shape: Shape = x_shape, tail: Any = tail) -> list[Any]:
            (_, weight, *_), grad, indices = b(rng, dtype)
            return [grad, indices, weight, shape, *tail]

        def to_w(rng: Any, dtype: str, b: Any = build, shape: Shape = w_shape, tail: Any = tail) -> list[Any]:
            (x, *_), grad, indices = b(rng, dtype)
            return [grad, indices, x, shape, *tail]

        yield case("_backward_input", name, to_x, backward_input, to_input)
        yield case("_backward_weight", name, to_w, backward_weight, to_weight)
        yield case("_backward_bias", name, lambda r, d, b=build: list(b(r, d)[1:]), backward_bias, to_weight)


def operands(x_shape: Shape, w_shape: Shape, c: ConvSetting, p: PoolSetting, size: Pair) -> Callable[..., Any]:
    """(rng, dtype) -> the forward's arguments, a gradient, and the positions that the forward keeps."""

    def build(rng: np.random.Generator, dtype: str) -> tuple[list[Any], np.ndarray, np.ndarray]:
        x, weight, bias = (whole(rng, shape, dtype) for shape in (x_shape, w_shape, w_shape[:1]))
        wide = np.float64
        y, indices = forward(x.astype(wide), weight.astype(wide), bias.astype(wide), c, p, size)
        return [x, weight, bias, c, p, size], rng.uniform(-1, 1, y.shape).astype(dtype), indices

    return build


def value_cases() -> Iterator[Case]:
    """Closed entries contribute nothing, where 0 * inf would leave a NaN; NaN and inf come through the forward."""
    pooling: PoolSetting = ((2, 2), (2, 2), NONE, ONE)
    plain: ConvSetting = (ONE, NONE, ONE, 1)
    x = np.array([[1, 2, -1, -2], [3, 4, -3, -4], [np.nan, 1, np.inf, 1], [1, 1, 1, -np.inf]]).reshape(1, 1, 4, 4)
    arguments = of(values(x), values(np.ones((1, 1, 1, 1))), None, plain, pooling, (2, 2))
    yield case("", "special", arguments, forward, EXACT)
    indices = np.array([5, -1, -1, 10], np.int32).reshape(1, 1, 2, 2)
    grad = values(np.array([1.0, np.inf, np.nan, 2.0]).reshape(1, 1, 2, 2))
    tail = ((4, 4), plain, pooling)
    closed = of(grad, values(indices, "int32"), values(np.full((1, 1, 1, 1), 3.0)), (1, 1, 4, 4), *tail)
    yield case("_backward_input", "closed", closed, backward_input, Tolerance())
    ones = of(grad, values(indices, "int32"), values(np.ones((1, 1, 4, 4))), (1, 1, 1, 1), *tail)
    yield case("_backward_weight", "closed", ones, backward_weight, Tolerance())
    yield case("_backward_bias", "closed", of(grad, values(indices, "int32")), backward_bias, Tolerance())


def linear_cases() -> Iterator[Case]:
    for rows, inner, outer in ((1, 1, 1), (5, 3, 4), (2, 7, 33), (0, 3, 4), (64, 65, 10)):
        x, weight, bias = uniform(rows, inner), uniform(outer, inner), uniform(outer)
        name = f"{rows}x{inner}x{outer}"
        yield Case("linear_relu", name, of(x, weight, bias), linear_relu, Tolerance(inner))
        yield Case("linear_relu", f"{name}_no_bias", of(x, weight, None), linear_relu, Tolerance(inner))
    views = of(permuted(uniform(5, 3), (1, 0)), permuted(uniform(4, 3), (1, 0)), uniform(4))
    yield Case("linear_relu", "permuted", views, linear_relu, Tolerance(3))
    special = of(values([[np.nan, 1], [np.inf, 1], [-np.inf, 1]]), values(np.ones((2, 2))), None)
    yield Case("linear_relu", "special", special, linear_relu, Tolerance())


def case(suffix: str, name: str, arguments: Any, reference: Any, tolerance: Tolerance) -> Case:
    return Case(f"conv2d_relu_max_pool2d{suffix}", name, arguments, reference, tolerance, ConvPoolOps)


CASES = [*linear_cases(), *conv_cases(), *value_cases()]
