"""The references of softmax and cross-entropy, against PyTorch's autograd."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcore.testing.cases.softmax import CASES, softmax_cross_entropy, softmax_cross_entropy_backward


def of(operation: str) -> list[Any]:
    return [case for case in CASES if case.operation == operation]


@pytest.mark.parametrize("operation", ["softmax", "log_softmax"])
def test_forward(operation: str, torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    torch_agrees(of(operation), getattr(torch, operation))


@pytest.mark.parametrize("operation", ["softmax", "log_softmax"])
def test_backward(operation: str, torch_agrees: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    function = getattr(torch.ops.aten, f"_{operation}_backward_data")
    torch_agrees(of(f"{operation}_backward"), lambda grad, y, axis: function(grad, y, axis, y.dtype))


def test_cross_entropy(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def entropy(logits: Any, labels: Any, ignore_index: int, reduction: str) -> Any:
        loss = functional.cross_entropy(logits, labels.long(), ignore_index=ignore_index, reduction=reduction)
        return [loss, functional.log_softmax(logits, 1)]

    torch_agrees(of("softmax_cross_entropy"), entropy)


def test_cross_entropy_backward(torch_agrees: Callable[..., None]) -> None:
    functional = pytest.importorskip("torch.nn.functional")

    def by_autograd(grad: Any, log_probs: Any, labels: Any, ignore_index: int, reduction: str) -> Any:
        leaf = log_probs.requires_grad_()
        functional.cross_entropy(leaf, labels.long(), ignore_index=ignore_index, reduction=reduction).backward(grad)
        kept = (labels != ignore_index)[:, None]  # PyTorch's mean over no rows has NaN slopes; ours are 0
        return leaf.grad.where(kept, 0.0)

    # log-probabilities that are none: PyTorch's autograd would normalise them first
    skip = ["special", "stretched"]
    torch_agrees(of("softmax_cross_entropy_backward"), by_autograd, skip=skip)


def test_everything_ignored() -> None:
    labels = np.array([-100, -100])
    loss, log_probs = softmax_cross_entropy(np.zeros((2, 3)), labels, -100, "mean")
    assert math.isnan(loss)
    grad = softmax_cross_entropy_backward(np.array(1.0), log_probs, labels, -100, "mean")
    assert not grad.any()


def test_one_of_two_ignored() -> None:
    labels = np.array([1, -100])
    loss, log_probs = softmax_cross_entropy(np.zeros((2, 3)), labels, -100, "mean")
    assert float(loss) == pytest.approx(1.0986123)
    grad = softmax_cross_entropy_backward(np.array(1.0), log_probs, labels, -100, "mean")
    assert grad.tolist() == [pytest.approx([1 / 3, -2 / 3, 1 / 3]), [0, 0, 0]]
