"""The two marks of the suite, as functions. plugin.py registers them, fixtures.py acts on the first.

`pytest.mark.gradcore_requires(SomeProtocol)` would decorate the Protocol's class, hence with_args. pytest is imported
when a mark is made, so that `check_gradient` and `assert_close` work without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcore.backend.protocol import CAPABILITIES

if TYPE_CHECKING:
    import pytest


def requires(capability: type) -> pytest.MarkDecorator:
    """Skip the test on a backend that does not implement the capability (Conv2dOps, Pool2dOps, GraphCapture).

    >>> from gradcore.backend import GraphCapture
    >>> requires(GraphCapture).name
    'gradcore_requires'
    """
    import pytest

    if capability not in CAPABILITIES:
        names = ", ".join(one.__name__ for one in CAPABILITIES)
        raise ValueError(f"requires: expected one of the capabilities {names}, got {capability!r}")
    return pytest.mark.gradcore_requires.with_args(capability)


def operation(name: str) -> pytest.MarkDecorator:
    """The backend's method that a test is about: what fails when that method is wrong, and nothing else may."""
    import pytest

    return pytest.mark.gradcore_operation.with_args(name)
