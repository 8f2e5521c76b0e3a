"""Gradient clipping. A clipped gradient is a new tensor: gradients may share memory, so none is scaled in place."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gradcore.convert import check_number
from gradcore.errors import ArgumentError, GradcoreError
from gradcore.tensor import Tensor

_TINY = 1e-30


def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float, error_if_nonfinite: bool = False) -> float:
    """Scale all gradients so that their joint 2-norm is at most max_norm; returns the norm before.

    The norm is accumulated in float64, where squares of float32 cannot overflow. An infinite norm makes finite entries
    0 and infinite ones NaN, a NaN norm makes all NaN; with error_if_nonfinite both raise ArgumentError.
    """
    limit = check_number("clip_grad_norm_", "max_norm", max_norm)
    chosen = _with_grad(parameters)
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
            back, grad = p.backend, _grad(p)
            if scale == 0.0:  # an infinite norm: finite entries become 0, infinite ones NaN, without a warning
                p.grad = Tensor._wrap(back.divide(grad._array, math.inf), back)
            elif scale < _TINY:  # subnormal in float32, where few bits are left of it
                wide = back.multiply(back.astype(grad._array, np.float64), scale)
                p.grad = Tensor._wrap(back.astype(wide, p.dtype), back)
            else:
                p.grad = Tensor._wrap(back.multiply(grad._array, scale), back)
    return norm


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Bound every gradient entry to -clip_value..clip_value; NaN stays."""
    limit = check_number("clip_grad_value_", "clip_value", clip_value)
    for p in _with_grad(parameters):
        back = p.backend
        low = back.maximum(_grad(p)._array, -limit)
        p.grad = Tensor._wrap(back.negative(back.maximum(back.negative(low), -limit)), back)


def _with_grad(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    """Those that have a gradient; one tensor stands for a list of it."""
    every = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in every if p.grad is not None]


def _grad(p: Tensor) -> Tensor:
    if p.grad is None:
        raise GradcoreError("clip: the gradient vanished while it was clipped")
    return p.grad
