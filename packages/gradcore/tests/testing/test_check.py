"""check_case: each promise that it watches over is broken once, and it must say so."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.protocol import Backend
from gradcore.errors import DTypeError
from gradcore.testing.cases.case import Case, of, permuted, uniform, values
from gradcore.testing.check import Unsupported, check_case, operation

ADD = Case("add", "one", of(uniform(2, 3), uniform(3)), lambda a, b: a + b)
COPY = Case("copy_", "one", of(uniform(3), uniform(3)), lambda _, x: x, changes=(0,))


class Toy(NumpyBackend):
    name = "toy"


def toy(**methods: Callable[..., Any]) -> Any:
    """A NumPy backend with other methods."""
    return type("Toy", (Toy,), {name: staticmethod(method) for name, method in methods.items()})()


def add_into(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a += b
    return a


def drifting() -> Callable[..., np.ndarray]:
    calls: list[int] = []

    def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        calls.append(1)
        return np.add(a, b) * np.asarray(1 + 1e-7 * len(calls), a.dtype)

    return add


def test_a_right_backend_passes() -> None:
    for dtype in ("float32", "float64"):
        check_case(toy(), ADD, dtype)
        check_case(toy(), COPY, dtype)


@pytest.mark.parametrize(
    ("add", "text"),
    [
        (lambda a, b: np.add(a, b) + 1, "add-one: 6 of 6 entries differ"),
        (lambda a, b: np.add(a, b).ravel(), "got shape (6,), expected (2, 3)"),
        (lambda a, b: np.add(a, b).astype(np.float64), "got dtype float64, expected float32"),
        (lambda a, b: (np.add(a, b), a), "got 2 results, expected 1"),
        (lambda a, b: None, "got 0 results, expected 1"),
        (add_into, "changed its argument 0"),
        (drifting(), "the same call gives other bits in result 0"),
        (lambda a, b: np.where(a > 0.5, np.nan, np.add(a, b)).astype(a.dtype), "NaN pattern"),
    ],
)
def test_a_wrong_backend_is_told_apart(add: Callable[..., Any], text: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(text)):
        check_case(toy(add=add), ADD, "float32")


def test_results_of_two_calls_are_apart() -> None:
    out = np.empty((2, 3), np.float32)
    with pytest.raises(AssertionError, match="a second call changed the first call's result 0"):
        check_case(toy(add=lambda a, b: np.add(a, b, out=out)), ADD, "float32")


def test_what_should_change_in_place_must() -> None:
    with pytest.raises(AssertionError, match="copy_-one: 3 of 3 entries differ"):
        check_case(toy(copy_=lambda destination, source: None), COPY, "float32")


def test_a_missing_primitive_is_a_failure_with_its_name() -> None:
    class Bare(Toy):
        add = property(lambda self: self.__getattr__("add"))  # type: ignore[assignment]

    with pytest.raises(AssertionError, match="add: backend 'toy' lacks the primitive 'add'"):
        check_case(Bare(), ADD, "float32")


def test_an_inherited_empty_method_counts_as_missing() -> None:
    class Bare(Toy):
        add = Backend.add  # type: ignore[assignment]

    with pytest.raises(AssertionError, match="inherits the Protocol's empty add"):
        operation(Bare(), "add")


def test_float64_may_be_refused_float32_may_not() -> None:
    def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        raise DTypeError(f"add: no {a.dtype} here")

    with pytest.raises(Unsupported, match="backend 'toy' refuses float64: add: no float64 here"):
        check_case(toy(add=add), ADD, "float64")
    with pytest.raises(DTypeError):
        check_case(toy(add=add), ADD, "float32")


def test_a_view_that_the_backend_makes_wrong_is_no_fault_of_the_operation() -> None:
    case = Case("add", "view", of(permuted(uniform(2, 3), (1, 0)), 1.0), lambda a, b: a + b)
    wrong = toy(permute_dims=lambda x, axes: np.ascontiguousarray(x).reshape([x.shape[a] for a in axes]))
    with pytest.raises(Unsupported, match="gets permute_dims wrong"):
        check_case(wrong, case, "float32")


def test_float_results_have_the_dtype_of_the_case_others_their_own() -> None:
    case = Case("greater", "one", of(values([1.0, 2.0]), 1.5), lambda a, b: a > b)
    check_case(toy(), case, "float32")
    with pytest.raises(AssertionError, match="got dtype float32, expected bool"):
        check_case(toy(greater=lambda a, b: np.greater(a, b).astype(a.dtype)), case, "float32")
