"""Elementwise primitives: each computed entry by entry with Python numbers, as IEEE 754 has it.

A Python scalar takes the array's dtype. Shapes: equal, stretched, scalar, size-one axes, empty, odd, non-contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradcore.testing.cases.case import (
    ALL_DTYPES,
    EXACT,
    Case,
    Maker,
    Tolerance,
    of,
    permuted,
    stretched,
    strided,
    uniform,
    values,
)

NAN, INF = math.nan, math.inf
SPECIAL = [NAN, -INF, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, INF]


def by_entry(function: Callable[..., Any], *operands: Any, dtype: Any = None) -> np.ndarray:
    """function applied to Python numbers, with broadcasting; of the dtype given, or of the first array's."""
    kind = dtype or next(one.dtype for one in operands if isinstance(one, np.ndarray))
    arrays = np.broadcast_arrays(*operands)
    flat = [function(*entry) for entry in zip(*(one.ravel().tolist() for one in arrays), strict=True)]
    return np.array(flat, kind).reshape(arrays[0].shape)


def divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    return NAN if a == 0.0 or a != a else math.copysign(INF, a) * math.copysign(1.0, b)


def power(a: float, b: float) -> float:
    odd = math.isfinite(b) and b == int(b) and int(b) % 2 == 1
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0.0 and odd else INF
    except ValueError:  # 0 to a negative power, or a root of a negative number
        return NAN if a != 0.0 else math.copysign(INF, a) if odd else INF


def maximum(a: float, b: float) -> float:
    return NAN if a != a or b != b else max(a, b)


def sign(x: float) -> float:
    return x if x != x else float((x > 0) - (x < 0))


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def log(x: float) -> float:
    return -INF if x == 0.0 else NAN if x < 0.0 else math.log(x)


def log1p(x: float) -> float:
    return -INF if x == -1.0 else NAN if x < -1.0 else math.log1p(x)


def sqrt(x: float) -> float:
    return NAN if x < 0.0 else math.sqrt(x)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": divide,
    "power": power,
    "maximum": maximum,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
}
COMPARISONS = ("greater", "greater_equal", "equal")
SCALAR_LEFT = ("subtract", "divide", "power", "greater", "greater_equal")

# operation: (function, low, high, values that deserve a look)
UNARY: dict[str, tuple[Callable[[float], Any], float, float, list[float]]] = {
    "negative": (lambda x: -x, -9, 9, SPECIAL),
    "abs": (abs, -9, 9, SPECIAL),
    "sign": (sign, -9, 9, SPECIAL),
    "exp": (exp, -5, 5, [NAN, -INF, -1e4, -87.0, -0.0, 1.0, 88.0, 100.0, 1e4, INF]),
    "log": (log, 0.05, 20, [NAN, -INF, -1.0, -0.0, 0.0, 1e-30, 1.0, 1e30, INF]),
    "log1p": (log1p, -0.9, 20, [NAN, -INF, -2.0, -1.0, -0.0, 1.0, 1e30, INF]),
    "sqrt": (sqrt, 0, 20, [NAN, -INF, -1.0, -0.0, 0.0, 1e-30, 4.0, 1e30, INF]),
    "tanh": (math.tanh, -3, 3, [NAN, -INF, -1e4, -20.0, -0.0, 1e-3, 20.0, 1e4, INF]),
}


def binary_reference(operation: str) -> Callable[..., np.ndarray]:
    function = BINARY[operation]
    kind = "bool" if operation in COMPARISONS else None
    return lambda a, b: by_entry(function, a, b, dtype=kind)


def pairs(maker: Callable[..., Maker]) -> Iterator[tuple[str, Any, Any]]:
    """Two operands each: (name, a, b)."""
    for a, b in [
        ((3, 4), (3, 4)),
        ((), ()),
        ((1,), (1,)),
        ((1031,), (1031,)),
        ((3, 1), (1, 4)),
        ((2, 3, 5), (5,)),
        ((), (2, 3)),
        ((5, 4), (1,)),
        ((7, 1, 3), (1, 5, 1)),
        ((2, 1, 3, 1, 2), (1, 4, 1, 5, 2)),
        ((0, 3), (0, 3)),
        ((0, 3), (1, 3)),
        ((3, 0), (3, 1)),
        ((2, 0, 3), ()),
    ]:
        yield f"{size(a)}_{size(b)}", maker(*a), maker(*b)
    yield "permuted_right", maker(3, 5), permuted(maker(3, 5), (1, 0))
    yield "permuted_both", permuted(maker(2, 3, 4), (2, 0, 1)), permuted(maker(2, 3, 4), (1, 2, 0))
    yield "stretched", stretched(maker(3, 1), 3, 4), maker(3, 4)
    yield "strided", strided(maker(3, 4)), maker(3, 4)
    yield "strided_stretched", strided(maker(3, 1)), stretched(maker(4), 2, 3, 4)


def size(shape: tuple[int, ...]) -> str:
    """(5, 7) as 5x7, () as scalar."""
    return "x".join(str(n) for n in shape) if shape else "scalar"


