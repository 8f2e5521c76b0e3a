"""Matrix products and linear with its backwards. Cases: ../cases/linalg.py."""

from typing import Any

import numpy as np

from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation


@each_case("linalg")
def test_linalg(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


@operation("matmul")
def test_matmul_of_whole_numbers_is_exact(backend: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, shape).astype(np.float32) for shape in [(37, 41), (41, 43)])
    y = backend.matmul(backend.asarray(a), backend.asarray(b), False, False)
    assert_close(backend.to_numpy(y), a @ b, rtol=0, atol=0)


@operation("linear")
def test_a_row_does_not_depend_on_its_batch(backend: Any) -> None:
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in [(5, 33), (7, 33), (7,)])
    weight, bias = backend.asarray(weight), backend.asarray(bias)
    together = backend.to_numpy(backend.linear(backend.asarray(x), weight, bias))
    alone = backend.to_numpy(backend.linear(backend.asarray(x[2:3]), weight, bias))
    assert_close(together[2:3], alone)
