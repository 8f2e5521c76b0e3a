"""Operators and methods of Tensor as a whole: NumPy on the left, scalars, names, frames. The rules: tests/ops."""

import operator
import sys
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, tensor

pytestmark = pytest.mark.usefixtures("backend")

LEFT: dict[str, tuple[Callable, float, float]] = {  # at x = 4: value, slope
    "2 - x": (lambda x: 2 - x, -2, -1),
    "2 / x": (lambda x: 2 / x, 0.5, -0.125),
    "2 ** x": (lambda x: 2**x, 16, 11.0903549),
    "2 + x": (lambda x: 2 + x, 6, 1),
    "2 * x": (lambda x: 2 * x, 8, 2),
}


@pytest.mark.parametrize("name", LEFT)
def test_mirrored_operators(name: str, dtype: str) -> None:
    """Case 35."""
    function, value, slope = LEFT[name]
    x = Tensor(np.array([4.0], dtype), requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert (type(y), y.dtype, y.item()) == (Tensor, dtype, pytest.approx(value))
    assert x.grad.item() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("apply", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_numpy_on_the_left(apply: Callable, dtype: str) -> None:
    """Case 35: never an object array, always a Tensor with graph."""
    values = np.array([[4.0, 3.0], [2.0, 1.0]], dtype)
    for left in (
        np.array([[1.0, 2.0], [3.0, 4.0]], dtype),
        np.array([5.0, 6.0], dtype),
        np.array(2.0, dtype),
        np.float32(2),
        np.float64(2),
        np.int64(2),
    ):
        x = Tensor(values, requires_grad=True)
        y = apply(left, x)
        assert (type(y), y.dtype, y.requires_grad) == (Tensor, dtype, True)
        np.testing.assert_allclose(y.numpy(), apply(left, values), rtol=1e-6)
        y.sum().backward()
        assert x.grad.shape == (2, 2)


def test_augmented_assignment_makes_a_new_tensor() -> None:
    x = tensor([1.0], requires_grad=True)
    y = x
    y += 1.0
    y *= 3.0
    y -= tensor([1.0])
    y /= 2.0
    y **= 2.0
    assert (x.item(), y.item()) == (1.0, 6.25)
    y.sum().backward()
    assert x.grad.item() == pytest.approx(7.5)


def test_functions_of_the_package() -> None:
    x = tensor([1.0, 2.0])
    assert gradcore.concat([x, x]).shape == (4,)
    assert gradcore.stack([x, x]).shape == (2, 2)
    assert gradcore.where(x > 1.0, x, 0.0).tolist() == [0.0, 2.0]
    assert gradcore.maximum(x, 1.5).tolist() == [1.5, 2.0]
    assert gradcore.minimum(x, 1.5).tolist() == [1.0, 1.5]


def test_hash_is_identity() -> None:
    x, y = tensor([1.0]), tensor([1.0])
    assert len({x, y, x}) == 2


ONE = np.ones((2, 2), np.float32)
TWO_OPERANDS = ["x + y", "x - y", "x * y", "x / y", "x ** y"]
ONE_OPERAND = ["-x", "abs(x)", "x.exp()", "x.log()", "x.sqrt()", "x.tanh()", "x.sigmoid()", "x.relu()"]
WITH_SCALAR = ["x + 2.0", "x - 2.0", "x * 2.0", "x / 2.0", "2.0 / x", "x ** 2.0", "2.0 ** x"]


def frames(code: str) -> tuple[int, int]:
    """(calls, depth) of the Python functions of gradcore, but the backend's, that one recorded operation makes."""
    scope = {"x": tensor(ONE, requires_grad=True), "y": tensor(ONE)}
    compiled = compile(code, "<operation>", "eval")
    calls = depth = deepest = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls, depth, deepest
        module = frame.f_globals.get("__name__", "")
        if module.startswith("gradcore") and not module.startswith("gradcore.backend"):
            calls += event == "call"
            depth += {"call": 1, "return": -1}.get(event, 0)
            deepest = max(deepest, depth)

    eval(compiled, scope)  # imports and caches
    sys.setprofile(watch)
    try:
        eval(compiled, scope)
    finally:
        sys.setprofile(None)
    return calls, deepest


@pytest.mark.parametrize("code", TWO_OPERANDS + ONE_OPERAND)
def test_three_frames_for_an_operation(code: str) -> None:
    """Operator, Function, forward; the fourth is the backend's method."""
    assert frames(code) == (3, 3)


@pytest.mark.parametrize("code", WITH_SCALAR)
def test_a_scalar_costs_one_call_more(code: str) -> None:
    """The Function's __init__ keeps it."""
    assert frames(code) == (4, 3)
