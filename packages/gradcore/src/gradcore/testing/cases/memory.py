"""Memory primitives that a table can hold: full, asarray, to_numpy, copy_, astype, for every element type.

The suite's test_memory.py has the rest: that asarray copies, that memory stays where it is, that empty is usable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcore.testing.cases.case import (
    ALL_DTYPES,
    EXACT,
    FLOATS,
    Case,
    Host,
    Maker,
    of,
    permuted,
    stretched,
    strided,
    uniform,
    values,
)
from gradcore.testing.cases.elementwise import SPECIAL, size

SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (3, 4), (2, 1, 3), (0,), (2, 0, 3), (1, 2, 3, 4, 5)]


def case_dtype(_: np.random.Generator, dtype: str) -> str:
    return dtype


def layout(name: str) -> Maker:
    """A host array (3, 4) as a user may hold it."""

    def make(rng: np.random.Generator, dtype: str) -> Host:
        array = np.asarray(uniform(3, 4)(rng, dtype))
        if name == "fortran":
            array = np.asfortranarray(array)
        elif name == "reversed":
            array = array[::-1, ::-1]
        elif name == "strided":
            array = np.repeat(np.repeat(array, 2, 0), 3, 1)[::2, ::3]
        elif name == "broadcast":
            array = np.broadcast_to(array[:1], (3, 4))
        elif name == "read_only":
            array.flags.writeable = False
        return Host(array)

    return make


def full(shape: tuple[int, ...], value: float, dtype: str) -> np.ndarray:
    return np.array([value] * math.prod(shape), dtype).reshape(shape)


def convert(x: np.ndarray, dtype: str) -> np.ndarray:
    """Float to integer truncates, anything to bool is `!= 0`."""
    if dtype == "bool":
        entries: list[Any] = [v != 0 for v in x.ravel().tolist()]
    elif dtype in FLOATS:
        entries = [float(v) for v in x.ravel().tolist()]
    else:
        entries = [math.trunc(v) for v in x.ravel().tolist()]
    with np.errstate(all="ignore"):
        return np.array(entries, dtype).reshape(x.shape)


def memory_cases() -> Iterator[Case]:
    for shape in SHAPES:
        yield Case("full", size(shape), of(shape, 1, case_dtype), full, EXACT, dtypes=ALL_DTYPES)
        yield Case("to_numpy", size(shape), of(uniform(*shape)), lambda x: x, EXACT, dtypes=ALL_DTYPES)
        yield Case("asarray", size(shape), of(hosted(uniform(*shape))), lambda x: x, EXACT, dtypes=ALL_DTYPES)
        yield Case(
            "copy_",
            size(shape),
            of(uniform(*shape), uniform(*shape)),
            lambda _, x: x,
            EXACT,
            dtypes=ALL_DTYPES,
            changes=(0,),
        )
    for value in (-2.5, math.inf, math.nan, 0.1):
        yield Case("full", f"value_{value}", of((2, 3), value, case_dtype), full, EXACT)
    for name in ("fortran", "reversed", "strided", "broadcast", "read_only"):
        yield Case("asarray", name, of(layout(name)), lambda x: x, EXACT, dtypes=ALL_DTYPES)
    for name, view in [
        ("permuted", permuted(uniform(3, 4), (1, 0))),
        ("stretched", stretched(uniform(4), 3, 4)),
        ("strided", strided(uniform(3, 4))),
    ]:
        yield Case("to_numpy", name, of(view), lambda x: x, EXACT, dtypes=ALL_DTYPES)
        yield Case("copy_", name, of(uniform(3, 4), view), lambda _, x: x, EXACT, dtypes=ALL_DTYPES, changes=(0,))
    yield Case("asarray", "special", of(hosted(values(SPECIAL))), lambda x: x, EXACT)
    yield Case(
        "copy_", "special", of(values([0.0] * len(SPECIAL)), values(SPECIAL)), lambda _, x: x, EXACT, changes=(0,)
    )


def hosted(maker: Maker) -> Maker:
    return lambda rng, dtype: Host(maker(rng, dtype))


def astype_cases() -> Iterator[Case]:
    for target in ALL_DTYPES:
        for source in ALL_DTYPES:
            low, high = (0, 9) if target == "uint8" else (-9, 9)
            make = uniform(3, 5, low=low, high=high)
            yield Case("astype", f"to_{target}", of(make, target), convert, EXACT, dtypes=(source,), result=target)
        yield Case("astype", f"empty_to_{target}", of(uniform(0, 3), target), convert, EXACT, result=target)
        turned = permuted(uniform(3, 4, low=0, high=9), (1, 0))
        yield Case("astype", f"permuted_to_{target}", of(turned, target), convert, EXACT, result=target)
    for target in ("bool", *FLOATS):
        special = of(values(SPECIAL), target)
        yield Case("astype", f"special_to_{target}", special, convert, EXACT, result=target)
    halves = of(values([-2.9, -1.5, -0.5, 0.5, 1.5, 2.9]), "int32")
    yield Case("astype", "truncates", halves, convert, EXACT, result="int32")
    large = of(values([1e300, -1e300, 1e-300]), "float32")
    yield Case("astype", "float32_overflow", large, convert, EXACT, dtypes=("float64",), result="float32")


CASES = [*memory_cases(), *astype_cases()]
