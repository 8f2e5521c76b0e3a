"""Case: one call of one backend method, with an independent float64 reference; plain data, for tests and benchmarks.

A case's arguments are built on the host, the same for every backend. NumPy arrays among them are operands, lists hold
operands, a View is an operand that the backend itself makes non-contiguous, a Host stays a NumPy array; everything
else is an option and is passed as it is.

Next: elementwise.py, the first table; ../check.py, which runs a case.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOATS = ("float32", "float64")
ALL_DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")  # those that Array lists

Maker = Callable[[np.random.Generator, str], Any]  # (random numbers, dtype of the case) -> one host argument


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be off: rounding grows with the number of terms that are added up."""

    terms: int = 1
    factor: float = 1.0  # for what loses digits by its nature
    size: float = 1.0  # of a typical term

    def bounds(self, dtype: str) -> tuple[float, float]:
        """(rtol, atol): 1e-5 and 1e-6 in float32, 1e-12 and 1e-14 in float64, for a few terms of size 1."""
        scale = self.factor * self.size
        if dtype == "float64":
            return 1e-12 * self.factor, (1e-14 + 1e-16 * self.terms) * scale
        return (1e-4 if self.terms > 10_000 else 1e-5) * self.factor, (1e-6 + 1e-7 * self.terms) * scale


EXACT = Tolerance(factor=0.0)  # for what only moves or chooses values


@dataclass(frozen=True, slots=True)
class Case:
    """backend.<operation>(*arguments) against reference(*arguments).

    The reference gets float operands as float64. Its float results are compared in the case's dtype, others in their
    own. `changes`: the arguments that are changed in place; the reference returns the results, then their new values.
    """

    operation: str
    name: str  # unique within the operation; part of the test's id
    arguments: Callable[[np.random.Generator, str], list[Any]]
    reference: Callable[..., Any]
    tolerance: Tolerance = field(default=Tolerance())
    requires: type | None = None  # a capability
    dtypes: tuple[str, ...] = FLOATS
    result: str | None = None  # the results' dtype, where it is not the rule's
    changes: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.operation}-{self.name}"

    def build(self, dtype: str, variant: int = 0) -> list[Any]:
        """The arguments; equal ones at every call. Other variants have other random values."""
        return self.arguments(np.random.default_rng([zlib.crc32(self.id.encode()), variant]), dtype)


@dataclass(frozen=True, slots=True)
class View:
    """An operand with the values `value`, made on the backend as backend.<method>(base, *options)."""

    value: np.ndarray
    base: np.ndarray
    method: str
    options: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """An argument that stays a NumPy array."""

    value: np.ndarray


def of(*arguments: Any) -> Callable[[np.random.Generator, str], list[Any]]:
    """An arguments builder: makers are called in order, everything else is an option."""

    def build(rng: np.random.Generator, dtype: str) -> list[Any]:
        return [_make(one, rng, dtype) for one in arguments]

    return build


def _make(argument: Any, rng: np.random.Generator, dtype: str) -> Any:
    if isinstance(argument, list):
        return [_make(one, rng, dtype) for one in argument]
    return argument(rng, dtype) if callable(argument) else argument


def uniform(*shape: int, low: float = -1.0, high: float = 1.0) -> Maker:
    """Operand with entries between low and high; integers 0..9, or any bool, in a case of such a dtype."""

    def make(rng: np.random.Generator, dtype: str) -> np.ndarray:
        if dtype in FLOATS:
            return np.asarray(rng.uniform(low, high, shape), dtype)
        return np.asarray(rng.integers(0, 2 if dtype == "bool" else 10, shape), dtype)

    return make


def integers(*shape: int, low: int = 0, high: int, dtype: str = "int64") -> Maker:
    """Integer operand low <= entry < high, whatever the case's dtype."""
    return lambda rng, _: np.asarray(rng.integers(low, high, shape), dtype)


def values(data: Any, dtype: str | None = None) -> Maker:
    """Exactly these values, in the case's dtype or the given one."""

    def make(_: np.random.Generator, case_dtype: str) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(data, dtype or case_dtype)

    return make


def filled(shape: tuple[int, ...], value: float) -> Maker:
    """One value everywhere."""
    return lambda _, dtype: np.full(shape, value, dtype)


def shuffled(*shape: int, step: float = 1.0) -> Maker:
    """All entries different, by `step` at least: no ties."""

    def make(rng: np.random.Generator, dtype: str) -> np.ndarray:
        size = math.prod(shape)
        return np.asarray((rng.permutation(size) - size // 2) * step, dtype).reshape(shape)

    return make


def permuted(maker: Maker, axes: Sequence[int]) -> Maker:
    """The same operand, as a permute_dims of another: in memory its axes stand in the order `axes`."""
    inverse = tuple(sorted(range(len(axes)), key=axes.__getitem__))

    def make(rng: np.random.Generator, dtype: str) -> View:
        value = maker(rng, dtype)
        return View(value, np.ascontiguousarray(value.transpose(tuple(axes))), "permute_dims", (inverse,))

    return make


def stretched(maker: Maker, *shape: int) -> Maker:
    """The operand broadcast to `shape`, as a broadcast_to of a smaller one."""

    def make(rng: np.random.Generator, dtype: str) -> View:
        base = maker(rng, dtype)
        return View(np.array(np.broadcast_to(base, shape)), base, "broadcast_to", (shape,))

    return make


def strided(maker: Maker, steps: Sequence[int] | None = None) -> Maker:
    """The same operand, as every second entry (or every steps[i]-th) of a larger one, along each axis."""

    def make(rng: np.random.Generator, dtype: str) -> View:
        value = maker(rng, dtype)
        stride = (2,) * value.ndim if steps is None else tuple(steps)
        base = np.zeros([n * s for n, s in zip(value.shape, stride, strict=True)], value.dtype)
        base[tuple(slice(s - 1, None, s) for s in stride)] = value
        return View(value, base, "strided_slice", (tuple(s - 1 for s in stride), base.shape, stride))

    return make


def host(argument: Any) -> Any:
    """An argument as the reference sees it: plain arrays, floats as float64."""
    if isinstance(argument, list | tuple):
        return type(argument)(host(one) for one in argument)
    if isinstance(argument, View | Host):
        argument = argument.value
    if isinstance(argument, np.ndarray):
        return np.array(argument, np.float64 if argument.dtype.kind == "f" else argument.dtype)
    return argument
