"""The references of the activations and of batch normalisation, against PyTorch's autograd."""

from collections.abc import Callable
from typing import Any

import pytest

from gradcore.testing.cases.derived import CASES


def of(*operations: str) -> list[Any]:
    return [case for case in CASES if case.operation in operations]


@pytest.mark.parametrize("operation", ["relu", "sigmoid"])
def test_activations(operation: str, torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    torch_agrees(of(operation), getattr(torch, operation))


@pytest.mark.parametrize(
    ("operation", "torch_name"),
    [
        ("relu_backward", "threshold_backward"),
        ("sigmoid_backward", "sigmoid_backward"),
        ("tanh_backward", "tanh_backward"),
    ],
)
def test_activations_backward(operation: str, torch_name: str, torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    function = getattr(torch.ops.aten, torch_name)
    torch_agrees(of(operation), lambda grad, y: function(grad, y, 0.0) if operation[0] == "r" else function(grad, y))


def test_sum_to(torch_agrees: Callable[..., None]) -> None:
    def by_autograd(x: Any, shape: Any) -> Any:
        start = x.new_zeros(shape).requires_grad_()
        start.expand(x.shape).backward(x)
        return start.grad

    torch_agrees(of("sum_to"), by_autograd)


def test_take_batch(torch_agrees: Callable[..., None]) -> None:
    torch_agrees(of("take_batch"), lambda x, order, cursor, rows: x[order[int(cursor) : int(cursor) + rows]])


def test_batch_norm(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        axes = [i for i in range(x.ndim) if i != 1]
        y = functional.batch_norm(x, None, None, weight, bias, True, eps=eps)
        return [y, x.mean(axes), x.var(axes, correction=0)]

    torch_agrees(of("batch_norm"), norm)


def test_batch_norm_backward(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def by_autograd(grad: Any, x: Any, weight: Any, mean: Any, var: Any, eps: float) -> Any:
        leaves = [x.requires_grad_(), weight.requires_grad_(), weight.detach().clone().requires_grad_()]
        functional.batch_norm(leaves[0], None, None, leaves[1], leaves[2], True, eps=eps).backward(grad)
        return [leaf.grad for leaf in leaves]

    torch_agrees(of("batch_norm_backward"), by_autograd)
