"""Two-dimensional convolution (cross-correlation, as every framework and PMPP chapter 16 have it).

y[n, o, i, j] = bias[o] + sum over c, p, q of weight[o, c, p, q] * x[n, c, i*stride - padding + p*dilation, ...].
The kernels are the backend's; here are the argument checks and the gradient rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcore.errors import ArgumentError, ShapeError
from gradcore.function import Function
from gradcore.ops.window import image_shape, output_size, pair

if TYPE_CHECKING:
    from gradcore.backend.protocol import Array, Pair
    from gradcore.tensor import Tensor


Options = tuple["Pair", "Pair", "Pair", int]  # stride, padding, dilation, groups


class Conv2d(Function):
    """x (N, C, H, W), weight (O, C/groups, KH, KW), bias (O,) or none: y (N, O, OH, OW)."""

    __slots__ = ("options",)
    backend: Any  # with Conv2dOps; one without says so

    def __init__(self, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> None:
        self.options = stride, padding, dilation, groups

    def forward(self, x: Array, weight: Array, bias: Array | None = None) -> Any:
        self.saved = x, weight
        return self.backend.conv2d(x, weight, bias, *self.options)

    def backward(self, grad: Array) -> Any:
        x, weight = self.saved
        back = self.backend
        grad_x = grad_weight = None
        if self.needs[0]:
            grad_x = back.conv2d_backward_input(grad, weight, x.shape, *self.options)
        if self.needs[1]:
            grad_weight = back.conv2d_backward_weight(grad, x, weight.shape, *self.options)
        if len(self.needs) == 2:
            return grad_x, grad_weight
        return grad_x, grad_weight, back.sum(grad, (0, 2, 3), False) if self.needs[2] else None


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve x (N, C, H, W) with weight (O, C/groups, KH, KW). Raises ShapeError and ArgumentError."""
    options = check_options("conv2d", stride, padding, dilation, groups)
    check_operands(x, weight, bias, options)
    step = Conv2d(*options)
    return step(x, weight) if bias is None else step(x, weight, bias)


def check_operands(x: Tensor, weight: Tensor, bias: Tensor | None, options: Options) -> Pair:
    """(OH, OW) of a convolution with options in their one form; ShapeError if the operands do not fit."""
    groups = options[3]
    image_shape("conv2d", x.shape)
    if weight.ndim != 4 or 0 in weight.shape:
        raise ShapeError(f"conv2d: weight must be (O, C/groups, KH, KW) with no size 0, got {weight.shape}")
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ShapeError(
            f"conv2d: got input {x.shape} and weight {weight.shape} with groups {groups}, "
            f"expected {weight.shape[1] * groups} input channels and output channels that groups divides"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(f"conv2d: got bias {bias.shape}, expected {weight.shape[:1]} for weight {weight.shape}")
    kernel = weight.shape[2], weight.shape[3]
    return output_size("conv2d", x.shape[2:], kernel, *options[:3])


def check_options(operation: str, stride: Any, padding: Any, dilation: Any, groups: int) -> Options:
    """The options in their one form; ArgumentError names the one that makes no sense."""
    if not isinstance(groups, int) or groups < 1:
        raise ArgumentError(f"{operation}: groups must be an integer of at least 1, got {groups!r}")
    return (
        pair(operation, "stride", stride, 1),
        pair(operation, "padding", padding, 0),
        pair(operation, "dilation", dilation, 1),
        groups,
    )
