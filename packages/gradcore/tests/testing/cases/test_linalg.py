"""The references of the matrix products, against PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.linalg import CASES, product, wide_product


def matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    return (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)


TORCH: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "linear": lambda x, w, b: x @ w.T if b is None else x @ w.T + b,
    "linear_backward_input": lambda grad, w: grad @ w,
    "linear_backward_weight": lambda grad, x: grad.T @ x,
}


@pytest.mark.parametrize("operation", TORCH)
def test_against_torch(operation: str, torch_agrees: Callable[..., None]) -> None:
    torch_agrees([case for case in CASES if case.operation == operation], TORCH[operation])


def test_both_ways_to_multiply() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (5, 7)), rng.uniform(-1, 1, (7, 3))
    np.testing.assert_allclose(product(a, b), wide_product(a, b), rtol=1e-13)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-13)
