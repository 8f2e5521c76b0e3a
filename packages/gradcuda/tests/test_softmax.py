"""softmax and cross-entropy on gradcore's cases, every layout of the axis, and labels that are no class."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ArgumentError
from gradcore.testing.cases import softmax
from gradcore.testing.check import check_case

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", softmax.CASES, ids=lambda case: case.id)
def test_case(backend: Any, case: Any, dtype: str) -> None:
    check_case(backend, case, dtype)


@pytest.mark.parametrize(("shape", "axis"), [((300, 1024), 1), ((5, 40_000), 1), ((3, 2000, 7), 1), ((900, 5), 0)])
@pytest.mark.parametrize("operation", ["softmax", "log_softmax"])
def test_rows_of_every_length(backend: Any, operation: str, shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(0)
    x, grad = rng.uniform(-4, 4, shape), rng.uniform(-1, 1, shape)
    y = getattr(NumpyBackend(), operation)(x, axis)
    dx = getattr(NumpyBackend(), f"{operation}_backward")(grad, y, axis)
    array = backend.asarray(x.astype(np.float32))
    ours = getattr(backend, operation)(array, axis)
    np.testing.assert_allclose(backend.to_numpy(ours), y, rtol=1e-5, atol=1e-6)
    ours = getattr(backend, f"{operation}_backward")(
        backend.asarray(grad.astype(np.float32)), backend.asarray(y.astype(np.float32)), axis
    )
    np.testing.assert_allclose(backend.to_numpy(ours), dx, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [5, 5000])  # the backward counts the labels inside, or in a launch of its own
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_rows(backend: Any, reduction: str, n: int) -> None:
    rng = np.random.default_rng(0)
    logits, labels = rng.uniform(-4, 4, (n, 10)).astype(np.float32), rng.integers(0, 10, n)
    labels[::3] = -1
    loss, log_probs = backend.softmax_cross_entropy(backend.asarray(logits), backend.asarray(labels), -1, reduction)
    want, want_probs = NumpyBackend().softmax_cross_entropy(logits.astype(np.float64), labels, -1, reduction)
    np.testing.assert_allclose(backend.to_numpy(loss), want, rtol=1e-5)
    grad = np.asarray(rng.uniform(0.5, 2, np.shape(want)), np.float32)
    ours = backend.softmax_cross_entropy_backward(
        backend.asarray(grad), log_probs, backend.asarray(labels), -1, reduction
    )
    dx = NumpyBackend().softmax_cross_entropy_backward(grad, want_probs, labels, -1, reduction)
    np.testing.assert_allclose(backend.to_numpy(ours), dx, rtol=1e-4, atol=1e-7)
    assert not backend.to_numpy(ours)[::3].any()


@pytest.mark.parametrize("label", [3, -1, 2**40])
def test_a_label_on_the_device_that_is_no_class(backend: Any, label: int) -> None:
    logits, labels = backend.asarray(np.zeros((2, 3), np.float32)), backend.asarray(np.array([1, label]))
    backend.softmax_cross_entropy(logits, labels, -100, "none")
    with pytest.raises(ArgumentError, match=f"label {label} is not one of 0..2"):
        backend.synchronize()
    loss, _ = backend.softmax_cross_entropy(logits, backend.asarray(np.array([1, 2])), -100, "mean")
    assert abs(float(backend.to_numpy(loss)) - np.log(3)) < 1e-6
