"""The suite tests itself: a backend with one wrong operation fails in that operation's tests, and in no others."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from gradcore.testing.cases import CASES, Case
from gradcore.testing.check import Unsupported, check_case

BY_OPERATION: dict[str, list[Case]] = defaultdict(list)
for one in CASES:
    BY_OPERATION[one.operation].append(one)
CARRIERS = ("asarray", "to_numpy")  # everything goes through them: if they are wrong, all fails
WHOLE = (
    "test_training.py",
    "test_graph.py",
    "test_fused.py::test_fused_and_plain",
)  # tests of many operations together


def failing(backend: Any, cases: list[Case], *, all_dtypes: bool = True) -> Iterator[str]:
    """The ids of the cases that fail."""
    for case in cases:
        for dtype in case.dtypes if all_dtypes else case.dtypes[:1]:
            try:
                check_case(backend, case, dtype)
            except Unsupported:
                continue
            except AssertionError:
                yield case.id


def small(cases: list[Case], count: int) -> list[Case]:
    """The first few that take no time."""
    return [case for case in cases if not re.search(r"large|70000|million|mnist", case.name)][:count]


@pytest.mark.parametrize("operation", BY_OPERATION)
def test_a_wrong_operation_fails_its_own_cases(operation: str, wrong_backends: ModuleType) -> None:
    wrong = wrong_backends.wrong(operation)
    assert next(failing(wrong, small(BY_OPERATION[operation], 8)), None)


@pytest.mark.parametrize("operation", [name for name in BY_OPERATION if name not in CARRIERS])
def test_a_wrong_operation_fails_no_others(operation: str, wrong_backends: ModuleType) -> None:
    wrong = wrong_backends.wrong(operation)
    others = [case for name, cases in BY_OPERATION.items() if name != operation for case in small(cases, 2)]
    others += [case for case in CASES if case.name in ("permuted", "stretched") and case.operation != operation]
    assert list(failing(wrong, others, all_dtypes=False)) == []


def test_typical_mistakes_are_found(wrong_backends: ModuleType) -> None:
    missed = []
    for operation, mistake in wrong_backends.MISTAKES:
        wrong = wrong_backends.with_methods("wrong", **{operation: staticmethod(mistake)})
        if not next(failing(wrong, BY_OPERATION[operation]), None):
            missed.append((operation, mistake.__name__))
    assert missed == []


def test_a_right_backend_fails_nothing(wrong_backends: ModuleType) -> None:
    right = wrong_backends.with_methods("right")
    assert list(failing(right, [case for cases in BY_OPERATION.values() for case in small(cases, 2)])) == []


# The whole way, through pytest.

QUICK = "not large and not 70000 and not million and not mnist and not int32 and not float64"


def failed(output: str) -> list[tuple[str, str]]:
    """(what a test is about, its id) for each that failed."""
    return re.findall(r"^(?:failed|error) about (\w+): (\S+)", output, re.MULTILINE)


@pytest.mark.parametrize("operation", ["max_pool2d", "strided_slice"])
def test_exactly_there(operation: str, run_suite: Callable[..., Any]) -> None:
    result = run_suite(f"wrong:{operation}", "-k", QUICK)
    assert result.returncode == 1, result.stdout[-2000:] + result.stderr
    tests = [one for one in failed(result.stdout) if not one[1].startswith(WHOLE)]
    assert len(tests) > 10
    assert {name for name, _ in tests} == {operation}


@pytest.mark.parametrize("operation", ["tanh", "take_backward"])
def test_a_missing_primitive_is_failing_tests_with_its_name(operation: str, run_suite: Callable[..., Any]) -> None:
    result = run_suite(f"missing:{operation}", f"-k-{operation}- or -{operation}]")
    assert result.returncode == 1, result.stdout[-2000:] + result.stderr
    tests = failed(result.stdout)
    assert (operation, f"test_protocol.py::test_has[missing:{operation}-{operation}]") in tests
    assert len(tests) > 10
    assert all(name == operation for name, _ in tests)
    assert f"{operation}: backend 'missing:{operation}' lacks the primitive" in result.stdout
    assert "passed" not in result.stdout.splitlines()[-1]


def test_capabilities_are_skipped_by_name(run_suite: Callable[..., Any]) -> None:
    result = run_suite("bare", "-rs", "-k", "smallest or graph or matmul or by_hand or capability")
    assert result.returncode == 0, result.stdout[-2000:]
    for capability in ("Conv2dOps", "Pool2dOps", "GraphCapture"):
        assert f"backend 'bare' does not implement {capability}" in result.stdout
    assert "backend 'bare' refuses float64: matmul: this backend computes in float32" in result.stdout


def test_graphs_on_a_backend_that_records(run_suite: Callable[..., Any]) -> None:
    result = run_suite("recorder", "-k", "test_graph or test_memory")
    assert result.returncode == 0, result.stdout[-3000:]
    assert "skipped" not in result.stdout.splitlines()[-1]