def binary_cases() -> Iterator[Case]:
    grid = [(a, b) for a in SPECIAL for b in SPECIAL]
    for operation in BINARY:
        reference = binary_reference(operation)
        tolerance = Tolerance(factor=4.0) if operation == "power" else Tolerance()
        tolerance = EXACT if operation in (*COMPARISONS, "maximum") else tolerance

        def maker(*shape: int, operation: str = operation) -> Maker:
            away = operation in ("divide", "power")  # from 0
            return uniform(*shape, low=0.2 if away else -2.0, high=3.0 if away else 2.0)

        for name, a, b in pairs(maker):
            yield Case(operation, name, of(a, b), reference, tolerance)
        yield Case(operation, "array_scalar", of(maker(3, 4), 0.5), reference, tolerance)
        yield Case(operation, "empty_scalar", of(maker(0, 2), 2.0), reference, tolerance)
        yield Case(operation, "view_scalar", of(permuted(maker(3, 4), (1, 0)), 1.5), reference, tolerance)
        if operation in SCALAR_LEFT:
            yield Case(operation, "scalar_array", of(1.5, maker(3, 4)), reference, tolerance)
        yield Case(
            operation, "special", of(values([a for a, _ in grid]), values([b for _, b in grid])), reference, tolerance
        )
        for scalar in (0.0, 2.0, -1.0):
            yield Case(operation, f"special_scalar_{scalar:g}", of(values(SPECIAL), scalar), reference, tolerance)
    for operation in ("add", "multiply"):
        yield Case(operation, "70000x1_1x2", of(uniform(70_000, 1), uniform(1, 2)), binary_reference(operation))


def integer_cases() -> Iterator[Case]:
    """Counters, cursors and labels are integers."""
    integers = ("int32", "int64")
    for operation in ("add", "subtract", "multiply"):
        reference = binary_reference(operation)
        yield Case(operation, "integers", of(uniform(3, 4), uniform(4)), reference, dtypes=integers)
        yield Case(operation, "integer_scalar", of(uniform(), 3), reference, dtypes=integers)
    big = [2**31 + 1, 2**40, -(2**40), 2**53 + 1]
    yield Case(
        "add", "int64_beyond_float", of(values(big), values(big[::-1])), binary_reference("add"), dtypes=("int64",)
    )
    for operation in COMPARISONS:
        reference = binary_reference(operation)
        kinds = ALL_DTYPES[2:] if operation == "equal" else (*integers, "uint8")
        yield Case(operation, "integers", of(uniform(5, 4), uniform(4)), reference, dtypes=kinds)
        yield Case(operation, "integer_scalar", of(uniform(9), 1), reference, dtypes=kinds)
    yield Case("equal", "int64_beyond_float", of(values(big), 2**53), binary_reference("equal"), dtypes=("int64",))
    yield Case("equal", "bool_scalar", of(uniform(9), False), binary_reference("equal"), dtypes=("bool",))


def where(condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
    kind = next(one.dtype for one in (a, b) if isinstance(one, np.ndarray))
    return by_entry(lambda c, x, y: x if c else y, condition, a, b, dtype=kind)


def condition(*shape: int) -> Maker:
    return lambda rng, _: np.asarray(rng.random(shape) < 0.5)


def where_cases() -> Iterator[Case]:
    for c, a, b in [
        ((3, 4), (3, 4), (3, 4)),
        ((), (), ()),
        ((3, 1), (1, 4), ()),
        ((), (2, 3), (3,)),
        ((5, 1, 3), (4, 1), (1,)),
        ((0, 3), (1, 3), ()),
        ((1031,), (1031,), (1,)),
    ]:
        yield Case(
            "where",
            f"{size(c)}_{size(a)}_{size(b)}",
            of(condition(*c), uniform(*a), uniform(*b)),
            where,
            EXACT,
            dtypes=ALL_DTYPES,
        )
    yield Case("where", "scalar_left", of(condition(3, 4), 0.0, uniform(3, 4)), where, EXACT)
    yield Case("where", "scalar_right", of(condition(3, 4), uniform(4), -1.5), where, EXACT)
    yield Case("where", "permuted", of(permuted(condition(3, 4), (1, 0)), strided(uniform(3, 4)), 0.0), where, EXACT)
    yield Case(
        "where", "stretched", of(stretched(condition(4), 3, 4), 0.0, stretched(uniform(3, 1), 3, 4)), where, EXACT
    )
    chosen = values([True, False, True, False], "bool")
    special = of(chosen, values([NAN, NAN, INF, 1.0]), values([0.0, 1.0, NAN, -INF]))
    yield Case("where", "special", special, where, EXACT)


def unary_cases() -> Iterator[Case]:
    for operation, (function, low, high, special) in UNARY.items():

        def maker(*shape: int, low: float = low, high: float = high) -> Maker:
            return uniform(*shape, low=low, high=high)

        def reference(x: Any, function: Callable[[float], Any] = function) -> np.ndarray:
            return by_entry(function, x)

        tolerance = EXACT if operation in ("negative", "abs", "sign") else Tolerance()
        for shape in [(), (1,), (7,), (3, 4), (1, 5, 1), (2, 3, 4), (1031,), (0,), (2, 0, 3)]:
            yield Case(operation, size(shape), of(maker(*shape)), reference, tolerance)
        yield Case(operation, "permuted", of(permuted(maker(2, 3, 4), (2, 0, 1))), reference, tolerance)
        yield Case(operation, "stretched", of(stretched(maker(4), 3, 4)), reference, tolerance)
        yield Case(operation, "strided", of(strided(maker(3, 5))), reference, tolerance)
        yield Case(operation, "special", of(values(special)), reference, tolerance)
    small = Tolerance(size=1e-7)
    tiny = of(values([1e-7, -1e-7, 3e-5, 1e-12]))
    yield Case("log1p", "small", tiny, lambda x: by_entry(log1p, x), small)
    yield Case("tanh", "small", tiny, lambda x: by_entry(math.tanh, x), small)


CASES = [*binary_cases(), *integer_cases(), *where_cases(), *unary_cases()]
