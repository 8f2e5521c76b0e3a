"""Batch normalisation (Ioffe and Szegedy 2015) and dropout (Srivastava et al. 2014)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcore.function import Function

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array


class BatchNorm(Function):
    """x (N, C, ...), weight (C,), bias (C,): normalised by this batch's mean and variance, kept in `statistics`."""

    __slots__ = ("eps", "statistics")

    def __init__(self, eps: float) -> None:
        self.eps = eps

    def forward(self, x: Array, weight: Array, bias: Array) -> Array:
        y, mean, var = self.backend.batch_norm(x, weight, bias, self.eps)
        self.statistics = mean, var
        self.saved = x, weight, mean, var
        return y

    def backward(self, grad: Array) -> Any:
        x, weight, mean, var = self.saved
        return self.backend.batch_norm_backward(grad, x, weight, mean, var, self.eps)


class Dropout(Function):
    """Zero each entry with probability p and scale the rest by 1/(1-p).

    key and counter place the mask in the Philox stream; the counter lives on the backend and moves on.
    """

    __slots__ = ("counter", "key", "p")

    def __init__(self, p: float, key: int, counter: Array) -> None:
        self.p, self.key, self.counter = p, key, counter

    def forward(self, x: Array) -> Array:
        back = self.backend
        kept = back.greater_equal(back.random_uniform(x.shape, self.key, self.counter), self.p)
        scale = 1.0 / (1.0 - self.p) if self.p < 1.0 else 0.0
        self.saved = back.multiply(back.astype(kept, x.dtype), scale)
        return back.multiply(x, self.saved)

    def backward(self, grad: Array) -> Array:
        return self.backend.multiply(grad, self.saved)
