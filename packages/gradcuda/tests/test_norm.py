"""Batch normalisation: gradcore's cases, channels cut into many parts, and a mean that is large beside the spread."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend.numpy import NumpyBackend
from gradcore.testing.cases import CASES
from gradcore.testing.check import check_case

pytestmark = pytest.mark.gpu

NORM = [case for case in CASES if case.operation.startswith("batch_norm")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", NORM, ids=lambda case: case.id)
def test_case(backend: Any, case: Any, dtype: str) -> None:
    check_case(backend, case, dtype)


@pytest.mark.parametrize("shape", [(64, 3, 40, 41), (512, 2), (3, 700, 1, 1), (2, 16, 128, 128), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_parts_are_joined(backend: Any, shape: tuple[int, ...], shift: float) -> None:
    rng = np.random.default_rng(0)
    x, grad = rng.normal(shift, 2, shape).astype(np.float32), rng.uniform(-1, 1, shape).astype(np.float32)
    weight, bias = rng.uniform(-1, 1, (2, shape[1])).astype(np.float32)
    wide = [a.astype(np.float64) for a in (x, weight, bias, grad)]
    y, mean, var = NumpyBackend().batch_norm(*wide[:3], 1e-5)
    ours = backend.batch_norm(*map(backend.asarray, (x, weight, bias)), 1e-5)
    slack = 1e-5 + 1e-6 * shift
    for a, b in zip(ours, (y, mean, var), strict=True):
        np.testing.assert_allclose(backend.to_numpy(a), b, rtol=1e-5, atol=slack)
    gradients = NumpyBackend().batch_norm_backward(wide[3], wide[0], wide[1], mean, var, 1e-5)
    ours = backend.batch_norm_backward(*map(backend.asarray, (grad, x, weight)), *ours[1:], 1e-5)
    for a, b in zip(ours, gradients, strict=True):
        np.testing.assert_allclose(backend.to_numpy(a), b, rtol=1e-4, atol=slack * (10 + np.abs(b).max()))
