"""The bounded and rectified elementwise Functions: tanh, sigmoid, relu. Each slope is a formula in the output y.

The backend has each of them, and its backward, as one derived operation, so that a kernel can fuse it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcore.function import Function

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array


class Tanh(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.tanh(x)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.tanh_backward(grad, self.saved)


class Sigmoid(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.sigmoid(x)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.sigmoid_backward(grad, self.saved)


class ReLU(Function):
    __slots__ = ()

    def forward(self, x: Array) -> Array:
        y = self.backend.relu(x)
        self.saved = y
        return y

    def backward(self, grad: Array) -> Array:
        return self.backend.relu_backward(grad, self.saved)
