"""The table of cases is whole and clean; and each Function of gradcore.ops has the derivative of its forward.

Gradients are checked here once, in float64 on the numpy backend: a rule has no device, and the suite holds each
backend's operations to references.
"""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, ops
from gradcore.backend import CAPABILITIES, Backend, BaseBackend, Conv2dOps, GraphCapture, Pool2dOps
from gradcore.backend.fused import FusedOperations
from gradcore.function import Function
from gradcore.ops.elementwise import Abs
from gradcore.ops.fused import conv2d_relu_max_pool2d, linear_relu
from gradcore.ops.norm import BatchNorm, Dropout
from gradcore.testing import check_gradient
from gradcore.testing.cases import CASES, FAMILIES
from gradcore.testing.cases.case import ALL_DTYPES, EXACT
from gradcore.testing.fixtures import needed

# tested by hand in the suite: what they do is not a value
BY_HAND = {"empty", "from_dlpack", "synchronize", "check_indices", "capture_graph"}


def methods(cls: type) -> set[str]:
    return {name for name, value in vars(cls).items() if callable(value) and not name.startswith("_")}


def test_every_operation_has_cases() -> None:
    every = methods(Backend).union(methods(BaseBackend), methods(FusedOperations), *map(methods, CAPABILITIES))
    assert {case.operation for case in CASES} == every - BY_HAND


def test_cases_ask_for_the_capability_they_need() -> None:
    for case in CASES:
        wanted = [one for one in CAPABILITIES if case.operation in vars(one)]
        if case.operation.startswith("conv2d_relu_max_pool2d"):
            wanted = [Conv2dOps, Pool2dOps]
        assert needed(case) == wanted
    assert GraphCapture not in {case.requires for case in CASES}


def test_ids_are_unique_and_printable() -> None:
    counted = Counter((case.id, dtype) for case in CASES for dtype in case.dtypes)
    assert [one for one, count in counted.items() if count > 1] == []
    assert all(case.id.isascii() and " " not in case.id and "[" not in case.id for case in CASES)
    assert [case for family in FAMILIES.values() for case in family] == CASES


def test_every_dtype_is_moved_by_what_moves() -> None:
    for operation in ("asarray", "to_numpy", "full", "copy_", "reshape", "permute_dims", "broadcast_to", "concat"):
        seen = {dtype for case in CASES if case.operation == operation for dtype in case.dtypes}
        assert seen == set(ALL_DTYPES), operation


def test_what_only_moves_is_compared_exactly() -> None:
    for case in CASES:
        if case.operation in ("take", "where", "strided_slice", "max_pool2d", "maximum", "argmax", "random_uniform"):
            assert case.tolerance == EXACT


# The gradient checks. Values stay away from kinks and poles by more than the step of the differences.

RNG = np.random.default_rng(0)


def near(*shape: int, low: float = 0.3, high: float = 2.0) -> np.ndarray:
    return RNG.uniform(low, high, shape)


def apart(*shape: int) -> np.ndarray:
    """No two entries closer than 0.1, none at 0."""
    return (RNG.permutation(int(np.prod(shape))).reshape(shape) - 7.5) / 10.0


PLAIN, TWO = ((1, 1), (1, 1), (1, 1), 1), ((2, 2), (2, 2), (0, 0), (1, 1))
OVERLAPPING = ((3, 3), (1, 1), (1, 1), (1, 1))
A, B, ROW = near(3, 4), near(3, 4), near(4)
IMAGE, FILTER, BIAS = apart(2, 4, 7, 6), near(6, 4, 3, 2, low=-1), near(6)
INT = Tensor([0, 2, 2, 1], "int64")
MASK = Tensor(RNG.random((3, 4)) < 0.5)


def norm(x: Any, w: Any, b: Any) -> Any:
    return BatchNorm(1e-5)(x, w, b)


def dropped(x: Tensor) -> Tensor:
    return Dropout(0.4, 7, x.backend.full((), 0, np.int64))(x)


