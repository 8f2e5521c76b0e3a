"""Derived operations without a family of their own: sum_to, take_batch, append_, the activations, batch normalisation.

Each with its backward; a backward is given what the forward saved, computed by the forward's reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcore.testing.cases.case import (
    EXACT,
    Case,
    Maker,
    Tolerance,
    filled,
    host,
    of,
    permuted,
    stretched,
    strided,
    uniform,
    values,
)
from gradcore.testing.cases.elementwise import by_entry, size
from gradcore.testing.cases.reduce import sum_

NAN, INF = math.nan, math.inf
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (3, 4), (2, 3, 4), (1031,), (0, 3)]


def sum_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    lead = x.ndim - len(shape)
    axes = tuple(i for i in range(x.ndim) if i < lead or shape[i - lead] == 1)
    return sum_(x, axes, True).reshape(shape)


def take_batch(x: np.ndarray, order: np.ndarray, cursor: np.ndarray, rows: int) -> np.ndarray:
    chosen = order.tolist()[int(cursor) : int(cursor) + rows]
    return np.array([x[i] for i in chosen]).reshape(len(chosen), *x.shape[1:])


def append_(buffer: np.ndarray, cursor: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    place = int(cursor)
    out = [float(value.ravel()[0]) if i == place else entry for i, entry in enumerate(buffer.tolist())]
    return np.array(out), np.array(place + 1, np.int64)


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x)) if x < 0.0 else x


def relu(x: float) -> float:
    return x if x > 0.0 or x != x else 0.0


def relu_backward(grad: float, y: float) -> float:
    """A choice, not a product: an infinite grad leaves no NaN where y <= 0."""
    return 0.0 if y <= 0.0 else grad


def sigmoid_backward(grad: float, y: float) -> float:
    return grad * y * (1.0 - y)


def tanh_backward(grad: float, y: float) -> float:
    return grad * (1.0 - y * y)


ACTIVATIONS: dict[str, tuple[Callable[[float], float], Callable[[float, float], float]]] = {
    "relu": (relu, relu_backward),
    "sigmoid": (sigmoid, sigmoid_backward),
    "tanh": (math.tanh, tanh_backward),
}


def channels(x: np.ndarray) -> tuple[np.ndarray, int]:
    """(C, count): the entries of each channel in a row."""
    count = x.size // x.shape[1]
    return x.swapaxes(0, 1).reshape(x.shape[1], count), count


def batch_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> tuple[np.ndarray, ...]:
    rows, count = channels(x)
    mean = np.array([math.fsum(row) / count for row in rows.tolist()])
    var = np.array([math.fsum((v - m) ** 2 for v in row) / count for row, m in zip(rows.tolist(), mean, strict=True)])
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        y[:, c] = (x[:, c] - mean[c]) / math.sqrt(var[c] + eps) * weight[c] + bias[c]
    return y, mean, var


def batch_norm_backward(
    grad: np.ndarray, x: np.ndarray, weight: np.ndarray, mean: np.ndarray, var: np.ndarray, eps: float
) -> tuple[np.ndarray, ...]:
    """By the chain rule through mean and variance, step by step, as in the paper's section 3."""
    _, count = channels(x)
    grad_x, grad_weight, grad_bias = np.empty_like(x), np.empty_like(weight), np.empty_like(weight)
    for c in range(x.shape[1]):
        centred, g = x[:, c] - mean[c], grad[:, c]
        rstd = 1.0 / math.sqrt(var[c] + eps)
        grad_bias[c] = math.fsum(g.ravel())
        grad_weight[c] = math.fsum((g * centred * rstd).ravel())
        grad_normal = g * weight[c]
        grad_var = math.fsum((grad_normal * centred).ravel()) * -0.5 * rstd**3
        grad_mean = -rstd * math.fsum(grad_normal.ravel())
        grad_x[:, c] = grad_normal * rstd + grad_var * 2.0 * centred / count + grad_mean / count
    return grad_x, grad_weight, grad_bias


