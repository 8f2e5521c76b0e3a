"""The references of the convolutions, against PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest

from gradcore.testing.cases.conv import CASES


def of(operation: str) -> list[Any]:
    return [case for case in CASES if case.operation == operation]


def test_forward(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")
    torch_agrees(of("conv2d"), functional.conv2d)


def test_backward_input(torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")

    def backward(grad: Any, weight: Any, x_shape: Any, *options: Any) -> Any:
        x = torch.zeros(x_shape, dtype=grad.dtype, requires_grad=True)
        torch.nn.functional.conv2d(x, weight, None, *options).backward(grad)
        return x.grad

    torch_agrees(of("conv2d_backward_input"), backward)


def test_backward_weight(torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")

    def backward(grad: Any, x: Any, weight_shape: Any, *options: Any) -> Any:
        weight = torch.zeros(weight_shape, dtype=grad.dtype, requires_grad=True)
        torch.nn.functional.conv2d(x, weight, None, *options).backward(grad)
        return weight.grad

    torch_agrees(of("conv2d_backward_weight"), backward)
