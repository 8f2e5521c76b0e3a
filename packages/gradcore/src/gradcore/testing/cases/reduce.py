"""Reductions: sum (math.fsum, exactly rounded), max and argmax, over some axes, all of them or none of them.

Float sums must be as good as pairwise, along any axis: 1e-4 relative for a million float32 terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcore.testing.cases.case import (
    EXACT,
    Case,
    Tolerance,
    filled,
    integers,
    of,
    permuted,
    shuffled,
    stretched,
    strided,
    uniform,
    values,
)
from gradcore.testing.cases.elementwise import size

NAN, INF = math.nan, math.inf


def over(function: Callable[[list[float]], Any], x: np.ndarray, axis: Any, keepdims: bool, dtype: Any) -> np.ndarray:
    """function applied to the list of entries that fall together, in row-major order."""
    axes = tuple(range(x.ndim)) if axis is None else axis
    kept = [i for i in range(x.ndim) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    rows = x.transpose(*kept, *axes).reshape(math.prod(x.shape[i] for i in kept), count)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else [x.shape[i] for i in kept]
    return np.array([function(row.tolist()) for row in rows], dtype).reshape(shape)


def exact_sum(terms: list[float]) -> float:
    try:
        return math.fsum(terms)
    except (ValueError, OverflowError):  # inf - inf; fsum has no word for it
        return NAN


def sum_(x: np.ndarray, axis: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return over(exact_sum, x, axis, keepdims, np.float64)


def max_(x: np.ndarray, axis: tuple[int, ...] | None, keepdims: bool) -> np.ndarray:
    return over(lambda row: NAN if any(v != v for v in row) else max(row), x, axis, keepdims, np.float64)


def first_largest(row: list[float]) -> int:
    best = 0
    for i, value in enumerate(row):
        if value != value:
            return i
        if value > row[best]:
            best = i
    return best


def argmax(x: np.ndarray, axis: int | None, keepdims: bool) -> np.ndarray:
    return over(first_largest, x, None if axis is None else (axis,), keepdims, np.int64)


def sum_cases() -> Iterator[Case]:
    layouts: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [
        ((), None),
        ((), ()),
        ((1,), (0,)),
        ((7,), (0,)),
        ((3, 4), None),
        ((3, 4), (0,)),
        ((3, 4), (1,)),
        ((3, 4), ()),
        ((2, 3, 5), (1,)),
        ((2, 3, 5), (0, 2)),
        ((2, 3, 5), (0, 1, 2)),
        ((4, 3, 5, 7), (0, 2, 3)),
        ((1, 5, 1), (0, 2)),
        ((33, 65), (0,)),
        ((5, 1031), (1,)),
        ((1031, 5), (0,)),
        ((0,), (0,)),
        ((0, 3), (0,)),
        ((0, 3), (1,)),
        ((3, 0), None),
        ((2, 0, 3), (0, 2)),
    ]
    for shape, axis in layouts:
        terms = math.prod(shape[i] for i in range(len(shape)) if axis is None or i in axis)
        for keepdims in (False, True):
            name = f"{size(shape)}_{named(axis)}{'_keepdims' if keepdims else ''}"
            yield Case("sum", name, of(uniform(*shape), axis, keepdims), sum_, Tolerance(terms))
    yield Case("sum", "permuted", of(permuted(uniform(3, 4, 5), (2, 0, 1)), (1,), False), sum_, Tolerance(4))
    yield Case("sum", "permuted_all", of(permuted(uniform(30, 40), (1, 0)), None, False), sum_, Tolerance(1200))
    yield Case("sum", "stretched", of(stretched(uniform(1, 4), 500, 4), (0,), False), sum_, Tolerance(500))
    yield Case("sum", "strided", of(strided(uniform(30, 40)), (0,), True), sum_, Tolerance(30))
    yield Case("sum", "special", of(values([[1, NAN], [INF, 1], [INF, -INF], [-INF, 2]]), (1,), False), sum_)
    yield Case("sum", "70000x2", of(uniform(70_000, 2), (1,), False), sum_, Tolerance(2))
    # 0.1 a million times; adding one by one in float32 is 1 % off
    million = Tolerance(1_000_000, size=1e-5)
    for name, shape, axis in [
        ("million", (1_000_000,), None),
        ("million_rows", (500_000, 2), (0,)),
        ("million_columns", (2, 500_000), (1,)),
        ("million_inner", (1000, 2, 500), (0, 2)),
        ("million_square", (1000, 1000), None),
    ]:
        # summing two columns needs 500,000 terms each: the same bound
        yield Case("sum", name, of(filled(shape, 0.1), axis, False), sum_, million, dtypes=("float32",))


def max_cases() -> Iterator[Case]:
    layouts: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [
        ((), None),
        ((1,), (0,)),
        ((7,), None),
        ((3, 4), (0,)),
        ((3, 4), (1,)),
        ((2, 3, 5), (1,)),
        ((2, 3, 5), (0, 2)),
        ((2, 3, 5), None),
        ((5, 1031), (1,)),
        ((0, 3), (1,)),
        ((2, 0, 3), (0, 2)),
    ]
    for shape, axis in layouts:
        for keepdims in (False, True):
            name = f"{size(shape)}_{named(axis)}{'_keepdims' if keepdims else ''}"
            yield Case("max", name, of(uniform(*shape, low=-9, high=-1), axis, keepdims), max_, EXACT)
    rows = [[1, NAN, 3], [NAN, NAN, NAN], [-INF, -INF, -INF], [-INF, 2, INF], [3, 3, 1]]
    yield Case("max", "special", of(values(rows), (1,), False), max_, EXACT)
    yield Case("max", "special_all", of(values(rows), None, False), max_, EXACT)
    yield Case("max", "permuted", of(permuted(uniform(3, 4, 5), (2, 0, 1)), (1,), False), max_, EXACT)
    yield Case("max", "strided", of(strided(uniform(3, 4)), (0,), True), max_, EXACT)


def argmax_cases() -> Iterator[Case]:
    for shape, axis in [
        ((), None),
        ((7,), None),
        ((7,), 0),
        ((3, 4), None),
        ((3, 4), 0),
        ((3, 4), 1),
        ((2, 3, 5), 1),
        ((5, 1031), 1),
        ((0, 3), 1),
        ((2, 0, 3), 0),
        ((64, 10), 1),
    ]:
        for keepdims in (False, True):
            name = f"{size(shape)}_{axis}{'_keepdims' if keepdims else ''}"
            yield Case("argmax", name, of(shuffled(*shape), axis, keepdims), argmax, EXACT)
    yield Case("argmax", "ties", of(integer_valued(40, 30), 1, False), argmax, EXACT)
    rows = [[1, NAN, 3], [NAN, NAN, NAN], [2, 5, 5], [-INF, -INF, -INF], [-INF, INF, INF], [INF, 0, NAN]]
    yield Case("argmax", "special", of(values(rows), 1, False), argmax, EXACT)
    yield Case("argmax", "special_all", of(values(rows), None, False), argmax, EXACT)
    yield Case("argmax", "permuted", of(permuted(shuffled(3, 4), (1, 0)), None, False), argmax, EXACT)
    yield Case("argmax", "strided", of(strided(shuffled(3, 4)), 0, False), argmax, EXACT)


def integer_valued(*shape: int) -> Callable[[np.random.Generator, str], np.ndarray]:
    """Floats with many ties."""
    make = integers(*shape, high=4)
    return lambda rng, dtype: np.asarray(make(rng, dtype), dtype)


def named(axis: tuple[int, ...] | None) -> str:
    return "all" if axis is None else "axis" + "".join(map(str, axis))


CASES = [*sum_cases(), *max_cases(), *argmax_cases()]
