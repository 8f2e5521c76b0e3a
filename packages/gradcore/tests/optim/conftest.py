"""What the optimizers' tests share: the CPU backends, both float types, and PyTorch as the oracle."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore import Parameter
from gradcore.backend import BaseBackend


@pytest.fixture(autouse=True)
def backend(backend: BaseBackend) -> BaseBackend:
    """The current backend of every test."""
    return backend


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    return np.dtype(request.param)


@pytest.fixture
def run(dtype: np.dtype[Any]) -> Callable[..., list[float]]:
    """The values of one number after each step; a gradient of None is none."""

    def steps(make: Callable[[list[Parameter]], Any], start: float, *grads: float | None) -> list[float]:
        p = Parameter(np.array([start], dtype))
        optimizer = make([p])
        values = []
        for grad in grads:
            p.grad = None if grad is None else np.array([grad], dtype)
            optimizer.step()
            values.append(p.item())
        return values

    return steps


@pytest.fixture
def near(dtype: np.dtype[Any]) -> Callable[[list[float]], Any]:
    """The worked-out numbers have 10 digits."""
    return lambda values: pytest.approx(values, rel=1e-9 if dtype == np.float64 else 1e-6)


@pytest.fixture
def like_torch(dtype: np.dtype[Any]) -> Callable[..., None]:
    """25 steps on three parameters beside PyTorch; a gradient is missing now and then, the rate changes on the way."""
    torch = pytest.importorskip("torch")

    def compare(make: Callable[[Any], Any], twin: Callable[[Any], Any], rate: float) -> None:
        rng = np.random.default_rng(0)
        starts = [rng.standard_normal(shape).astype(dtype) for shape in ((3, 4), (4,), (1,))]
        ours = [Parameter(start) for start in starts]
        theirs = [torch.tensor(start, requires_grad=True) for start in starts]
        optimizer, other = make(ours), twin(theirs)
        assert optimizer.lr == rate
        for step in range(25):
            if step == 12:
                optimizer.lr = other.param_groups[0]["lr"] = rate / 3
            for i, (p, q) in enumerate(zip(ours, theirs, strict=True)):
                grad = (rng.standard_normal(p.shape) * 10.0 ** rng.integers(-3, 2)).astype(dtype)
                absent = i == 1 and step % 3 == 1
                p.grad = None if absent else grad
                q.grad = None if absent else torch.tensor(grad)
            optimizer.step()
            other.step()
            for p, q in zip(ours, theirs, strict=True):
                bound = 2e-6 if dtype == np.float32 else 1e-12
                np.testing.assert_allclose(p, q.detach().numpy(), rtol=bound, atol=bound, err_msg=f"step {step}")

    return compare
