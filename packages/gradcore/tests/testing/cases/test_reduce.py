"""The references of the reductions, against PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.reduce import CASES, argmax, exact_sum, sum_


def test_sum_against_torch(torch_agrees: Callable[..., None]) -> None:
    def total(x: Any, axis: Any, keepdims: bool) -> Any:
        return x.clone() if axis == () else x.sum(axis, keepdim=keepdims)

    torch_agrees([case for case in CASES if case.operation == "sum"], total)


def test_max_against_torch(torch_agrees: Callable[..., None]) -> None:
    def largest(x: Any, axis: Any, keepdims: bool) -> Any:
        axes = tuple(range(x.ndim)) if axis is None else axis
        return x.amax(axes, keepdim=keepdims) if axes else x.clone()

    torch_agrees([case for case in CASES if case.operation == "max"], largest)


def test_argmax_against_torch(torch_agrees: Callable[..., None]) -> None:
    def first(x: Any, axis: Any, keepdims: bool) -> Any:
        return x.argmax(axis, keepdim=keepdims)

    torch_agrees([case for case in CASES if case.operation == "argmax"], first, skip=["ties"])  # PyTorch: any of them


def test_argmax_takes_the_first_of_equals_and_the_first_nan() -> None:
    assert argmax(np.array([[2.0, 5, 5, 1], [1, math.nan, 3, math.nan]]), 1, False).tolist() == [1, 1]


def test_sums_are_exact() -> None:
    assert exact_sum([0.1] * 10) == 1.0
    assert math.isnan(exact_sum([math.inf, -math.inf]))
    assert sum_(np.full((1000, 2), 0.1), (0,), False).tolist() == [100.0, 100.0]


@pytest.mark.parametrize("keepdims", [False, True])
def test_no_entries(keepdims: bool) -> None:
    assert sum_(np.zeros((0, 3)), (0,), keepdims).tolist() == ([[0.0] * 3] if keepdims else [0.0] * 3)
