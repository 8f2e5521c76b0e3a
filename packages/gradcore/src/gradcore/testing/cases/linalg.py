"""Matrix products: matmul with both transpose flags and leading axes, and linear, y = x @ w.T + b, with its backwards.

Every entry of the reference is one sum of products, added up exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gradcore.testing.cases.case import Case, Tolerance, of, permuted, stretched, strided, uniform, values
from gradcore.testing.cases.elementwise import size
from gradcore.testing.cases.reduce import exact_sum


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, k) @ (k, m), row by column."""
    if a.shape[0] * b.shape[1] * a.shape[1] > 20_000:  # an exact loop would take seconds
        return wide_product(a, b)
    rows, columns = a.tolist(), b.T.tolist()
    entries = [[exact_sum([x * y for x, y in zip(row, column, strict=True)]) for column in columns] for row in rows]
    return np.array(entries, np.float64).reshape(a.shape[0], b.shape[1])


def wide_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same as a sum of outer products."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[None, k, :]
    return total


def matmul(a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = math.prod(lead)
    many_a = np.broadcast_to(a, (*lead, *a.shape[-2:])).reshape(count, *a.shape[-2:])
    many_b = np.broadcast_to(b, (*lead, *b.shape[-2:])).reshape(count, *b.shape[-2:])
    out = np.zeros((count, a.shape[-2], b.shape[-1]))
    for i in range(count):
        out[i] = product(many_a[i], many_b[i])
    return out.reshape(*lead, *out.shape[1:])


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return product(x, weight.T) + (0.0 if bias is None else bias)


def linear_backward_input(grad: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return product(grad, weight)


def linear_backward_weight(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    return product(grad.T, x)


def matmul_cases() -> Iterator[Case]:
    inner: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((3, 4), (4, 5)),
        ((1, 1), (1, 1)),
        ((5, 7), (7, 2)),
        ((1, 9), (9, 1)),
        ((9, 1), (1, 9)),
        ((17, 33), (33, 19)),
        ((64, 65), (65, 63)),
        ((0, 4), (4, 5)),
        ((3, 0), (0, 5)),
        ((3, 4), (4, 0)),
    ]
    for a, b in inner:
        for flip_a, flip_b in [(False, False), (False, True), (True, False), (True, True)]:
            left, right = (a[::-1] if flip_a else a), (b[::-1] if flip_b else b)
            name = f"{size(left)}{'T' if flip_a else ''}_{size(right)}{'T' if flip_b else ''}"
            yield Case("matmul", name, of(uniform(*left), uniform(*right), flip_a, flip_b), matmul, Tolerance(a[-1]))
    many: list[tuple[tuple[int, ...], tuple[int, ...], bool, bool]] = [
        ((2, 3, 4), (2, 4, 5), False, False),
        ((2, 3, 4), (4, 5), False, False),
        ((3, 4), (2, 4, 5), False, False),
        ((2, 1, 3, 4), (5, 4, 2), False, False),
        ((2, 4, 3), (2, 4, 5), True, False),
        ((2, 3, 4), (1, 5, 4), False, True),
        ((2, 4, 3), (5, 4), True, True),
        ((0, 3, 4), (4, 5), False, False),
        ((2, 0, 4), (2, 4, 5), False, False),
    ]
    for a, b, flip_a, flip_b in many:
        name = f"{size(a)}{'T' if flip_a else ''}_{size(b)}{'T' if flip_b else ''}"
        yield Case("matmul", name, of(uniform(*a), uniform(*b), flip_a, flip_b), matmul, Tolerance(4))
    turned = permuted(uniform(5, 7), (1, 0))
    yield Case("matmul", "permuted_left", of(turned, uniform(7, 3), False, False), matmul, Tolerance(7))
    yield Case("matmul", "permuted_left_T", of(turned, uniform(5, 3), True, False), matmul, Tolerance(5))
    yield Case("matmul", "permuted_right_T", of(uniform(3, 7), turned, False, True), matmul, Tolerance(7))
    yield Case("matmul", "stretched", of(stretched(uniform(1, 4), 3, 4), uniform(4, 2), False, False), matmul)
    yield Case("matmul", "strided", of(strided(uniform(3, 4)), strided(uniform(4, 2)), False, False), matmul)
    yield Case("matmul", "special", of(values([[1.0, np.inf], [np.nan, 0.0]]), uniform(2, 2), False, False), matmul)
    # a float32 product rounded to TF32 gives 4096 here
    precise = of(values(np.full((1, 4096), 1 + 2.0**-12)), values(np.ones((4096, 1))), False, False)
    yield Case("matmul", "not_tf32", precise, matmul, Tolerance(4096, size=0.01))
    long = of(uniform(2, 70_000), uniform(70_000, 3), False, False)
    yield Case("matmul", "2x70000_70000x3", long, matmul, Tolerance(70_000, size=0.01))


def linear_cases() -> Iterator[Case]:
    for n, inputs, outputs in [(3, 4, 5), (1, 1, 1), (1, 7, 3), (8, 1, 2), (5, 33, 17), (0, 4, 5), (8, 1568, 128)]:
        name = f"{n}x{inputs}_{outputs}"
        x, weight, bias = uniform(n, inputs), uniform(outputs, inputs), uniform(outputs)
        grad = uniform(n, outputs)
        yield Case("linear", name, of(x, weight, bias), linear, Tolerance(inputs))
        yield Case("linear", f"{name}_no_bias", of(x, weight, None), linear, Tolerance(inputs))
        yield Case("linear_backward_input", name, of(grad, weight), linear_backward_input, Tolerance(outputs))
        yield Case("linear_backward_weight", name, of(grad, x), linear_backward_weight, Tolerance(n))
    turned = permuted(uniform(3, 4), (1, 0))
    yield Case("linear", "permuted", of(turned, permuted(uniform(5, 4), (1, 0)), uniform(5)), linear, Tolerance(4))
    yield Case("linear_backward_input", "permuted", of(turned, uniform(4, 5)), linear_backward_input, Tolerance(4))
    yield Case("linear_backward_weight", "permuted", of(turned, uniform(3, 5)), linear_backward_weight, Tolerance(3))
    stretched_grad = stretched(uniform(1, 4), 3, 4)  # as from a sum over the batch
    yield Case(
        "linear_backward_input", "stretched", of(stretched_grad, uniform(4, 5)), linear_backward_input, Tolerance(4)
    )
    yield Case(
        "linear_backward_weight", "stretched", of(stretched_grad, uniform(3, 5)), linear_backward_weight, Tolerance(3)
    )
    yield Case("linear", "70000x3_2", of(uniform(70_000, 3), uniform(2, 3), uniform(2)), linear, Tolerance(3))


CASES = [*matmul_cases(), *linear_cases()]
