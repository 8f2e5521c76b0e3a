"""What the layers' tests share: the CPU backends, both float types, and the comparison with PyTorch.

Tolerance: float64 1e-12, float32 1e-5, relative to the largest entry (or to 0.1, if all are smaller).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Parameter, Tensor, nn
from gradcore.backend import BaseBackend
from gradcore.nn import Buffer


@pytest.fixture(autouse=True)
def backend(backend: BaseBackend) -> BaseBackend:
    """The current backend of every test; equal weights in each run."""
    gradcore.manual_seed(0)
    return backend


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    return np.dtype(request.param)


@pytest.fixture
def cast(dtype: np.dtype[Any]) -> Callable[[nn.Layer], Any]:
    """A layer with its float parameters and buffers in the test's dtype."""

    def change(layer: nn.Layer) -> nn.Layer:
        for each in layer.layers():
            for name, value in list(vars(each).items()):
                if isinstance(value, Parameter | Buffer) and value.dtype.kind == "f":
                    setattr(each, name, type(value)(value.numpy().astype(dtype), backend=value.backend))
        return layer

    return change


@pytest.fixture
def close(dtype: np.dtype[Any]) -> Callable[..., None]:
    """Equal within the test's dtype; shapes and dtype exactly."""

    def check(got: Any, expected: Any, name: str = "") -> None:
        got, expected = np.asarray(got), np.asarray(expected)
        assert got.shape == expected.shape, name
        assert got.dtype == dtype, name
        bound = 1e-5 if dtype == np.float32 else 1e-12
        scale = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.1))
        np.testing.assert_allclose(got, expected, rtol=bound, atol=bound * scale, err_msg=name)

    return check


@pytest.fixture
def like_torch(dtype: np.dtype[Any], cast: Any, close: Any) -> Callable[..., None]:
    """Forward and every gradient of a layer against its PyTorch twin, with the weights handed over by state_dict."""
    torch = pytest.importorskip("torch")

    def compare(layer: nn.Layer, twin: Any, *shape: int, low: float = -2.0) -> None:
        cast(layer)
        twin.to(torch.float32 if dtype == np.float32 else torch.float64)
        twin.load_state_dict({name: torch.tensor(value) for name, value in layer.state_dict().items()})
        rng = np.random.default_rng(1)
        values = rng.uniform(low, 2.0, shape).astype(dtype)
        x, other = Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
        y, expected = layer(x), twin(other)
        close(y, expected.detach().numpy(), "forward")
        upstream = rng.standard_normal(y.shape).astype(dtype)
        y.backward(upstream)
        expected.backward(torch.tensor(upstream))
        close(x.grad, other.grad.numpy(), "input")
        theirs = dict(twin.named_parameters())
        assert [name for name, _ in layer.named_parameters()] == list(theirs)
        for name, parameter in layer.named_parameters():
            close(parameter.grad, theirs[name].grad.numpy(), name)
        # the classic interface is the same mechanism: the same bits
        grads = [p.grad.numpy() for p in layer.parameters()]
        layer.zero_grad()
        layer(Tensor(values))
        np.testing.assert_array_equal(layer.backward(upstream), x.grad)
        for p, grad in zip(layer.parameters(), grads, strict=True):
            np.testing.assert_array_equal(p.grad, grad)

    return compare
