"""Backends with one wrong operation, and some other odd ones, for the tests of the conformance suite.

A wrong operation is wrong only when called from outside: the others, composed or not, go to a right backend, so that
exactly its own tests can fail. As a pytest plugin this file registers the backends `wrong:OPERATION`,
`missing:OPERATION`, `bare` (no capability, no float64) and `recorder` (with GraphCapture).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.backend import BaseBackend, Conv2dOps, Pool2dOps, register_backend
from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import DTypeError, NotSupported

RIGHT = NumpyBackend()
OPERATIONS = [name for name in dir(RIGHT) if not name.startswith("_") and callable(getattr(RIGHT, name))]
IN_PLACE = {"copy_": 0, "append_": 0, "sgd_": 0, "adam_": 0}


def with_methods(name: str, **methods: Callable[..., Any]) -> BaseBackend:
    """A backend whose every method is RIGHT's, but for these."""
    right = {one: staticmethod(getattr(RIGHT, one)) for one in OPERATIONS}
    return type("Other", (NumpyBackend,), {**right, **methods, "name": name})()


def wrong(operation: str) -> BaseBackend:
    """The backend with that operation a little wrong: the last entry of its first result is off."""
    return with_methods(f"wrong:{operation}", **{operation: staticmethod(off(operation))})


def off(operation: str) -> Callable[..., Any]:
    right = getattr(RIGHT, operation)

    def method(*arguments: Any) -> Any:
        result = right(*arguments)
        if operation in IN_PLACE:
            target = arguments[IN_PLACE[operation]]
            for one in target if isinstance(target, list) else [target]:
                spoil(one)
            return None
        first = spoil(np.array(result[0] if isinstance(result, tuple) else result))
        return (first, *result[1:]) if isinstance(result, tuple) else first

    return method


def spoil(array: np.ndarray) -> np.ndarray:
    if array.size:
        last = array.reshape(-1)[-1:]
        if array.dtype == bool:
            last ^= True
        elif array.dtype.kind == "f":
            last += np.maximum(0.01, np.abs(last) * 0.01)
        else:
            last += 1
    return array


def missing(operation: str) -> BaseBackend:
    def absent(self: Any) -> Any:
        raise NotSupported(f"backend {self.name!r} lacks the primitive {operation!r} of gradcore.backend.Backend")

    return with_methods(f"missing:{operation}", **{operation: property(absent)})  # type: ignore[arg-type]


def bare() -> BaseBackend:
    """No convolution, no pooling, and a matmul that refuses float64 in words."""
    hidden = {
        name: None for one in (Conv2dOps, Pool2dOps) for name in vars(one) if "pool2d" in name or "conv2d" in name
    }
    return type("Bare", (NumpyBackend,), {**hidden, "name": "bare", "matmul": bare_matmul})()


