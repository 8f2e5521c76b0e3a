"""Gradient clipping. A clipped gradient is a new tensor: gradients may share memory, so none is scaled in place."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gradcore.errors import ArgumentError, GradcoreError
from gradcore.optim.optimizer import check_number
from gradcore.tensor import Tensor


def clip_grad_norm_(parameters: Iterable[Tensor], max_norm: float, error_if_nonfinite: bool = False) -> float:
    """Scale all gradients so that their joint 2-norm is at most max_norm; returns the norm before.

    The norm is accumulated in float64, where squares of float32 cannot overflow. An infinite or NaN norm makes the
    gradients NaN or zero as the arithmetic has it, or raises ArgumentError if error_if_nonfinite.
    """
    limit = check_number("clip_grad_norm_", "max_norm", max_norm)
    chosen = [p for p in parameters if p.grad is not None]
    total = 0.0
    for p in chosen:
        back, grad = p.backend, _grad(p)
        wide = back.astype(grad._array, np.float64)
        total += float(back.to_numpy(back.sum(back.multiply(wide, wide), None, False)))
    norm = math.sqrt(total)
    if error_if_nonfinite and not math.isfinite(norm):
        raise ArgumentError(f"clip_grad_norm_: the gradient norm is {norm}")
    scale = limit / (norm + 1e-6)
    if not scale >= 1.0:
        for p in chosen:
            p.grad = Tensor._wrap(p.backend.multiply(_grad(p)._array, scale), p.backend)
    return norm


def clip_grad_value_(parameters: Iterable[Tensor], clip_value: float) -> None:
    """Bound every gradient entry to -clip_value..clip_value; NaN stays."""
    limit = check_number("clip_grad_value_", "clip_value", clip_value)
    for p in parameters:
        if p.grad is not None:
            back = p.backend
            low = back.maximum(_grad(p)._array, -limit)
            p.grad = Tensor._wrap(back.negative(back.maximum(back.negative(low), -limit)), back)


def _grad(p: Tensor) -> Tensor:
    if p.grad is None:
        raise GradcoreError("clip: the gradient vanished while it was clipped")
    return p.grad
