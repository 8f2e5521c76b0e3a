"""Fixtures of gradcore's tests: each CPU backend in turn, and a comparison with PyTorch in value and gradient."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor
from gradcore.backend.base import BaseBackend

TOLERANCE = {"float32": {"rtol": 1e-5, "atol": 1e-6}, "float64": {"rtol": 1e-12, "atol": 1e-12}}
ON_CPU = 1  # DLPack's device type


def chosen_backends() -> list[str]:
    """The backends that can run here and keep their arrays on the CPU; or those that GRADCORE_TEST_BACKENDS names."""
    asked = os.environ.get("GRADCORE_TEST_BACKENDS")
    if asked:
        return asked.split(",")
    names = [row.name for row in gradcore.list_backends() if row.available]
    return [n for n in names if gradcore.get_backend(n).empty((1,), np.float32).__dlpack_device__()[0] == ON_CPU]


@pytest.fixture(params=chosen_backends())
def backend_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def backend(backend_name: str) -> Iterator[BaseBackend]:
    """The current backend of the test; tensors made without a backend live there."""
    with gradcore.use_backend(backend_name) as chosen:
        yield chosen


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def close() -> Callable[..., None]:
    """close(actual, expected): equal within the tolerance of actual's type, shapes exactly."""

    def check(actual: Any, expected: Any, **tolerance: float) -> None:
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, **{**TOLERANCE.get(str(actual.dtype), {}), **tolerance})

    return check


# How an operand lies in memory: (values -> what the leaf holds, leaf -> operand with the values, its gradient likewise)
LAYOUTS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Tensor], Tensor]]] = {
    "contiguous": (lambda a: a, lambda x: x),
    "transposed": (lambda a: a.transpose(), lambda x: x.permute_dims(tuple(reversed(range(x.ndim))))),
    "reversed": (lambda a: a[::-1] if a.ndim else a, lambda x: x[::-1] if x.ndim else x),
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def against_torch(backend: BaseBackend, close: Callable[..., None]) -> Callable[..., None]:
    """compare(ours, theirs, *arrays, layout): both functions on the same operands; values, gradients, types agree."""
    torch = pytest.importorskip("torch")

    def compare(
        ours: Callable[..., Tensor],
        theirs: Callable[..., Any],
        *arrays: np.ndarray,
        layout: str = "contiguous",
        **tolerance: float,
    ) -> None:
        store, view = LAYOUTS[layout]
        leaves = [Tensor(np.array(store(a)), requires_grad=True) for a in arrays]
        tensors = [torch.tensor(np.array(a), requires_grad=True) for a in arrays]
        y, expected = ours(*[view(leaf) for leaf in leaves]), theirs(*tensors)
        assert str(expected.dtype) == f"torch.{y.dtype}"
        close(y, expected.detach().numpy(), **tolerance)
        upstream = np.random.default_rng(11).normal(size=y.shape).astype(y.dtype)
        y.backward(upstream)
        expected.backward(torch.tensor(upstream))
        for leaf, tensor in zip(leaves, tensors, strict=True):
            assert leaf.grad is not None
            close(leaf.grad, store(tensor.grad.numpy()), **tolerance)

    return compare
