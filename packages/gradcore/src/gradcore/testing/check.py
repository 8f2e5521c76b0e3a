"""check_case: run one case on one backend and compare everything that the Protocol promises about it.

Shape, dtype and values against the reference; operands unchanged; arguments changed in place changed as they must;
the same call gives the same bits; another call leaves the first one's results alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcore.backend.protocol import CAPABILITIES, Backend
from gradcore.errors import DTypeError
from gradcore.testing.cases.case import Case, Host, View, host
from gradcore.testing.compare import assert_close, same_bits


class Unsupported(Exception):
    """The case cannot be judged on this backend; the text says why."""


def check_case(backend: Any, case: Case, dtype: str) -> None:
    """Raise AssertionError where the backend departs from the case's reference.

    Raises Unsupported where the backend refuses float64 with a DTypeError, or makes a wrong non-contiguous operand
    (which the tests of that operation report).
    """
    method = operation(backend, case.operation)
    given = case.build(dtype)
    wanted = [expected_in(case, dtype, array) for array in flat(case.reference(*map(host, given)))]
    first = run(backend, case, dtype, method, given)
    check_outputs(backend, case, dtype, first, wanted)
    before = [np.array(host_values(backend, one)) for one in first]
    run(backend, case, dtype, method, case.build(dtype, variant=1))
    same_as(backend, before, first, f"{case.id}: a second call changed the first call's result")
    again = run(backend, case, dtype, method, given)
    same_as(backend, before, again, f"{case.id}: the same call gives other bits in result")


def run(backend: Any, case: Case, dtype: str, method: Callable[..., Any], given: list[Any]) -> list[Any]:
    """The results of one call and the arguments that it changed in place; the others must not change."""
    operands = [to_backend(backend, one) for one in given]
    try:
        with np.errstate(all="ignore"):  # NaN and infinity are asked for
            result = method(*operands)
    except DTypeError as error:
        if dtype == "float64":
            raise Unsupported(f"backend {backend.name!r} refuses float64: {error}") from error
        raise
    check_unchanged(backend, case, given, operands)
    return ([] if result is None else flat(result)) + flat([operands[i] for i in case.changes])


def operation(backend: Any, name: str) -> Callable[..., Any]:
    """The backend's method. AssertionError with its name if it is missing."""
    try:
        method: Callable[..., Any] = getattr(backend, name)
    except AttributeError as error:  # NotSupported is one
        raise AssertionError(f"{name}: {error}") from error
    owners = [one for one in (Backend, *CAPABILITIES) if name in vars(one)]
    if owners and getattr(method, "__qualname__", "") == f"{owners[0].__name__}.{name}":
        raise AssertionError(f"{name}: backend {backend.name!r} inherits the Protocol's empty {name}")
    return method


def expected_in(case: Case, dtype: str, array: Any) -> np.ndarray:
    """A reference's result in the dtype that the backend owes."""
    array = np.asarray(array)
    floating = array.dtype == np.float64 and dtype in ("float32", "float64")
    with np.errstate(all="ignore"):
        expected: np.ndarray = array.astype(case.result or (dtype if floating else array.dtype))
        return expected


def host_values(backend: Any, x: Any) -> np.ndarray:
    """The values of a result; what to_numpy gave is on the host already."""
    return x if isinstance(x, np.ndarray) else backend.to_numpy(x)


def check_outputs(backend: Any, case: Case, dtype: str, outputs: list[Any], wanted: list[np.ndarray]) -> None:
    if len(outputs) != len(wanted):
        raise AssertionError(f"{case.id}: got {len(outputs)} results, expected {len(wanted)}")
    rtol, atol = case.tolerance.bounds(dtype)
    for i, (output, want) in enumerate(zip(outputs, wanted, strict=True)):
        what = case.id if len(wanted) == 1 else f"{case.id}, result {i}"
        array = host_values(backend, output)
        if not isinstance(output, Host | np.ndarray) and (output.shape, output.dtype) != (array.shape, array.dtype):
            raise AssertionError(
                f"{what}: the array says {output.shape} {output.dtype}, its values are {array.shape} {array.dtype}"
            )
        assert_close(array, want, rtol=rtol, atol=atol, what=what)


def same_as(backend: Any, before: list[np.ndarray], now: list[Any], text: str) -> None:
    for i, (bits, array) in enumerate(zip(before, now, strict=True)):
        if not same_bits(bits, np.array(host_values(backend, array))):
            raise AssertionError(f"{text} {i}")


def check_unchanged(backend: Any, case: Case, given: list[Any], operands: list[Any]) -> None:
    for i, (before, after) in enumerate(zip(given, operands, strict=True)):
        if i in case.changes:
            continue
        for one, other in zip(flat(before), flat(after), strict=True):
            value = one.value if isinstance(one, View | Host) else one
            if not isinstance(value, np.ndarray):
                continue
            now = other if isinstance(one, Host) else host_values(backend, other)
            if not same_bits(value, np.asarray(now)):
                raise AssertionError(f"{case.id}: changed its argument {i}")


def to_backend(backend: Any, argument: Any) -> Any:
    """A case's argument as the backend gets it."""
    if isinstance(argument, list):
        return [to_backend(backend, one) for one in argument]
    if isinstance(argument, np.ndarray):
        return backend.asarray(argument)
    if isinstance(argument, Host):
        return argument.value
    if isinstance(argument, View):
        view = operation(backend, argument.method)(backend.asarray(argument.base), *argument.options)
        if not same_bits(np.array(host_values(backend, view)), argument.value):
            raise Unsupported(f"backend {backend.name!r} gets {argument.method} wrong, which this operand needs")
        return view
    return argument


def flat(results: Any) -> list[Any]:
    """Results as one list: a method returns one array or a tuple, an optimizer changes lists of them."""
    if isinstance(results, list | tuple):
        return [one for part in results for one in flat(part)]
    return [results]
