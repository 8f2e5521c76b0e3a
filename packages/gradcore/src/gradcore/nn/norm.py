"""BatchNorm2d (Ioffe and Szegedy 2015): in training normalise by the batch, in evaluation by running statistics."""

from __future__ import annotations

import math

import numpy as np

from gradcore.backend.base import BaseBackend
from gradcore.backend.protocol import Array
from gradcore.convert import check_number, whole_number
from gradcore.errors import ShapeError
from gradcore.nn.layer import Layer
from gradcore.nn.parameter import Buffer, Parameter
from gradcore.ops.norm import BatchNorm
from gradcore.tensor import Tensor


class BatchNorm2d(Layer):
    """x (N, C, H, W) normalised per channel, then scaled by weight (C,) and shifted by bias (C,).

    running = (1 - momentum) * running + momentum * batch, with the unbiased variance, as in PyTorch. Raises
    ShapeError in training for a batch that has one value per channel or none.
    """

    def __init__(
        self, channels: int, eps: float = 1e-5, momentum: float = 0.1, *, backend: str | BaseBackend | None = None
    ) -> None:
        super().__init__(backend=backend)
        channels = whole_number("BatchNorm2d", "channels", channels, 1)
        self.eps = check_number("BatchNorm2d", "eps", eps)
        self.momentum = check_number("BatchNorm2d", "momentum", momentum)
        self.weight = Parameter(np.ones(channels, np.float32), backend=backend)
        self.bias = Parameter(np.zeros(channels, np.float32), backend=backend)
        self.running_mean = Buffer(np.zeros(channels, np.float32), backend=backend)
        self.running_var = Buffer(np.ones(channels, np.float32), backend=backend)
        self.num_batches_tracked = Buffer(np.array(0, np.int64), backend=backend)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.weight.shape[0]:
            raise ShapeError(f"batch_norm: got input {x.shape}, expected (N, {self.weight.shape[0]}, H, W)")
        if not self.training:
            column = (1, -1, 1, 1)
            scale = self.weight / (self.running_var + self.eps).sqrt()
            return (x - self.running_mean.reshape(column)) * scale.reshape(column) + self.bias.reshape(column)
        count = math.prod(x.shape) // x.shape[1]
        if count < 2:
            raise ShapeError(f"batch_norm: training needs more than one value per channel, got input {x.shape}")
        step = BatchNorm(self.eps)
        y = step(x, self.weight, self.bias)
        mean, var = step.statistics
        back, momentum = x.backend, self.momentum
        self._change(self.running_mean, 1.0 - momentum, back.multiply(mean, momentum))
        self._change(self.running_var, 1.0 - momentum, back.multiply(var, momentum * count / (count - 1)))
        self._change(self.num_batches_tracked, 1, 1)
        return y

    def _change(self, running: Buffer, kept: float, added: Array | int) -> None:
        """running = kept * running + added, in place."""
        back = running.backend
        running.copy_(Tensor._wrap(back.add(back.multiply(running._array, kept), added), back))

    def describe(self) -> str:
        return f"{self.weight.shape[0]}"
