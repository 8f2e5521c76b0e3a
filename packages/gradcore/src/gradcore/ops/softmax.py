"""Softmax, its logarithm, and cross-entropy with integer labels: each subtracts the largest entry first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcore.errors import ArgumentError, ShapeError
from gradcore.function import Function, watch
from gradcore.ops.axes import one_axis
from gradcore.ops.shape import index_array

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array
    from gradcore.tensor import Tensor

REDUCTIONS = ("mean", "sum", "none")


class Softmax(Function):
    __slots__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: Array) -> Array:
        y = self.backend.softmax(x, self.axis)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.softmax_backward(grad, self.saved, self.axis)


class LogSoftmax(Function):
    __slots__ = ("axis",)

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def forward(self, x: Array) -> Array:
        y = self.backend.log_softmax(x, self.axis)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.log_softmax_backward(grad, self.saved, self.axis)


class SoftmaxCrossEntropy(Function):
    """-log softmax(logits)[label], per row, summed or averaged. labels: an integer array (N,) of the backend."""

    __slots__ = ("ignore_index", "labels", "reduction")

    def __init__(self, labels: Array, ignore_index: int, reduction: str) -> None:
        self.labels = labels
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, logits: Array) -> Array:
        loss, self.saved = self.backend.softmax_cross_entropy(logits, self.labels, self.ignore_index, self.reduction)
        return loss

    def backward(self, grad: Array) -> Array:
        return self.backend.softmax_cross_entropy_backward(
            grad, self.saved, self.labels, self.ignore_index, self.reduction
        )


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`."""
    return Softmax(_filled_axis("softmax", x, axis))(x)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - log(sum(exp(x))) along `axis`; exact for logits of any size."""
    return LogSoftmax(_filled_axis("log_softmax", x, axis))(x)


def cross_entropy(logits: Tensor, labels: Any, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """Cross-entropy of logits (N, C) with integer labels (N,).

    Rows labelled ignore_index count for nothing; "mean" divides by the others. Raises ArgumentError for a label that
    is no class, DTypeError for labels that are not integers.
    """
    check_reduction("cross_entropy", reduction)
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ShapeError(f"cross_entropy: logits must be (N, C) with C at least 1, got {logits.shape}")
    array = index_array("cross_entropy", labels, logits, logits.shape[1], ignore_index)
    if array.shape != logits.shape[:1]:
        raise ShapeError(f"cross_entropy: got labels {array.shape} for logits {logits.shape}, expected one label a row")
    return watch(SoftmaxCrossEntropy(array, ignore_index, reduction)(logits), labels)


def _filled_axis(operation: str, x: Tensor, axis: int) -> int:
    """axis as 0..ndim-1, if there is something along it."""
    index = one_axis(operation, axis, x.ndim)
    if x.shape[index] == 0:
        raise ArgumentError(f"{operation}: no elements along axis {axis} of shape {x.shape}")
    return index


def check_reduction(operation: str, reduction: str) -> None:
    """Raise ArgumentError for a reduction that does not exist."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"{operation}: reduction {reduction!r} is not one of {', '.join(REDUCTIONS)}")
