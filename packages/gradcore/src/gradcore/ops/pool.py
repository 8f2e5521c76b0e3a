"""Two-dimensional max and average pooling.

Ties go to the first maximum in row-major order, a NaN wins (the last one), padding acts as minus infinity.
The kernels are the backend's; here are the argument checks, the output size (ceil_mode) and the gradient rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcore.errors import ArgumentError, ShapeError
from gradcore.function import Function
from gradcore.ops.window import image_shape, output_size, pair

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Pair, Shape
    from gradcore.tensor import Tensor

PairLike = int | tuple[int, int]
Window = tuple["Pair", "Pair", "Pair", "Pair"]  # kernel, stride, padding, dilation


class MaxPool2d(Function):
    """x (N, C, H, W): y (N, C, OH, OW). Saves the position of each maximum, not x."""

    __slots__ = ("out_size", "window", "x_shape")
    backend: Any  # with Pool2dOps; one without says so

    def __init__(self, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, out_size: Pair) -> None:
        self.window = kernel, stride, padding, dilation
        self.out_size = out_size

    def forward(self, x: Array) -> Any:
        self.x_shape = x.shape
        y, self.saved = self.backend.max_pool2d(x, *self.window, self.out_size)
        return y

    def backward(self, grad: Array) -> Any:
        return self.backend.max_pool2d_backward(grad, self.saved, self.x_shape, *self.window)


class AvgPool2d(Function):
    """x (N, C, H, W): y (N, C, OH, OW)."""

    __slots__ = ("count_include_pad", "out_size", "window", "x_shape")
    backend: Any  # with Pool2dOps; one without says so

    def __init__(self, kernel: Pair, stride: Pair, padding: Pair, out_size: Pair, count_include_pad: bool) -> None:
        self.window = kernel, stride, padding
        self.out_size = out_size
        self.count_include_pad = count_include_pad

    def forward(self, x: Array) -> Any:
        self.x_shape = x.shape
        return self.backend.avg_pool2d(x, *self.window, self.out_size, self.count_include_pad)

    def backward(self, grad: Array) -> Any:
        return self.backend.avg_pool2d_backward(grad, self.x_shape, *self.window, self.count_include_pad)


def max_pool2d(
    x: Tensor,
    kernel_size: PairLike,
    stride: PairLike | None = None,
    padding: PairLike = 0,
    dilation: PairLike = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest entry of each window of x (N, C, H, W); stride defaults to the kernel size."""
    window = check_window("max_pool2d", kernel_size, stride, padding, dilation)
    out = max_pool_size(image_shape("max_pool2d", x.shape)[2:], window, ceil_mode)
    return MaxPool2d(*window, out)(x)


def avg_pool2d(
    x: Tensor,
    kernel_size: PairLike,
    stride: PairLike | None = None,
    padding: PairLike = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of x (N, C, H, W); stride defaults to the kernel size.

    count_include_pad: divide by the padding's entries too (never by the overhang of ceil_mode).
    """
    kernel, step, pad, _ = check_window("avg_pool2d", kernel_size, stride, padding, 1)
    size = image_shape("avg_pool2d", x.shape)[2:]
    out = output_size("avg_pool2d", size, kernel, step, pad, (1, 1), ceil_mode)
    return AvgPool2d(kernel, step, pad, out, bool(count_include_pad))(x)


def check_window(operation: str, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> Window:
    """(kernel, stride, padding, dilation) in their one form; ArgumentError names what makes no sense."""
    kernel = pair(operation, "kernel_size", kernel_size, 1)
    step = kernel if stride is None else pair(operation, "stride", stride, 1)
    pad = pair(operation, "padding", padding, 0)
    spread = pair(operation, "dilation", dilation, 1)
    for k, p, d in zip(kernel, pad, spread, strict=True):
        reach = d * (k - 1) + 1
        if p > reach // 2:
            raise ArgumentError(f"{operation}: padding {p} is more than half of the kernel's reach {reach}")
    return kernel, step, pad, spread


def max_pool_size(size: Shape, window: Window, ceil_mode: bool) -> Pair:
    """(OH, OW) for an input plane of `size`; ShapeError if the window is too large, or steps over the input."""
    out = output_size("max_pool2d", size, *window, ceil_mode)
    if window[3] != (1, 1):
        _refuse_empty_windows(size, *window, out)
    return out


def _refuse_empty_windows(size: Shape, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, out: Pair) -> None:
    """A dilated window can step over a small input altogether; its maximum would be minus infinity."""
    for n, k, s, p, d, count in zip(size, kernel, stride, padding, dilation, out, strict=True):
        for o in range(count):
            if not any(0 <= o * s - p + i * d < n for i in range(k)):
                raise ShapeError(
                    f"max_pool2d: kernel {kernel} with dilation {dilation} and padding {padding} "
                    f"has a window that misses the input of {size[0]}x{size[1]}"
                )
