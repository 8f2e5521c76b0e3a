"""The table of cases: every primitive and derived operation of a backend, each with an independent float64 reference.

One file a family: memory, elementwise, reduce, shape, linalg, random, derived, softmax, conv, pool, fused, optim; the
references, loops and Python numbers, stand above their cases. Nothing here runs a backend: the suite does
(../check.py), and so do the benchmarks. A new case is a test and a benchmark for every backend.

Next: case.py.
"""

from gradcore.testing.cases import (
    conv,
    derived,
    elementwise,
    fused,
    linalg,
    memory,
    optim,
    pool,
    random,
    reduce,
    shape,
    softmax,
)
from gradcore.testing.cases.case import Case, Tolerance

FAMILIES: dict[str, list[Case]] = {
    module.__name__.rpartition(".")[2]: module.CASES
    for module in (memory, elementwise, reduce, shape, linalg, random, derived, softmax, conv, pool, fused, optim)
}
CASES: list[Case] = [case for family in FAMILIES.values() for case in family]

__all__ = ["CASES", "FAMILIES", "Case", "Tolerance"]
