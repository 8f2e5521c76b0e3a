"""MaxPool2d and AvgPool2d. Conventions (ties, NaN, padding, ceil_mode) are in ops/pool.py."""

from __future__ import annotations

from gradcore.backend.base import BaseBackend
from gradcore.nn.conv import short
from gradcore.nn.layer import Layer
from gradcore.ops.pool import avg_pool2d, check_window, max_pool2d
from gradcore.tensor import Tensor

PairLike = int | tuple[int, int]


class MaxPool2d(Layer):
    """Largest entry of each window of (N, C, H, W); stride defaults to the kernel size.

    >>> import gradcore
    >>> gradcore.nn.MaxPool2d(2)
    MaxPool2d(2)
    """

    def __init__(
        self,
        kernel_size: PairLike,
        stride: PairLike | None = None,
        padding: PairLike = 0,
        dilation: PairLike = 1,
        ceil_mode: bool = False,
        *,
        backend: str | BaseBackend | None = None,
    ) -> None:
        super().__init__(backend=backend)
        self.kernel_size, self.stride, self.padding, self.dilation = check_window(
            "MaxPool2d", kernel_size, stride, padding, dilation
        )
        self.ceil_mode = bool(ceil_mode)

    def forward(self, x: Tensor) -> Tensor:
        return max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def describe(self) -> str:
        return _window(self) + (f", dilation={short(self.dilation)}" if self.dilation != (1, 1) else "")


class AvgPool2d(Layer):
    """Mean of each window of (N, C, H, W); stride defaults to the kernel size."""

    def __init__(
        self,
        kernel_size: PairLike,
        stride: PairLike | None = None,
        padding: PairLike = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        *,
        backend: str | BaseBackend | None = None,
    ) -> None:
        super().__init__(backend=backend)
        self.kernel_size, self.stride, self.padding, _ = check_window("AvgPool2d", kernel_size, stride, padding, 1)
        self.ceil_mode = bool(ceil_mode)
        self.count_include_pad = bool(count_include_pad)

    def forward(self, x: Tensor) -> Tensor:
        return avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def describe(self) -> str:
        return _window(self) + ("" if self.count_include_pad else ", count_include_pad=False")


def _window(layer: MaxPool2d | AvgPool2d) -> str:
    parts = [short(layer.kernel_size)]
    parts += [f"stride={short(layer.stride)}"] if layer.stride != layer.kernel_size else []
    parts += [f"padding={short(layer.padding)}"] if layer.padding != (0, 0) else []
    parts += ["ceil_mode=True"] if layer.ceil_mode else []
    return ", ".join(parts)
