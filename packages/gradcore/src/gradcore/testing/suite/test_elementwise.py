"""Elementwise primitives with broadcasting, scalars, NaN and infinity. Cases: ../cases/elementwise.py."""

from typing import Any

from gradcore.testing.cases import Case
from gradcore.testing.fixtures import each_case, run_case


@each_case("elementwise")
def test_elementwise(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)
