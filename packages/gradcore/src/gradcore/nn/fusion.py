"""The peephole of Sequential: neighbours that have a fused operation are called as one.

A user writes plain layers; `Sequential(..., fuse=False)` calls them one by one. Only the exact types match: a subclass
has a forward of its own. A layer that was fused away has no border on the tape, so its own `backward` cannot be
called; it raises and names fuse=False. The whole network's backward, and `loss.backward()`, are as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcore.nn.activation import ReLU
from gradcore.nn.conv import Conv2d
from gradcore.nn.layer import FUSED, Layer
from gradcore.nn.linear import Linear
from gradcore.nn.pool import MaxPool2d
from gradcore.ops.fused import conv2d_relu_max_pool2d, linear_relu
from gradcore.tensor import Tensor


def _conv_relu_pool(x: Tensor, conv: Any, relu: Any, pool: Any) -> Tensor:
    options = conv.stride, conv.padding, conv.dilation, conv.groups
    window = pool.kernel_size, pool.stride, pool.padding, pool.dilation
    return conv2d_relu_max_pool2d(x, conv.weight, conv.bias, options, window, pool.ceil_mode)


def _linear_relu(x: Tensor, linear: Any, relu: Any) -> Tensor:
    return linear_relu(x, linear.weight, linear.bias)


# the longest first; a new fused operation is a line here
PATTERNS: list[tuple[tuple[type[Layer], ...], Callable[..., Tensor]]] = [
    ((Conv2d, ReLU, MaxPool2d), _conv_relu_pool),
    ((Linear, ReLU), _linear_relu),
]


def run(layers: Sequence[Layer], x: Tensor) -> Tensor:
    """Call the layers in order, fused where a pattern matches."""
    kinds = tuple(type(layer) for layer in layers)
    i = 0
    while i < len(layers):
        for pattern, call in PATTERNS:
            if kinds[i : i + len(pattern)] == pattern:
                members = layers[i : i + len(pattern)]
                x = call(x, *members)
                for layer in members:
                    layer._last = FUSED
                i += len(pattern)
                break
        else:
            x = layers[i](x)
            i += 1
    return x
