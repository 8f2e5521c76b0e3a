"""Dropout (Srivastava et al. 2014): in training, zero entries at random; in evaluation, pass everything."""

from __future__ import annotations

import numpy as np

from gradcore.backend.base import BaseBackend
from gradcore.convert import check_number
from gradcore.errors import ArgumentError
from gradcore.nn.layer import Layer
from gradcore.nn.parameter import Buffer
from gradcore.ops.norm import Dropout as DropoutStep
from gradcore.random import next_key
from gradcore.tensor import Tensor


class Dropout(Layer):
    """Zero each entry with probability p and scale the rest by 1/(1-p), so that the mean stays.

    The layer has a random stream of its own: a key drawn at construction and a counter, which checkpoints keep.
    """

    def __init__(self, p: float = 0.5, *, backend: str | BaseBackend | None = None) -> None:
        super().__init__(backend=backend)
        self.p = check_number("Dropout", "p", p)
        if self.p > 1.0:
            raise ArgumentError(f"Dropout: p must lie in 0..1, got {p}")
        self.key = next_key()
        self.counter = Buffer(np.array(0, np.int64), backend=backend, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        return DropoutStep(self.p, self.key, self.counter._array)(x)

    def describe(self) -> str:
        return f"{self.p}"
