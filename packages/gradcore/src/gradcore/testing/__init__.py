"""Everything that the author of a test needs; nothing but imports.

check_gradient: is a backward the derivative of its forward? assert_close: do two arrays agree, NaN and infinity
included? requires: skip a test on a backend without a capability (the fixtures for it are in fixtures.py).
The conformance suite, for the author of a backend: `pytest --pyargs gradcore.testing.suite --gradcore-backend NAME`.

Next: gradcheck.py; cases/, the table behind the suite and the benchmarks.
"""

from gradcore.testing.compare import assert_close
from gradcore.testing.gradcheck import check_gradient
from gradcore.testing.marks import requires

__all__ = ["assert_close", "check_gradient", "requires"]
