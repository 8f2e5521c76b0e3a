"""The fused Functions beside their parts: values, gradients, which gradients are computed, and errors."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, ops
from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ShapeError
from gradcore.ops.fused import conv2d_relu_max_pool2d, linear_relu

CONV = ((1, 1), (1, 1), (1, 1), 1)
POOL = ((2, 2), (2, 2), (0, 0), (1, 1))
RNG = np.random.default_rng(0)


def operands(dtype: str, *shapes: tuple[int, ...]) -> list[Tensor]:
    return [Tensor(RNG.standard_normal(shape).astype(dtype), requires_grad=True) for shape in shapes]


def gradients(y: Tensor, tensors: list[Tensor]) -> list[np.ndarray]:
    weights = np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)
    return [g.numpy() for g in gradcore.grad((y * weights).sum(), tensors)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linear_relu(backend_name: str, dtype: str, bias: bool) -> None:
    with gradcore.use_backend(backend_name):
        tensors = operands(dtype, (2, 5, 7), (4, 7), *([(4,)] if bias else []))
        fused, plain = linear_relu(*tensors), ops.linear(*tensors).relu()
        np.testing.assert_array_equal(fused.numpy(), plain.numpy())
        for a, b in zip(gradients(fused, tensors), gradients(plain, tensors), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conv2d_relu_max_pool2d(backend_name: str, dtype: str, bias: bool) -> None:
    with gradcore.use_backend(backend_name):
        tensors = operands(dtype, (2, 3, 9, 8), (4, 3, 3, 3), *([(4,)] if bias else []))
        fused = conv2d_relu_max_pool2d(tensors[0], tensors[1], tensors[2] if bias else None, CONV, POOL)
        plain = ops.max_pool2d(ops.conv2d(*tensors, padding=1).relu(), 2)
        np.testing.assert_allclose(fused.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)
        for a, b in zip(gradients(fused, tensors), gradients(plain, tensors), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


def test_an_infinite_factor_behind_a_closed_entry_leaves_no_nan(backend_name: str) -> None:
    """0 * inf is NaN in the plain network; a closed entry contributes exactly nothing in the fused one."""
    with gradcore.use_backend(backend_name):
        x = Tensor(np.full((1, 1, 4, 4), -1.0, np.float32), requires_grad=True)
        weight = Tensor(np.full((1, 1, 1, 1), 2.0, np.float32), requires_grad=True)
        y = conv2d_relu_max_pool2d(x, weight, None, ((1, 1), (0, 0), (1, 1), 1), POOL)
        grads = gradcore.grad(y, [x, weight], np.full((1, 1, 2, 2), np.inf, np.float32))
        assert [np.abs(g.numpy()).max() for g in grads] == [0.0, 0.0]


def test_the_first_layers_input_gradient_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def note(*arguments: Any) -> None:
        asked.append(arguments)

    monkeypatch.setattr(NumpyBackend, "conv2d_backward_input", note)
    weight, bias = operands("float32", (4, 3, 3, 3), (4,))
    conv2d_relu_max_pool2d(Tensor(np.ones((2, 3, 8, 8), np.float32)), weight, bias, CONV, POOL).sum().backward()
    assert weight.grad is not None
    assert not asked


def test_shapes_are_checked_in_the_parts_names() -> None:
    x, weight = operands("float32", (2, 3, 8, 8), (4, 2, 3, 3))
    with pytest.raises(ShapeError, match="conv2d: got input"):
        conv2d_relu_max_pool2d(x, weight, None, CONV, POOL)
    with pytest.raises(ShapeError, match="linear: got input"):
        linear_relu(*operands("float32", (2, 3), (4, 5)))
