"""requires and operation: the marks that the suite's fixtures and its own tests read."""

import pytest

from gradcore.backend import Backend, Conv2dOps, GraphCapture
from gradcore.testing import requires
from gradcore.testing.marks import operation


def test_requires_carries_the_capability() -> None:
    mark = requires(Conv2dOps)
    assert (mark.name, mark.args) == ("gradcore_requires", (Conv2dOps,))


def test_requires_decorates_a_test_not_the_capability() -> None:
    @requires(GraphCapture)
    def test() -> None: ...

    assert [mark.args for mark in test.pytestmark] == [(GraphCapture,)]  # type: ignore[attr-defined]
    assert not hasattr(GraphCapture, "pytestmark")


def test_requires_takes_capabilities_only() -> None:
    with pytest.raises(ValueError, match="expected one of the capabilities Conv2dOps, Pool2dOps, GraphCapture"):
        requires(Backend)


def test_operation_carries_the_name() -> None:
    assert operation("matmul").args == ("matmul",)
