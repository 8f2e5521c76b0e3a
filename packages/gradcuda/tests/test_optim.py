"""The optimizers in one launch: gradcore's cases, more parameters than one table holds, two types at once, the rate."""

from typing import Any

import numpy as np
import pytest

from gradcore.backend import BaseBackend
from gradcore.backend.numpy import NumpyBackend
from gradcore.testing.cases import optim
from gradcore.testing.check import check_case

pytestmark = pytest.mark.gpu

SIZES = [5, 0, 1, 4096, 1023, 1025, 100_000, *[3] * 150]  # chunks of 1024 entries, tables of 64 parameters
ADAM = [(0.9, 0.999, 1e-8, 0.0, False), (0.9, 0.999, 1e-8, 0.1, False), (0.8, 0.99, 1e-6, 0.1, True)]
SGD = [(0.0, 0.0, 0.0, False), (0.9, 0.0, 0.1, False), (0.9, 0.5, 0.0, False), (0.9, 0.0, 0.0, True)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", optim.CASES, ids=lambda case: case.id)
def test_case(backend: Any, case: Any, dtype: str) -> None:
    check_case(backend, case, dtype)


def make(rng: np.random.Generator) -> list[np.ndarray]:
    """Every fourth parameter is float64."""
    return [rng.uniform(-1, 1, n).astype(np.float64 if i % 4 == 3 else np.float32) for i, n in enumerate(SIZES)]


@pytest.mark.parametrize("options", [*ADAM, *SGD], ids=str)
def test_many_parameters_of_two_types(backend: Any, options: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(0)
    parameters = make(rng)
    moments = [[np.zeros_like(p) for p in parameters] for _ in range(2)]
    steps = [np.array(0, np.int64) for _ in parameters]
    lists = [parameters, *moments, steps]
    ours = [[backend.asarray(a) for a in one] for one in lists]
    rates = [np.array(0.01), np.array(0.01), np.array(0.003)]
    name, used = ("adam_", 2) if len(options) == 5 else ("sgd_", 1 if options[0] else 0)
    our_rate = backend.asarray(rates[0])
    for rate in rates:
        grads = make(rng)
        backend.copy_(our_rate, backend.asarray(rate))
        backend_moments = ours[1 : 1 + used] if name == "adam_" else [ours[1] if used else ()]
        host_moments = lists[1 : 1 + used] if name == "adam_" else [lists[1] if used else ()]
        getattr(backend, name)(
            ours[0], [backend.asarray(g) for g in grads], *backend_moments, ours[3], our_rate, *options
        )
        getattr(BaseBackend, name)(NumpyBackend(), lists[0], grads, *host_moments, lists[3], rate, *options)
    for mine, want in zip(ours, lists, strict=True):
        for a, b in zip(mine, want, strict=True):
            tolerance = {"float32": 2e-6, "float64": 1e-13, "int64": 0}[b.dtype.name]
            np.testing.assert_allclose(backend.to_numpy(a), b, rtol=tolerance, atol=tolerance)
