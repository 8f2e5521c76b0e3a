"""Conv2d: a bank of filters over an image (PMPP chapter 16). The arithmetic is in ops/conv.py and the backends."""

from __future__ import annotations

from gradcore.backend.base import BaseBackend
from gradcore.convert import whole_number
from gradcore.errors import ArgumentError
from gradcore.nn import init
from gradcore.nn.layer import Layer
from gradcore.nn.parameter import Parameter
from gradcore.ops.conv import check_options, conv2d
from gradcore.ops.window import pair
from gradcore.tensor import Tensor

PairLike = int | tuple[int, int]


class Conv2d(Layer):
    """x (N, in_channels, H, W) to (N, out_channels, OH, OW); weight (O, C/groups, KH, KW), bias (O,).

    >>> import gradcore
    >>> gradcore.nn.Conv2d(1, 16, 3, padding=1)
    Conv2d(1, 16, 3, padding=1)  # 160 parameters
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PairLike,
        stride: PairLike = 1,
        padding: PairLike = 0,
        dilation: PairLike = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        backend: str | BaseBackend | None = None,
    ) -> None:
        super().__init__(backend=backend)
        self.stride, self.padding, self.dilation, self.groups = check_options(
            "Conv2d", stride, padding, dilation, groups
        )
        kernel = pair("Conv2d", "kernel_size", kernel_size, 1)
        in_channels = whole_number("Conv2d", "in_channels", in_channels, 1)
        out_channels = whole_number("Conv2d", "out_channels", out_channels, 1)
        if in_channels % groups or out_channels % groups:
            raise ArgumentError(
                f"Conv2d: groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}"
            )
        fan_in = in_channels // groups * kernel[0] * kernel[1]
        self.weight = Parameter(init.default((out_channels, in_channels // groups, *kernel), fan_in), backend=backend)
        self.bias = Parameter(init.default((out_channels,), fan_in), backend=backend) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def describe(self) -> str:
        out_channels, per_group, *kernel = self.weight.shape
        parts = [str(per_group * self.groups), str(out_channels), short(kernel)]
        parts += [f"stride={short(self.stride)}"] if self.stride != (1, 1) else []
        parts += [f"padding={short(self.padding)}"] if self.padding != (0, 0) else []
        parts += [f"dilation={short(self.dilation)}"] if self.dilation != (1, 1) else []
        parts += [f"groups={self.groups}"] if self.groups != 1 else []
        parts += ["bias=False"] if self.bias is None else []
        return ", ".join(parts)


def short(values: tuple[int, ...] | list[int]) -> str:
    """(3, 3) as 3, (3, 5) as (3, 5)."""
    return str(values[0]) if values[0] == values[1] else str(tuple(values))
