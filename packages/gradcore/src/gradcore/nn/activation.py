"""Activations as layers: ReLU, Sigmoid, Tanh. Each is one tensor operation."""

from __future__ import annotations

from gradcore.nn.layer import Layer
from gradcore.tensor import Tensor


class ReLU(Layer):
    """max(x, 0); slope 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.relu()


class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()


class Tanh(Layer):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh()