def bare_matmul(self: Any, a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if a.dtype == np.float64:
        raise DTypeError("matmul: this backend computes in float32")
    return RIGHT.matmul(a, b, transpose_a, transpose_b)


class Recorder(NumpyBackend):
    """GraphCapture in slow motion: while recording, each call is noted with its operands and result; nothing stays
    changed. A replay makes the calls again and puts their results where the first ones were."""

    name = "recorder"

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] | None = None
        self.depth = 0

    def __getattribute__(self, name: str) -> Any:
        member = super().__getattribute__(name)
        if name.startswith("_") or name not in OPERATIONS or name in ("capture_graph", "check_indices"):
            return member
        return lambda *arguments: self._call(name, member, arguments)

    def _call(self, name: str, member: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if self.calls is None or self.depth:
            return member(*arguments)
        if name == "to_numpy":
            raise RuntimeError("to_numpy inside capture_graph: values cannot be read while a graph is recorded")
        self.depth += 1
        try:
            kept = [(a, a.copy()) for a in everything(arguments)] if name.endswith("_") or "random" in name else []
            result = member(*arguments)
            arrays = [np.array(one) if one.base is None else one for one in map(np.asarray, everything([result]))]
            for array, value in kept:
                array[...] = value
        finally:
            self.depth -= 1
        self.calls.append(lambda: self._again(member, arguments, arrays))
        return result if result is None else tuple(arrays) if isinstance(result, tuple) else arrays[0]

    @staticmethod
    def _again(member: Callable[..., Any], arguments: tuple[Any, ...], arrays: list[np.ndarray]) -> None:
        for old, new in zip(arrays, everything([member(*arguments)]), strict=True):
            if not np.shares_memory(old, new):
                old[...] = new

    def capture_graph(self, function: Callable[[], None]) -> Any:
        self.calls = calls = []
        try:
            function()
        finally:
            self.calls = None
        return type("Graph", (), {"replay": lambda graph: [call() for call in calls]})()


def everything(arguments: Any) -> list[np.ndarray]:
    """All arrays in a nest of lists and tuples."""
    found: list[np.ndarray] = []
    for one in arguments:
        if isinstance(one, list | tuple):
            found += everything(one)
        elif isinstance(one, np.ndarray | np.generic):
            found.append(one)  # type: ignore[arg-type]
    return found


# typical mistakes, each seen in some framework


def fmax(a: Any, b: Any) -> Any:
    return np.fmax(a, b)


def flipped_conv2d(x: Any, weight: Any, *options: Any) -> Any:
    return RIGHT.conv2d(x, weight[:, :, ::-1, ::-1], *options)


def last_write_wins(grad: Any, indices: Any, axis: int, length: int) -> Any:
    out = np.zeros((*grad.shape[:axis], length, *grad.shape[axis + indices.ndim :]), grad.dtype)
    index_axes = tuple(range(axis, axis + indices.ndim))
    np.moveaxis(out, axis, 0)[indices] = np.moveaxis(grad, index_axes, tuple(range(indices.ndim)))
    return out


def last_tie(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, size: Any) -> Any:
    turned, where = RIGHT.max_pool2d(x[:, :, ::-1, ::-1].copy(), kernel, stride, padding, dilation, size)
    fits = all(kernel[i] == stride[i] and x.shape[2 + i] % kernel[i] == 0 for i in (0, 1)) and padding == (0, 0)
    if not fits:
        return RIGHT.max_pool2d(x, kernel, stride, padding, dilation, size)
    flat = np.int32(x.shape[2] * x.shape[3] - 1) - where
    return turned[:, :, ::-1, ::-1].copy(), flat[:, :, ::-1, ::-1].copy()


def zero_padding_wins(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, size: Any) -> Any:
    y, indices = RIGHT.max_pool2d(x, kernel, stride, padding, dilation, size)
    return (np.maximum(y, 0) if padding != (0, 0) else y), indices


def long_indices(*arguments: Any) -> Any:
    y, indices = RIGHT.max_pool2d(*arguments)
    return y, indices.astype(np.int64)


def fixed_divisor(x: Any, kernel: Any, stride: Any, padding: Any, size: Any, include: bool) -> Any:
    y = RIGHT.avg_pool2d(x, kernel, stride, padding, size, include)
    ones = RIGHT.avg_pool2d(np.ones_like(x), kernel, stride, padding, size, True)
    return y * ones if not include else y


def overflowing_softmax(x: Any, axis: int) -> Any:
    with np.errstate(all="ignore"):
        return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def one_by_one_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.add.accumulate(x.ravel())[-1] if axis is None and x.size else RIGHT.sum(x, axis, keepdims)


def standing_counter(shape: Any, key: int, counter: Any) -> Any:
    return RIGHT.random_uniform(shape, key, counter.copy())


def no_bias_correction(ps: Any, gs: Any, ms: Any, vs: Any, steps: Any, rate: Any, *options: Any) -> None:
    late = [np.array(10**6, np.int64) for _ in steps]
    RIGHT.adam_(ps, gs, ms, vs, late, rate, *options)
    for step in steps:
        step += 1


def dampened_first_step(ps: Any, gs: Any, vs: Any, steps: Any, *options: Any) -> None:
    RIGHT.sgd_(ps, gs, vs, [np.array(1, np.int64) for _ in steps], *options)
    for step in steps:
        step += 1


def nothing(destination: Any, source: Any) -> None:
    """copy_ that forgets to."""


def counts_ignored(logits: Any, labels: Any, ignore_index: int, reduction: str) -> Any:
    loss, log_probs = RIGHT.softmax_cross_entropy(logits, labels, ignore_index, reduction)
    kept = np.mean(labels != ignore_index) if reduction == "mean" and len(labels) else 1.0
    return np.asarray(loss * kept, logits.dtype), log_probs


def biased_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    y, mean, var = RIGHT.batch_norm(x, weight, bias, eps)
    count = math.prod(x.shape) / x.shape[1]
    return y, mean, np.asarray(var * (count / (count - 1)), x.dtype)


MISTAKES: list[tuple[str, Callable[..., Any]]] = [
    ("maximum", fmax),
    ("conv2d", flipped_conv2d),
    ("take_backward", last_write_wins),
    ("max_pool2d", last_tie),
    ("max_pool2d", zero_padding_wins),
    ("max_pool2d", long_indices),
    ("avg_pool2d", fixed_divisor),
    ("softmax", overflowing_softmax),
    ("sum", one_by_one_sum),
    ("random_uniform", standing_counter),
    ("adam_", no_bias_correction),
    ("sgd_", dampened_first_step),
    ("copy_", nothing),
    ("softmax_cross_entropy", counts_ignored),
    ("batch_norm", biased_norm),
    ("relu_backward", lambda grad, y: grad * (y > 0)),  # 0 * inf
    ("tanh", lambda x: np.tanh(x) + np.asarray(1e-4, x.dtype) * (np.abs(x) > 1)),
    ("astype", lambda x, dtype: np.rint(x).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)),
]


def pytest_configure() -> None:
    register_backend("wrong", lambda name: wrong(name.partition(":")[2]))
    register_backend("missing", lambda name: missing(name.partition(":")[2]))
    register_backend("bare", lambda name: bare())
    register_backend("recorder", lambda name: Recorder())


about: dict[str, str] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("gradcore_operation")
        about[item.nodeid] = mark.args[0] if mark else "several"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each test that failed: what it is about, and its id."""
    for outcome in ("failed", "error"):
        for report in terminalreporter.getreports(outcome):
            name = report.nodeid.rpartition("/")[2]
            terminalreporter.write_line(f"{outcome} about {about.get(report.nodeid, 'collection')}: {name}")
