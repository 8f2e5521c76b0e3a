"""The references of the fused operations, against PyTorch's parts one after the other, and its autograd."""

from collections.abc import Callable
from typing import Any

import pytest

from gradcore.testing.cases.fused import CASES

FUSED = "conv2d_relu_max_pool2d"


def of(operation: str) -> list[Any]:
    return [case for case in CASES if case.operation == operation]


def test_linear_relu(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")
    torch_agrees(of("linear_relu"), lambda x, w, b: functional.linear(x, w, b).relu())


def test_forward(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def forward(x: Any, weight: Any, bias: Any, conv: Any, pool: Any, size: Any) -> Any:
        y = functional.conv2d(x, weight, bias, *conv).relu()
        for ceil_mode in (False, True):
            out, indices = functional.max_pool2d(y, *pool, ceil_mode=ceil_mode, return_indices=True)
            if tuple(out.shape[2:]) == size:
                break
        return [out, indices.masked_fill(out <= 0, -1).int()]

    torch_agrees(of(FUSED), forward)


def test_backwards(torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")

    def unpool(grad: Any, indices: Any, size: Any) -> Any:
        plane = torch.zeros(*grad.shape[:2], size[0] * size[1], dtype=grad.dtype)
        places, values = indices.flatten(2).long(), grad.flatten(2)
        closed = places < 0
        plane.scatter_add_(2, places.masked_fill(closed, 0), values.masked_fill(closed, 0.0))
        return plane.reshape(*grad.shape[:2], *size)

    def to_input(grad: Any, indices: Any, weight: Any, shape: Any, size: Any, conv: Any, _: Any) -> Any:
        x = torch.zeros(shape, dtype=grad.dtype, requires_grad=True)
        torch.nn.functional.conv2d(x, weight, None, *conv).backward(unpool(grad, indices, size))
        return x.grad

    def to_weight(grad: Any, indices: Any, x: Any, shape: Any, size: Any, conv: Any, _: Any) -> Any:
        weight = torch.zeros(shape, dtype=grad.dtype, requires_grad=True)
        torch.nn.functional.conv2d(x, weight, None, *conv).backward(unpool(grad, indices, size))
        return weight.grad

    def to_bias(grad: Any, indices: Any) -> Any:
        return grad.masked_fill(indices < 0, 0.0).sum((0, 2, 3))

    torch_agrees(of(f"{FUSED}_backward_input"), to_input)
    torch_agrees(of(f"{FUSED}_backward_weight"), to_weight)
    torch_agrees(of(f"{FUSED}_backward_bias"), to_bias)
