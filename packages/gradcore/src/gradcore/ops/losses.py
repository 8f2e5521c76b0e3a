"""Losses that compare two tensors of one shape: squared error, and binary cross-entropy with logits.

Shapes must be equal: broadcasting (N, 1) against (N,) would compare everything with everything, in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcore.errors import ShapeError
from gradcore.function import Function, as_tensor
from gradcore.ops.reduce import mean as mean_of
from gradcore.ops.softmax import check_reduction

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array
    from gradcore.tensor import Tensor


class SquaredError(Function):
    """(a - b)**2, elementwise."""

    __slots__ = ()

    def forward(self, a: Array, b: Array) -> Array:
        self.saved = self.backend.subtract(a, b)
        return self.backend.multiply(self.saved, self.saved)

    def backward(self, grad: Array) -> Any:
        grad_a = self.backend.multiply(grad, self.backend.multiply(self.saved, 2.0))
        return grad_a, self.backend.negative(grad_a) if self.needs[1] else None


class BCEWithLogits(Function):
    """-t*log(sigmoid(x)) - (1-t)*log(1-sigmoid(x)), elementwise, as max(x, 0) - x*t + log(1 + exp(-|x|))."""

    __slots__ = ()

    def forward(self, x: Array, target: Array) -> Array:
        self.saved = x, target
        back = self.backend
        tail = back.log1p(back.exp(back.negative(back.abs(x))))
        return back.add(back.subtract(back.maximum(x, 0.0), back.multiply(x, target)), tail)

    def backward(self, grad: Array) -> Any:
        x, target = self.saved
        back = self.backend
        grad_x = back.multiply(grad, back.subtract(back.sigmoid(x), target)) if self.needs[0] else None
        return grad_x, back.negative(back.multiply(grad, x)) if self.needs[1] else None


def mse_loss(prediction: Tensor, target: Any, reduction: str = "mean") -> Tensor:
    """Squared error of two tensors of one shape. Raises ShapeError if the shapes differ."""
    return _reduce("mse_loss", SquaredError(), prediction, target, reduction)


def bce_with_logits(logits: Tensor, target: Any, reduction: str = "mean") -> Tensor:
    """Binary cross-entropy; target holds probabilities, of the logits' shape. Raises ShapeError if shapes differ."""
    return _reduce("bce_with_logits", BCEWithLogits(), logits, target, reduction)


def _reduce(operation: str, loss: Function, prediction: Tensor, target: Any, reduction: str) -> Tensor:
    check_reduction(operation, reduction)
    target = as_tensor(target, prediction)
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{operation}: got prediction {prediction.shape} and target {target.shape}, shapes must be equal; "
            "reshape the target"
        )
    losses = loss(prediction, target)
    if reduction == "none":
        return losses
    return mean_of(losses) if reduction == "mean" else losses.sum()
