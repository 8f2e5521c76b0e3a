"""Batch normalisation beside PyTorch, and dropout: its mask is its gradient."""

import numpy as np
import pytest

from gradcore import Tensor
from gradcore.ops.norm import BatchNorm, Dropout

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("shape", [(8, 3), (4, 3, 5, 6), (2, 3, 7), (2, 1, 2, 2)], ids=str)
def test_batch_norm_beside_torch(
    shape: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    torch = pytest.importorskip("torch")
    x, w, b = rng.normal(2, 3, shape), rng.uniform(0.5, 2, shape[1]), rng.normal(size=shape[1])
    against_torch(
        BatchNorm(1e-5),
        lambda x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True, eps=1e-5),
        *(a.astype(dtype) for a in (x, w, b)),
        layout=layout,
        **({"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}),
    )


def test_statistics_are_those_of_the_batch(dtype: str, rng: np.random.Generator, close) -> None:
    values = rng.normal(5, 2, (6, 3, 4)).astype(dtype)
    step = BatchNorm(1e-5)
    step(Tensor(values), Tensor(np.ones(3, dtype)), Tensor(np.zeros(3, dtype)))
    mean, var = step.statistics
    mean, var = (step.backend.to_numpy(array) for array in (mean, var))
    close(mean, values.astype(np.float64).mean((0, 2)))
    close(var, values.astype(np.float64).var((0, 2)))


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_dropout_scales_what_it_keeps(p: float, backend, dtype: str) -> None:
    counter = backend.asarray(np.array(0))
    x = Tensor(np.ones((100, 100), dtype), requires_grad=True)
    y = Dropout(p, 5, counter)(x)
    y.backward(np.ones(y.shape, dtype))
    np.testing.assert_array_equal(x.grad.numpy(), y.numpy())
    scale = 1 / (1 - p) if p < 1 else 0
    assert set(np.unique(y.numpy())) <= {0.0, np.array(scale, dtype).item()}
    assert np.mean(y.numpy() == 0) == pytest.approx(p, abs=0.02)


def test_dropout_moves_on(backend) -> None:
    """Two calls have two masks; the same counter has the same mask."""

    def mask(counter: object) -> list:
        return Dropout(0.5, 5, counter)(Tensor(np.ones(64, np.float32))).tolist()

    counter = backend.asarray(np.array(0))
    first, second = mask(counter), mask(counter)
    assert first != second
    assert int(backend.to_numpy(counter)) == 32
    assert mask(backend.asarray(np.array(0))) == first
    assert mask(backend.asarray(np.array(16))) == second
