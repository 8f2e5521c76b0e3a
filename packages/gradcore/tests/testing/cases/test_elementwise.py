"""The references of the elementwise primitives, against PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.elementwise import BINARY, CASES, UNARY, by_entry, power, sign

TORCH = {"equal": "eq", "greater_equal": "ge", "greater": "gt", "power": "pow"}


@pytest.mark.parametrize("operation", [*BINARY, *UNARY, "where"])
def test_against_torch(operation: str, torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    function = getattr(torch, TORCH.get(operation, operation))

    def with_tensors(*arguments: Any) -> Any:
        """A Python scalar as a tensor of the last operand's type (the first of `where` is the condition)."""
        dtype = [one.dtype for one in arguments if hasattr(one, "dtype")][-1]
        return function(*(one if hasattr(one, "dtype") else torch.tensor(one, dtype=dtype) for one in arguments))

    skip = ["special"] if operation == "sign" else []  # PyTorch has sign(NaN) = 0
    torch_agrees([case for case in CASES if case.operation == operation], with_tensors, skip=skip)


def test_corners_of_power() -> None:
    inf = np.inf
    assert [power(*one) for one in [(0.0, 0.0), (-2.0, 3.0), (0.0, -1.0), (-0.0, -1.0), (-0.0, -2.0)]] == [
        1.0,
        -8.0,
        inf,
        -inf,
        inf,
    ]
    assert np.isnan(power(-8.0, 1 / 3))
    assert power(-1e200, 3.0) == -inf


def test_sign_passes_nan_on() -> None:
    assert np.isnan(sign(np.nan))
    assert [sign(v) for v in (-3.0, -0.0, 2.0)] == [-1.0, 0.0, 1.0]


def test_by_entry_broadcasts_and_keeps_the_type() -> None:
    found = by_entry(lambda a, b: a + b, np.ones((2, 1), np.int32), np.arange(3))
    assert found.tolist() == [[1, 2, 3], [1, 2, 3]]
    assert found.dtype == np.int32
    assert by_entry(lambda a, b: a < b, np.ones((0, 2)), 1.0, dtype="bool").shape == (0, 2)