def helper_cases() -> Iterator[Case]:
    for before, after in [
        ((3, 4), (3, 4)),
        ((3, 4), (1, 4)),
        ((3, 4), (3, 1)),
        ((3, 4), (4,)),
        ((3, 4), ()),
        ((3, 4), (1,)),
        ((), ()),
        ((2, 3, 4, 5), (3, 1, 5)),
        ((2, 3, 4, 5), (1, 1, 4, 1)),
        ((0, 4), (1, 4)),
        ((0, 4), (4,)),
        ((3, 0), (3, 1)),
        ((64, 128), (128,)),
        ((3, 1, 4), (3, 1, 4)),
    ]:
        terms = Tolerance(math.prod(before) // max(1, math.prod(after)))
        yield Case("sum_to", f"{size(before)}_{size(after)}", of(uniform(*before), after), sum_to, terms)
    yield Case("sum_to", "permuted", of(permuted(uniform(3, 4, 2), (2, 0, 1)), (4, 1)), sum_to, Tolerance(6))
    million = of(filled((500_000, 2), 0.1), (2,))
    yield Case("sum_to", "million", million, sum_to, Tolerance(1_000_000, size=1e-5), dtypes=("float32",))
    yield Case("sum_to", "stretched", of(stretched(uniform(1, 4), 30, 4), (4,)), sum_to, Tolerance(30))
    for shape, start, rows in [((10,), 0, 4), ((10, 3), 4, 4), ((10, 2, 3), 8, 2), ((5, 4), 0, 5), ((6, 2), 5, 1)]:
        order = permutation(shape[0])
        name = f"{size(shape)}_from{start}_{rows}"
        taken = of(uniform(*shape), order, values(start, "int64"), rows)
        dtypes = ("float32", "float64", "int64", "int32", "uint8")
        yield Case("take_batch", name, taken, take_batch, EXACT, dtypes=dtypes)
    for place in (0, 3, 6):
        arguments = of(uniform(7), values(place, "int64"), uniform())
        yield Case("append_", f"at_{place}", arguments, append_, EXACT, changes=(0, 1))
    one = of(uniform(1), values(0, "int64"), uniform(1, 1))
    yield Case("append_", "one_by_one", one, append_, EXACT, changes=(0, 1))


def permutation(count: int) -> Maker:
    return lambda rng, _: rng.permutation(count)


def activation_cases() -> Iterator[Case]:
    special = [NAN, -INF, -1e4, -90.0, -1.0, -0.0, 0.0, 1e-3, 1.0, 90.0, 1e4, INF]
    for operation, (function, slope) in ACTIVATIONS.items():
        tolerance = EXACT if operation == "relu" else Tolerance()

        def forward(x: Any, function: Callable[[float], float] = function) -> np.ndarray:
            return by_entry(function, x)

        def backward(grad: Any, y: Any, slope: Callable[[float, float], float] = slope) -> np.ndarray:
            return by_entry(slope, grad, y)

        layouts: list[tuple[str, Maker]] = [(size(shape), uniform(*shape, low=-4, high=4)) for shape in SHAPES]
        layouts += [
            ("permuted", permuted(uniform(3, 4), (1, 0))),
            ("stretched", stretched(uniform(4), 3, 4)),
            ("strided", strided(uniform(3, 4))),
        ]
        for name, x in layouts:
            if operation != "tanh":  # a primitive
                yield Case(operation, name, of(x), forward, tolerance)
            shape = value_shape(x)
            yield Case(f"{operation}_backward", name, of(uniform(*shape), output(function, shape)), backward, tolerance)
            yield Case(f"{operation}_backward", f"{name}_grad", of(x, output(function, shape)), backward, tolerance)
        if operation != "tanh":
            yield Case(operation, "special", of(values(special)), forward, tolerance)
    y = values([NAN, -1.0, 0.0, -0.0, 1e-30, INF, 2.0, 0.0, 0.0])
    grad = values([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, NAN, NAN, INF])
    yield Case("relu_backward", "special", of(grad, y), lambda g, v: by_entry(relu_backward, g, v), EXACT)


def value_shape(maker: Maker) -> tuple[int, ...]:
    made: Any = host(maker(np.random.default_rng(0), "float64"))
    shape: tuple[int, ...] = made.shape
    return shape


def output(function: Callable[[float], float], shape: tuple[int, ...]) -> Maker:
    """What the forward would have saved, rounded to the case's dtype."""
    make = uniform(*shape, low=-4, high=4)
    return lambda rng, dtype: by_entry(function, make(rng, "float64")).astype(dtype)


def norm_cases() -> Iterator[Case]:
    for shape in [(4, 3), (1, 1, 2), (2, 3, 4), (2, 3, 4, 5), (8, 1, 3, 3), (5, 16, 1, 1), (33, 2, 7)]:
        c, eps = shape[1], 1e-5
        terms = Tolerance(math.prod(shape) // c, factor=4.0)
        x, weight = uniform(*shape, low=-3, high=3), uniform(c, low=0.5, high=2)
        yield Case("batch_norm", size(shape), of(x, weight, uniform(c), eps), batch_norm, terms)
        yield Case("batch_norm_backward", size(shape), norm_saved(shape, eps), batch_norm_backward, terms)
    x = permuted(uniform(3, 2, 4), (2, 0, 1))
    views = of(x, strided(uniform(2)), stretched(uniform(1), 2), 0.1)
    yield Case("batch_norm", "views", views, batch_norm, Tolerance(12, factor=4.0))
    shifted = of(uniform(16, 2, 5, low=99, high=101), uniform(2), uniform(2), 1e-5)
    yield Case("batch_norm", "shifted", shifted, batch_norm, Tolerance(80, factor=20.0))  # mean 100, deviation 0.6
    constant = of(values(np.full((4, 2, 3), 0.5)), uniform(2), uniform(2), 1e-5)
    yield Case("batch_norm", "constant", constant, batch_norm, Tolerance(12))
    stretched_grad = norm_saved((3, 2, 4), 1e-5, stretched(uniform(1, 2, 1), 3, 2, 4))
    yield Case("batch_norm_backward", "stretched", stretched_grad, batch_norm_backward, Tolerance(12, factor=4.0))


def norm_saved(
    shape: tuple[int, ...], eps: float, grad: Maker | None = None
) -> Callable[[np.random.Generator, str], list[Any]]:
    def build(rng: np.random.Generator, dtype: str) -> list[Any]:
        x = np.asarray(rng.uniform(-3, 3, shape), dtype)
        weight = np.asarray(rng.uniform(0.5, 2, shape[1]), dtype)
        _, mean, var = batch_norm(x.astype(np.float64), weight, weight, eps)
        upstream = (grad or uniform(*shape))(rng, dtype)
        return [upstream, x, weight, mean.astype(dtype), var.astype(dtype), eps]

    return build


CASES = [*helper_cases(), *activation_cases(), *norm_cases()]
