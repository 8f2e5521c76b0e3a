"""What moves entries of any type, and the two backwards that add them up. Cases: ../cases/shape.py."""

from typing import Any

from gradcore.testing.cases import Case
from gradcore.testing.fixtures import each_case, run_case


@each_case("shape")
def test_shape(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)
