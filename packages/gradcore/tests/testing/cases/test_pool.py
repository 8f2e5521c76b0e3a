"""The references of the poolings, against PyTorch; what PyTorch refuses, by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.pool import CASES, max_pool2d, out_size

REFUSED = ["dilation_padding"]  # padding over half of the kernel, within its dilated reach


def of(operation: str) -> list[Any]:
    return [case for case in CASES if case.operation == operation]


def with_size(size: Any, function: Callable[[bool], Any]) -> Any:
    """The output of that size: rounded down or up."""
    for ceil_mode in (False, True):
        result = function(ceil_mode)
        y = result[0] if isinstance(result, tuple) else result
        if tuple(y.shape[2:]) == tuple(size):
            return result
    raise AssertionError(f"neither way of rounding gives {size}")


def test_max(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def pool(x: Any, *arguments: Any) -> Any:
        *window, size = arguments
        y, indices = with_size(
            size, lambda ceil: functional.max_pool2d(x, *window, ceil_mode=ceil, return_indices=True)
        )
        return [y, indices.int()]

    torch_agrees(of("max_pool2d"), pool, skip=REFUSED)


def test_max_backward(torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")

    def backward(grad: Any, indices: Any, x_shape: Any, *_: Any) -> Any:
        n, c, h, w = x_shape
        flat = torch.zeros((n, c, h * w), dtype=grad.dtype)
        return flat.scatter_add_(2, indices.long().flatten(2), grad.flatten(2)).reshape(x_shape)

    torch_agrees(of("max_pool2d_backward"), backward)


def test_average(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def pool(x: Any, kernel: Any, stride: Any, padding: Any, size: Any, include: bool) -> Any:
        return with_size(size, lambda ceil: functional.avg_pool2d(x, kernel, stride, padding, ceil, include))

    torch_agrees(of("avg_pool2d"), pool)


def test_average_backward(torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")

    def backward(grad: Any, x_shape: Any, kernel: Any, stride: Any, padding: Any, include: bool) -> Any:
        x = torch.zeros(x_shape, dtype=grad.dtype, requires_grad=True)
        pool = torch.nn.functional.avg_pool2d
        y = with_size(grad.shape[2:], lambda ceil: pool(x, kernel, stride, padding, ceil, include))
        y.backward(grad)
        return x.grad

    torch_agrees(of("avg_pool2d_backward"), backward)


def test_dilation_and_padding_by_hand() -> None:
    x = np.arange(25.0).reshape(1, 1, 5, 5)
    y, indices = max_pool2d(x, (3, 3), (2, 2), (2, 2), (2, 2), (3, 3))
    assert y.ravel().tolist() == [12, 14, 14, 22, 24, 24, 22, 24, 24]
    assert indices.ravel().tolist() == [12, 14, 14, 22, 24, 24, 22, 24, 24]


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "floor", "ceil"),
    [
        ((6, 7), 1, 2, 0, (3, 4), (3, 4)),
        ((8, 10), 3, 4, 0, (2, 2), (2, 3)),
        ((5, 6), 1, 2, 0, (3, 3), (3, 3)),
        ((5, 5), 2, 2, 1, (3, 3), (3, 3)),
        ((5, 5), 3, 3, 1, (2, 2), (2, 2)),
        ((25, 25), 2, 2, 0, (12, 12), (13, 13)),
        ((4, 4), 3, 2, 1, (2, 2), (3, 3)),
    ],
)
def test_sizes(
    shape: tuple[int, int], kernel: int, stride: int, padding: int, floor: tuple[int, int], ceil: tuple[int, int]
) -> None:
    arguments = (1, 1, *shape), (kernel,) * 2, (stride,) * 2, (padding,) * 2, (1, 1)
    assert out_size(*arguments, False) == floor
    assert out_size(*arguments, True) == ceil