# Function: (expression, operands) for each way to use it
CHECKS: dict[str, list[tuple[Callable[..., Any], list[Any]]]] = {
    "Add": [(lambda a, b: a + b, [A, B]), (lambda a, b: a + b, [near(3, 1), ROW]), (lambda a: a + a, [A])],
    "Subtract": [(lambda a, b: a - b, [A, B]), (lambda a, b: a - b, [near(2, 1, 4), near(3, 1)])],
    "Multiply": [(lambda a, b: a * b, [A, B]), (lambda a, b: a * b, [near(), A]), (lambda a: a * a * a, [A])],
    "Divide": [(lambda a, b: a / b, [A, B]), (lambda a, b: a / b, [ROW, A]), (lambda a, b: a / b, [A, near(1)])],
    "Power": [(lambda a, b: a**b, [A, B]), (lambda a, b: a**b, [near(3, 1), ROW])],
    "Maximum": [(lambda a, b: ops.maximum(a, b), [A, B]), (lambda a, b: ops.minimum(a, b), [A, ROW])],
    "Where": [(lambda a, b: ops.where(MASK, a, b), [A, ROW]), (lambda a: ops.where(MASK, a, 0.0), [A])],
    "AddScalar": [(lambda a: 2.0 + a - 3.0, [A]), (lambda a: 1.0 - a, [A])],
    "MultiplyScalar": [(lambda a: 2.5 * a, [A])],
    "DivideByScalar": [(lambda a: a / 4.0, [A])],
    "DivideScalar": [(lambda a: 2.0 / a, [A])],
    "PowerScalar": [(lambda a: a**3.0, [apart(3, 4)]), (lambda a: a**-0.5, [A]), (lambda a: a**0, [A])],
    "ScalarPower": [(lambda a: 2.0**a, [A])],
    "Negative": [(lambda a: -a, [A])],
    "Abs": [(lambda a: Abs()(a), [apart(4, 4)])],
    "Exp": [(lambda a: a.exp(), [A])],
    "Log": [(lambda a: a.log(), [A])],
    "Sqrt": [(lambda a: a.sqrt(), [A])],
    "Tanh": [(lambda a: a.tanh(), [A])],
    "Sigmoid": [(lambda a: a.sigmoid(), [apart(3, 4) * 4])],
    "ReLU": [(lambda a: a.relu(), [apart(4, 4)])],
    "Sum": [(lambda a: a.sum(), [A]), (lambda a: a.sum(0), [A]), (lambda a: a.sum((0, 2), True), [near(2, 3, 4)])],
    "Mean": [(lambda a: a.mean(), [A]), (lambda a: a.mean(1, True), [A]), (lambda a: a.var((0, 1), correction=1), [A])],
    "Max": [(lambda a: a.max(), [apart(4, 4)]), (lambda a: a.max(0), [apart(4, 4)]), (lambda a: a.min((0, 1)), [A])],
    "Reshape": [(lambda a: a.reshape(2, -1), [A]), (lambda a: a.flatten(), [A]), (lambda a: a.expand_dims(1), [A])],
    "PermuteDims": [(lambda a: a.permute_dims(2, 0, 1) ** 2, [near(2, 3, 4)]), (lambda a: a.T, [A])],
    "BroadcastTo": [(lambda a: a.broadcast_to((2, 3, 4)), [near(3, 1)])],
    "StridedSlice": [(lambda a: a[::-1, 1::2], [A]), (lambda a: a[1], [A]), (lambda a: a[..., None, 3:0:-2], [A])],
    "Concat": [(lambda a, b: ops.concat([a, b, a], 1), [A, near(3, 2)]), (lambda a, b: ops.stack([a, b]), [A, B])],
    "Take": [(lambda a: ops.take(a, INT, 0), [A]), (lambda a: a.take([[0, 3], [3, 3]], 1), [A])],
    "AsType": [(lambda a: a.astype("float32").astype("float64"), [A])],
    "MatMul": [
        (lambda a, b: a @ b, [A, near(4, 2)]),
        (lambda a, b: a @ b, [near(2, 1, 3, 4), near(5, 4, 2)]),
        (lambda a, b: a @ b, [ROW, near(4, 2)]),
        (lambda a, b: a @ b, [A, ROW]),
        (lambda a: a @ a.T, [A]),
    ],
    "Linear": [
        (ops.linear, [A, near(5, 4), near(5)]),
        (lambda x, w: ops.linear(x, w), [near(2, 3, 4), near(5, 4)]),
        (lambda x, w, b: ops.linear(x, w, b), [ROW, near(5, 4), near(5)]),
    ],
    "LinearReLU": [
        (linear_relu, [A, near(5, 4) - 1.0, near(5)]),
        (lambda x, w: linear_relu(x, w), [near(2, 3, 4), near(5, 4) - 1.0]),
    ],
    "Conv2dReLUMaxPool2d": [
        (lambda x, w, b: conv2d_relu_max_pool2d(x, w, b, PLAIN, TWO), [IMAGE, FILTER, BIAS]),
        (
            lambda x, w: conv2d_relu_max_pool2d(x, w, None, PLAIN, ((3, 3), (1, 1), (1, 1), (1, 1)), True),
            [IMAGE, FILTER],
        ),
        (lambda x, w: conv2d_relu_max_pool2d(x, w, None, ((2, 1), (1, 1), (1, 1), 2), TWO), [IMAGE, near(6, 2, 3, 2)]),
    ],
    "Conv2d": [
        (ops.conv2d, [IMAGE, FILTER, BIAS]),
        (lambda x, w: ops.conv2d(x, w, stride=(2, 3), padding=(1, 0)), [IMAGE, FILTER]),
        (lambda x, w, b: ops.conv2d(x, w, b, padding=(5, 4), dilation=(2, 1)), [IMAGE, FILTER, BIAS]),
        (lambda x, w: ops.conv2d(x, w, groups=2, padding=1, stride=2), [IMAGE, near(6, 2, 3, 2)]),
        (lambda x, w, b: ops.conv2d(x, w, b, groups=4, padding=1), [IMAGE, near(4, 1, 3, 3), near(4)]),
        (lambda x, w: ops.conv2d(x, w), [IMAGE, near(3, 4, 1, 1)]),
        (lambda x, w: ops.conv2d(x, w), [IMAGE, near(3, 4, 7, 6)]),
    ],
    "MaxPool2d": [
        (lambda x: ops.max_pool2d(x, 2), [IMAGE]),
        (lambda x: ops.max_pool2d(x, (3, 2), stride=1, padding=(1, 0)), [IMAGE]),
        (lambda x: ops.max_pool2d(x, 3, stride=2, ceil_mode=True), [IMAGE]),
        (lambda x: ops.max_pool2d(x, 2, stride=(1, 2), dilation=(2, 3)), [IMAGE]),
    ],
    "AvgPool2d": [
        (lambda x: ops.avg_pool2d(x, 2), [IMAGE]),
        (lambda x: ops.avg_pool2d(x, (3, 2), stride=(2, 1), padding=1), [IMAGE]),
        (lambda x: ops.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), [IMAGE]),
    ],
    "Softmax": [(lambda x: x.softmax(), [A]), (lambda x: x.softmax(0), [near(2, 3, 4)])],
    "LogSoftmax": [(lambda x: x.log_softmax(), [A]), (lambda x: x.log_softmax(1), [near(2, 3, 4)])],
    "SoftmaxCrossEntropy": [
        (lambda x: ops.cross_entropy(x, [3, 0, 2]), [A]),
        (lambda x: ops.cross_entropy(x, [3, -100, 2], reduction="sum"), [A]),
        (lambda x: ops.cross_entropy(x, [3, 1, 2], ignore_index=1, reduction="none"), [A]),
        (lambda x: ops.cross_entropy(x, [3, 1, 2], ignore_index=1), [A]),
    ],
    "SquaredError": [(ops.mse_loss, [A, B]), (lambda a, b: ops.mse_loss(a, b, "none"), [A, B])],
    "BCEWithLogits": [(ops.bce_with_logits, [apart(4, 4), near(4, 4, high=0.9)])],
    "BatchNorm": [(norm, [near(4, 3), near(3), near(3)]), (norm, [near(2, 3, 4, 5), near(3), near(3)])],
    "Dropout": [(dropped, [A])],
}


def functions() -> Iterator[type[Function]]:
    """Every Function of gradcore.ops that can be applied."""
    for module in pkgutil.iter_modules(gradcore.ops.__path__, "gradcore.ops."):
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, Function)
                and value.__module__ == module.name
                and value.backward is not Function.backward
            ):
                yield value


def test_every_function_is_checked() -> None:
    assert {one.__name__ for one in functions()} == set(CHECKS)


@pytest.mark.parametrize(
    ("name", "function", "operands"),
    [pytest.param(name, *one, id=f"{name}-{i}") for name, some in CHECKS.items() for i, one in enumerate(some)],
)
def test_gradient(
    name: str, function: Callable[..., Any], operands: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = applied(monkeypatch)
    rounded = {"step": 1e-2, "rtol": 1e-4, "atol": 1e-4} if name == "AsType" else {}  # by way of float32
    check_gradient(function, *operands, **rounded)
    assert name in seen


def applied(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the Functions whose backward runs from now on."""
    seen: set[str] = set()
    for cls in functions():

        def backward(self: Any, grad: Any, cls: type = cls, rule: Any = cls.backward) -> Any:
            seen.add(cls.__name__)
            return rule(self, grad)

        monkeypatch.setattr(cls, "backward", backward)
    return seen
