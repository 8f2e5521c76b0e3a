"""Flatten: (N, C, H, W) to (N, C*H*W), between the convolutions and the linear layers."""

from __future__ import annotations

from gradcore.backend.base import BaseBackend
from gradcore.nn.layer import Layer
from gradcore.tensor import Tensor


class Flatten(Layer):
    """Merge the axes from start_axis on."""

    def __init__(self, start_axis: int = 1, *, backend: str | BaseBackend | None = None) -> None:
        super().__init__(backend=backend)
        self.start_axis = start_axis

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_axis)

    def describe(self) -> str:
        return "" if self.start_axis == 1 else f"start_axis={self.start_axis}"
