"""Derived operations and their backwards, inherited or overridden. Cases: ../cases/derived.py and softmax.py."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from gradcore.errors import ArgumentError
from gradcore.testing.cases import Case
from gradcore.testing.compare import assert_close
from gradcore.testing.fixtures import each_case, run_case
from gradcore.testing.marks import operation

INF = math.inf


@each_case("derived", "softmax")
def test_derived(backend: Any, case: Case, dtype: str) -> None:
    run_case(backend, case, dtype)


@operation("softmax_cross_entropy")
@pytest.mark.parametrize(
    ("logits", "label", "loss"),
    [
        ([1e4, 0, -1e4], 0, 0),
        ([1e4, 0, -1e4], 1, 1e4),
        ([1e4, 0, -1e4], 2, 2e4),
        ([-INF, 0, 0], 1, math.log(2)),
        ([-INF, 2, -INF], 1, 0),
        ([0, -INF, 0], 1, INF),
    ],
)
def test_extreme_logits_without_a_warning(backend: Any, logits: list[float], label: int, loss: float) -> None:
    x, labels = backend.asarray(np.array([logits], np.float32)), backend.asarray(np.array([label]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _ = backend.softmax_cross_entropy(x, labels, -100, "mean")
    assert_close(backend.to_numpy(found), np.array(loss, np.float32))


@operation("softmax_cross_entropy_backward")
@pytest.mark.parametrize(
    ("logits", "label", "slopes"),
    [
        ([1e4, 0, -1e4], 0, [0, 0, 0]),
        ([1e4, 0, -1e4], 1, [1, -1, 0]),
        ([1e4, 0, -1e4], 2, [1, 0, -1]),
        ([-INF, 0, 0], 1, [0, -0.5, 0.5]),
        ([-INF, 2, -INF], 1, [0, 0, 0]),
        ([0, -INF, 0], 1, [0.5, -1, 0.5]),
    ],
)
def test_slopes_of_extreme_logits(backend: Any, logits: list[float], label: int, slopes: list[float]) -> None:
    x, labels = backend.asarray(np.array([logits], np.float32)), backend.asarray(np.array([label]))
    one = backend.full((), 1.0, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad = backend.softmax_cross_entropy_backward(one, backend.log_softmax(x, 1), labels, -100, "mean")
    assert_close(backend.to_numpy(grad), np.array([slopes], np.float32))


@operation("softmax_cross_entropy")
@pytest.mark.parametrize("bad", [-1, 3])
def test_a_label_that_is_no_class(backend: Any, bad: int) -> None:
    """Told at once or at the next synchronising call, by value and class count; afterwards all is as before."""
    x = backend.full((2, 3), 0.0, np.float32)
    with pytest.raises(ArgumentError, match=rf"cross_entropy: label {bad} .*3 classes"):
        entropy_synchronized(backend, x, backend.asarray(np.array([0, bad])))
    backend.synchronize()
    loss, _ = backend.softmax_cross_entropy(x, backend.asarray(np.array([0, 2])), -100, "mean")
    assert_close(backend.to_numpy(loss), np.array(math.log(3), np.float32))


def entropy_synchronized(backend: Any, logits: Any, labels: Any) -> None:
    backend.softmax_cross_entropy(logits, labels, -100, "mean")
    backend.synchronize()


@operation("batch_norm")
def test_batch_norm_of_shifted_data(backend: Any) -> None:
    """Variance by the difference of two large numbers would be noise here: mean 1000, deviation 0.1."""
    rng = np.random.default_rng(0)
    x = (1000 + 0.1 * rng.standard_normal((64, 2, 8))).astype(np.float32)
    ones, zeros = backend.full((2,), 1.0, np.float32), backend.full((2,), 0.0, np.float32)
    y, _, var = backend.batch_norm(backend.asarray(x), ones, zeros, 1e-5)
    wide = x.astype(np.float64)
    assert_close(backend.to_numpy(var), wide.var((0, 2)), rtol=1e-3, dtype=False)
    assert_close(backend.to_numpy(y).std((0, 2)), np.ones(2, np.float32), rtol=2e-3)
