"""Losses: layers of two inputs. `backward()` starts from 1 and returns the gradient of the prediction.

y = model(x)
loss = criterion(y, target)
model.backward(criterion.backward())
"""

from __future__ import annotations

from typing import Any

from gradcore.backend.base import BaseBackend
from gradcore.convert import whole_number
from gradcore.nn.layer import Layer
from gradcore.ops.losses import bce_with_logits, mse_loss
from gradcore.ops.softmax import check_reduction, cross_entropy
from gradcore.tensor import Tensor


class Loss(Layer):
    """Base of the losses: a reduction, and a gradient for the prediction only."""

    tracked_inputs = 1

    def __init__(self, reduction: str = "mean", *, backend: str | BaseBackend | None = None) -> None:
        super().__init__(backend=backend)
        check_reduction(type(self).__name__, reduction)
        self.reduction = reduction

    def describe(self) -> str:
        return "" if self.reduction == "mean" else f"reduction={self.reduction!r}"


class MSELoss(Loss):
    """Mean of (prediction - target)**2, both of one shape (ShapeError otherwise)."""

    def forward(self, prediction: Tensor, target: Any) -> Tensor:
        return mse_loss(prediction, target, self.reduction)


class CrossEntropyLoss(Loss):
    """Cross-entropy of logits (N, C) with integer labels (N,); rows labelled ignore_index count for nothing."""

    def __init__(
        self, ignore_index: int = -100, reduction: str = "mean", *, backend: str | BaseBackend | None = None
    ) -> None:
        super().__init__(reduction, backend=backend)
        self.ignore_index = whole_number("CrossEntropyLoss", "ignore_index", ignore_index)

    def forward(self, logits: Tensor, labels: Any) -> Tensor:
        return cross_entropy(logits, labels, self.ignore_index, self.reduction)

    def describe(self) -> str:
        parts = [] if self.ignore_index == -100 else [f"ignore_index={self.ignore_index}"]
        return ", ".join([*parts, *filter(None, [super().describe()])])


class BCEWithLogitsLoss(Loss):
    """Binary cross-entropy of logits with probabilities of the same shape."""

    def forward(self, logits: Tensor, target: Any) -> Tensor:
        return bce_with_logits(logits, target, self.reduction)
