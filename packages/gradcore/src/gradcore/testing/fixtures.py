"""The fixtures of the suite. A backend's own tests get them with one line in their conftest.py:

    from gradcore.testing.fixtures import *

`backend` is the backend under test; marks from `gradcore.testing.requires` skip what it does not implement. Nothing
here asks for a backend by name. `each_case` and `run_case` turn the table of cases into tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from gradcore.backend.protocol import CAPABILITIES
from gradcore.backend.registry import DEFAULT, VARIABLE, get_backend, use_backend
from gradcore.errors import BackendUnavailable
from gradcore.testing.cases import FAMILIES, Case
from gradcore.testing.check import Unsupported, check_case
from gradcore.testing.marks import operation, requires

__all__ = ["backend", "gradcore_skip_missing", "pytest_collection_modifyitems", "pytest_generate_tests"]


def backend_name(config: pytest.Config) -> str:
    """The name of the backend under test."""
    return str(config.getoption("--gradcore-backend", None) or os.environ.get(VARIABLE) or DEFAULT)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Put the backend's name into the ids: test_conv[toy-conv2d-plain-float32]."""
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", [backend_name(metafunc.config)], indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One line, not a thousand errors, for a backend that cannot be had."""
    if config.option.collectonly:
        return
    try:
        get_backend(backend_name(config))
    except BackendUnavailable as error:
        if not hasattr(config, "workerinput"):
            raise pytest.UsageError(str(error)) from error
        del items[1:]  # a worker of pytest-xdist may not stop here: one test says it


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The backend under test; it is the current one too, where a test makes tensors or layers."""
    with use_backend(getattr(request, "param", None) or backend_name(request.config)) as chosen:
        yield chosen


@pytest.fixture(autouse=True)
def gradcore_skip_missing(request: pytest.FixtureRequest) -> None:
    """Skip a test that requires a capability which the backend does not implement."""
    for mark in request.node.iter_markers("gradcore_requires"):
        (capability,) = mark.args
        under_test = request.getfixturevalue("backend")
        if not isinstance(under_test, capability):
            pytest.skip(f"backend {under_test.name!r} does not implement {capability.__name__}")


def each_case(*families: str) -> pytest.MarkDecorator:
    """Parametrize a test over the cases of these families, in each dtype: arguments `case` and `dtype`."""
    return pytest.mark.parametrize(("case", "dtype"), [one for f in families for one in parameters(FAMILIES[f])])


def parameters(cases: Sequence[Case]) -> list[Any]:
    """Each case in each of its dtypes, marked with its operation and the capability that it needs."""
    return [
        pytest.param(
            case,
            dtype,
            id=f"{case.id}-{dtype}",
            marks=[operation(case.operation), *(requires(capability) for capability in needed(case))],
        )
        for case in cases
        for dtype in case.dtypes
    ]


def needed(case: Case) -> list[type]:
    """The capabilities that a case's operation asks for; a fused one may ask for two."""
    return [one for one in CAPABILITIES if case.requires is not None and issubclass(case.requires, one)]


def run_case(backend: Any, case: Case, dtype: str) -> None:
    """check_case as a test: what cannot be judged on this backend is skipped."""
    __tracebackhide__ = True
    try:
        check_case(backend, case, dtype)
    except Unsupported as reason:
        pytest.skip(str(reason))
