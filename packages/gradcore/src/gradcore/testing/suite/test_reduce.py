"""Sums, maxima and their positions, over some axes, all or none; a million terms. Cases: ../cases/reduce.py."""

from typing import Any

from gradcore.testing.cases import Case
from gradcore.testing.fixtures import each_case, run_case


@each_case("reduce")
def test_reduce(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)
