"""Sequential: layers one after the other, neighbours fused where there is one operation for them (fusion.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcore.errors import ArgumentError
from gradcore.nn import fusion
from gradcore.nn.attributes import members
from gradcore.nn.layer import Layer
from gradcore.tensor import Tensor


class Sequential(Layer):
    """Calls its layers in order; children are named "0", "1", ... as in PyTorch.

    fuse: call neighbours such as Conv2d, ReLU, MaxPool2d as one operation (fusion.py). The values are the same; the
    single layers' own `backward` then needs fuse=False.

    >>> import gradcore.nn as nn
    >>> nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    Sequential(
      (0): Linear(2, 8)  # 24 parameters
      (1): Tanh()
      (2): Linear(8, 1)  # 9 parameters
    )  # 33 parameters
    """

    def __init__(self, *layers: Layer, fuse: bool = True) -> None:
        for i, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise ArgumentError(f"Sequential: argument {i} must be a Layer, got {type(layer).__name__}")
        self._layers = list(layers)
        self.fuse = fuse
        super().__init__(backend=next((p.backend for p in self.parameters()), None))

    def forward(self, x: Tensor) -> Tensor:
        if self.fuse:
            return fusion.run(self._layers, x)
        for layer in self._layers:
            x = layer(x)
        return x

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        for name, layer in members(self, Layer):  # a subclass may hold more layers than these
            yield name.removeprefix("_layers."), layer

    def __getitem__(self, index: int | slice) -> Any:
        """A layer, or for a slice a Sequential of the same layers."""
        return Sequential(*self._layers[index], fuse=self.fuse) if isinstance(index, slice) else self._layers[index]

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)
