"""Initialisers: fill a tensor in place with numbers drawn on the host (PyTorch's names and formulas).

fan_in is the number of inputs of one output: `in` of a Linear weight (out, in), C/groups*KH*KW of a convolution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcore.errors import ArgumentError, ShapeError
from gradcore.random import host_generator
from gradcore.tensor import Tensor

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0)}


def uniform_(tensor: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Uniform in [low, high)."""
    return tensor.copy_(draw_uniform(tensor.shape, low, high))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return tensor.copy_(host_generator().normal(mean, std, tensor.shape))


def constant_(tensor: Tensor, value: float) -> Tensor:
    """One value everywhere."""
    return tensor.copy_(np.full(tensor.shape, value))


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def kaiming_uniform_(tensor: Tensor, nonlinearity: str = "relu") -> Tensor:
    """U(-b, b) with b = gain * sqrt(3 / fan_in) (He et al. 2015)."""
    bound = gain(nonlinearity) * math.sqrt(3.0 / fans(tensor.shape)[0])
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, nonlinearity: str = "relu") -> Tensor:
    """N(0, gain**2 / fan_in) (He et al. 2015)."""
    return normal_(tensor, 0.0, gain(nonlinearity) / math.sqrt(fans(tensor.shape)[0]))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """U(-b, b) with b = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6.0 / sum(fans(tensor.shape)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """N(0, gain**2 * 2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor.shape))))


def gain(nonlinearity: str) -> float:
    """The factor that keeps the variance through an activation."""
    if nonlinearity not in _GAINS:
        raise ArgumentError(f"init: nonlinearity {nonlinearity!r} is not one of {', '.join(_GAINS)}")
    return _GAINS[nonlinearity]


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (out, in, ...)."""
    if len(shape) < 2:
        raise ShapeError(f"init: fans need a weight of at least two axes, got {shape}")
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def draw_uniform(shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """float32 on the host."""
    return host_generator().uniform(low, high, shape).astype(np.float32)


def default(shape: tuple[int, ...], fan_in: int) -> Any:
    """PyTorch's default for Linear and Conv2d, weight and bias alike: U(-1/sqrt(fan_in), 1/sqrt(fan_in))."""
    bound = 1.0 / math.sqrt(fan_in)
    return draw_uniform(shape, -bound, bound)
