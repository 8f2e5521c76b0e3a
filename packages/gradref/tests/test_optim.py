"""SGD and Adam against BaseBackend's formulas in float64, step after step."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gradcore.backend.base import BaseBackend
from gradcore.backend.numpy import NumpyBackend
from gradref.backend import RefBackend

from .oracle import data
from .shapes import INF, NAN

SHAPES = [(16, 1, 3, 3), (16,), (), (0, 4), (128, 33)]


class State:
    """Parameters with their optimizer state, in one precision."""

    def __init__(self, dtype: str) -> None:
        self.parameters = [data(shape, 0).astype(dtype) for shape in SHAPES]
        self.first = [np.zeros(shape, dtype) for shape in SHAPES]
        self.second = [np.zeros(shape, dtype) for shape in SHAPES]
        self.steps = [np.array(0, np.int64) for _ in SHAPES]
        self.rate = np.array(0.01)

    def grads(self, step: int) -> list[np.ndarray]:
        return [data(shape, step + 1).astype(p.dtype) for shape, p in zip(SHAPES, self.parameters, strict=True)]

    def assert_like(self, other: State) -> None:
        for name in ("parameters", "first", "second"):
            for a, b in zip(getattr(self, name), getattr(other, name), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        assert [int(s) for s in self.steps] == [int(s) for s in other.steps]


@pytest.mark.parametrize(("decay", "decoupled"), [(0.0, False), (0.1, False), (0.1, True)])
def test_adam(decay: float, decoupled: bool) -> None:
    mine, exact = State("float32"), State("float64")
    for step in range(5):
        for backend_adam, s in ((RefBackend().adam_, mine), (_base("adam_"), exact)):
            lists = s.parameters, s.grads(step), s.first, s.second, s.steps
            backend_adam(*lists, s.rate, 0.9, 0.999, 1e-8, decay, decoupled)
        mine.assert_like(exact)
        mine.rate[()] = exact.rate[()] = 0.01 / (step + 2)  # a changed rate takes effect


@pytest.mark.parametrize(
    ("momentum", "dampening", "nesterov", "decay"),
    [(m, d, n, w) for m, d, n, w in product((0.0, 0.9), (0.0, 0.3), (False, True), (0.0, 0.1)) if m or not (d or n)],
)
def test_sgd(momentum: float, dampening: float, nesterov: bool, decay: float) -> None:
    mine, exact = State("float32"), State("float64")
    for step in range(4):
        for backend_sgd, s in ((RefBackend().sgd_, mine), (_base("sgd_"), exact)):
            velocities = s.first if momentum else []
            options = momentum, dampening, decay, nesterov
            backend_sgd(s.parameters, s.grads(step), velocities, s.steps, s.rate, *options)
        mine.assert_like(exact)


def _base(name: str):
    backend = NumpyBackend()
    return getattr(BaseBackend, name).__get__(backend)


def test_the_first_step_of_adam_is_the_rate() -> None:
    """eps stands after the bias-corrected root: before it, a tiny gradient would hardly move."""
    p, g = np.ones(3, np.float32), np.array([1e-6, -1, 1e6], np.float32)
    state = np.zeros(3, np.float32), np.zeros(3, np.float32), np.array(0)
    RefBackend().adam_([p], [g], *([a] for a in state), np.array(0.5), 0.9, 0.999, 1e-8, 0.0, False)
    np.testing.assert_allclose(p, [1 - 0.5 / 1.01, 1.5, 0.5], rtol=1e-5)


def test_nan_stays_in_its_entry() -> None:
    p = np.array([1, INF, 1, 1], np.float32)
    g = np.array([NAN, 1, INF, 1], np.float32)
    q, v = p.copy(), np.zeros(4, np.float32)
    backend = RefBackend()
    backend.sgd_([q], [g], [], [np.array(0)], np.array(0.5), 0.0, 0.0, 0.0, False)
    np.testing.assert_array_equal(q, [NAN, INF, -INF, 0.5])
    m = np.zeros(4, np.float32)
    backend.adam_([p], [g], [m], [v], [np.array(0)], np.array(0.5), 0.9, 0.999, 1e-8, 0.0, False)
    np.testing.assert_allclose(p, [NAN, INF, NAN, 0.5], rtol=1e-5)


@pytest.mark.parametrize("form", ["float64", "every second", "transposed"])
def test_what_the_kernel_cannot_change_in_place_is_left_to_numpy(form: str) -> None:
    """Float64 and strided parameters, one among others; gradients of any strides."""

    def make(seed: int) -> np.ndarray:
        a = data((6, 8), seed)
        return {"float64": a.astype(float), "every second": a[:, ::2], "transposed": a.T}[form]

    backend, rate = RefBackend(), np.array(0.1)
    for name, options in (("adam_", (0.9, 0.999, 1e-8, 0.0, False)), ("sgd_", (0.9, 0.0, 0.0, False))):
        results = []
        for run in (getattr(backend, name), _base(name)):
            lists = [[data((5,), seed), make(seed)] for seed in range(3 if name == "sgd_" else 4)]
            if name == "adam_":
                lists[3] = [np.abs(a) for a in lists[3]]
                lists[3][1] = np.asarray(lists[3][1])
            run(*lists, [np.array(0), np.array(0)], rate, *options)
            results.append(lists)
        for a, b in zip(*results, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_wrong_arrays_are_refused_before_anything_is_written() -> None:
    p, m, v = (np.zeros(4, np.float32) for _ in range(3))
    with pytest.raises(ValueError, match=r"^adam_: grad must have shape \(4,\), got \(5,\)$"):
        RefBackend().adam_([p], [np.ones(5, np.float32)], [m], [v], [np.array(0)], np.array(0.1), 0, 0, 0, 0, False)
    assert not p.any()
