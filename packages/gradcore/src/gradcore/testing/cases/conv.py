"""conv2d and its two backwards: plain loops over output channel, input channel and kernel tap (PMPP chapter 16).

NCHW, no flip: y[n, o, p, q] = bias[o] + sum over c, i, j of weight[o, c, i, j] * x[n, c, p*stride - padding +
i*dilation, q*...]. The backwards read the same formula from the other side: a gradient goes back to what it came from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcore.backend.protocol import Conv2dOps, Pair, Shape
from gradcore.testing.cases.case import Case, Maker, Tolerance, of, permuted, stretched, strided, uniform, values

Setting = tuple[Pair, Pair, Pair, int]  # stride, padding, dilation, groups


def out_size(x_shape: Shape, weight_shape: Shape, setting: Setting) -> Pair:
    stride, padding, dilation, _ = setting
    h, w = (
        (x_shape[2 + a] + 2 * padding[a] - dilation[a] * (weight_shape[2 + a] - 1) - 1) // stride[a] + 1 for a in (0, 1)
    )
    return h, w


def padded(x: np.ndarray, padding: Pair) -> np.ndarray:
    n, c, h, w = x.shape
    out = np.zeros((n, c, h + 2 * padding[0], w + 2 * padding[1]))
    out[:, :, padding[0] : padding[0] + h, padding[1] : padding[1] + w] = x
    return out


def products(weight_shape: Shape, size: Pair, setting: Setting) -> Iterator[tuple[Any, int, Any]]:
    """(index into weight, output channel, where in the padded input) for each weight, seen from all outputs at once."""
    stride, _, dilation, groups = setting
    channels, per_group = weight_shape[0], weight_shape[1]
    for o in range(channels):
        group = o // (channels // groups)
        for c in range(per_group):
            for i in range(weight_shape[2]):
                rows = slice(i * dilation[0], i * dilation[0] + stride[0] * (size[0] - 1) + 1, stride[0])
                for j in range(weight_shape[3]):
                    columns = slice(j * dilation[1], j * dilation[1] + stride[1] * (size[1] - 1) + 1, stride[1])
                    yield (o, c, i, j), o, (slice(None), group * per_group + c, rows, columns)


def conv2d(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, *setting: Any) -> np.ndarray:
    size = out_size(x.shape, weight.shape, setting)
    wide, y = padded(x, setting[1]), np.zeros((x.shape[0], weight.shape[0], *size))
    for tap, o, seen in products(weight.shape, size, setting):
        y[:, o] += weight[tap] * wide[seen]
    if bias is not None:
        for o in range(weight.shape[0]):
            y[:, o] += bias[o]
    return y


def conv2d_backward_input(grad: np.ndarray, weight: np.ndarray, x_shape: Shape, *setting: Any) -> np.ndarray:
    (top, left), (n, c, h, w) = setting[1], x_shape
    wide = np.zeros((n, c, h + 2 * top, w + 2 * left))
    for tap, o, seen in products(weight.shape, grad.shape[2:], setting):
        wide[seen] += weight[tap] * grad[:, o]
    return wide[:, :, top : top + h, left : left + w]


def conv2d_backward_weight(grad: np.ndarray, x: np.ndarray, weight_shape: Shape, *setting: Any) -> np.ndarray:
    wide, grad_weight = padded(x, setting[1]), np.zeros(weight_shape)
    for tap, o, seen in products(weight_shape, grad.shape[2:], setting):
        grad_weight[tap] = np.sum(wide[seen] * grad[:, o])
    return grad_weight


# name: x shape, weight shape, stride, padding, dilation, groups
SETTINGS: dict[str, tuple[Shape, Shape, Pair, Pair, Pair, int]] = {
    "smallest": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "plain": ((2, 3, 7, 7), (4, 3, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "odd_sizes": ((3, 5, 9, 11), (7, 5, 3, 5), (1, 1), (1, 2), (1, 1), 1),
    "even_kernel": ((2, 3, 6, 8), (4, 3, 2, 4), (1, 1), (0, 0), (1, 1), 1),
    "same": ((2, 3, 8, 8), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "same_5x5": ((2, 2, 9, 9), (3, 2, 5, 5), (1, 1), (2, 2), (1, 1), 1),
    "one_by_one": ((2, 8, 5, 6), (3, 8, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "one_by_one_stride": ((2, 4, 7, 7), (3, 4, 1, 1), (2, 3), (0, 0), (1, 1), 1),
    "one_by_one_padding": ((1, 2, 3, 3), (2, 2, 1, 1), (1, 1), (1, 2), (1, 1), 1),
    "row_kernel": ((2, 2, 5, 9), (3, 2, 1, 5), (1, 1), (0, 2), (1, 1), 1),
    "column_kernel": ((2, 2, 9, 5), (3, 2, 5, 1), (1, 1), (2, 0), (1, 1), 1),
    "whole_input": ((2, 3, 5, 4), (4, 3, 5, 4), (1, 1), (0, 0), (1, 1), 1),
    "kernel_over_input": ((1, 2, 2, 2), (3, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "stride_2": ((2, 3, 8, 8), (4, 3, 3, 3), (2, 2), (0, 0), (1, 1), 1),
    "stride_2_odd": ((2, 3, 9, 7), (4, 3, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    "stride_uneven": ((2, 3, 10, 11), (2, 3, 3, 2), (3, 2), (1, 0), (1, 1), 1),
    "stride_over_kernel": ((1, 2, 11, 11), (3, 2, 2, 2), (4, 5), (0, 0), (1, 1), 1),
    "padding_over_kernel": ((1, 2, 3, 3), (2, 2, 3, 3), (1, 1), (4, 4), (1, 1), 1),
    "padding_over_kernel_stride": ((1, 2, 4, 3), (2, 2, 2, 3), (2, 3), (5, 4), (1, 1), 1),
    "padding_uneven": ((2, 3, 6, 6), (4, 3, 3, 3), (1, 1), (0, 3), (1, 1), 1),
    "dilation_2": ((2, 3, 9, 9), (4, 3, 3, 3), (1, 1), (0, 0), (2, 2), 1),
    "dilation_uneven": ((2, 2, 10, 12), (3, 2, 3, 2), (1, 1), (2, 1), (3, 2), 1),
    "dilation_stride": ((2, 3, 11, 11), (4, 3, 3, 3), (2, 2), (2, 2), (2, 2), 1),
    "groups_2": ((2, 4, 7, 7), (6, 2, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    "groups_3_uneven": ((2, 6, 7, 5), (3, 2, 2, 3), (1, 2), (1, 0), (1, 1), 3),
    "groups_stride": ((1, 2, 3, 3), (2, 1, 2, 2), (2, 2), (1, 1), (1, 1), 2),
    "groups_everything": ((2, 4, 13, 12), (8, 2, 3, 2), (2, 3), (2, 1), (2, 3), 2),
    "depthwise": ((2, 5, 8, 8), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5),
    "depthwise_multiplier": ((2, 3, 8, 8), (6, 1, 3, 3), (2, 2), (1, 1), (1, 1), 3),
    "one_image": ((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "no_image": ((0, 3, 8, 8), (4, 3, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "no_image_everything": ((0, 4, 9, 9), (4, 2, 3, 3), (2, 2), (1, 1), (2, 2), 2),
    "one_channel_row": ((4, 1, 1, 33), (2, 1, 1, 4), (1, 1), (0, 0), (1, 1), 1),
    "wide": ((1, 2, 3, 131), (3, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "many_channels": ((1, 67, 4, 4), (35, 67, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "large_plane": ((1, 1, 256, 256), (1, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "large_batch": ((70_000, 1, 2, 2), (1, 1, 2, 2), (1, 1), (0, 0), (1, 1), 1),
    "mnist_1": ((8, 1, 28, 28), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "mnist_2": ((8, 16, 14, 14), (32, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1),
}


def terms(x_shape: Shape, weight_shape: Shape, setting: Setting) -> tuple[Tolerance, Tolerance, Tolerance]:
    """For the forward and the two backwards: how many products an entry is the sum of."""
    o, per_group, kh, kw = weight_shape
    oh, ow = out_size(x_shape, weight_shape, setting)
    counts = per_group * kh * kw, o // setting[3] * kh * kw, x_shape[0] * oh * ow
    first, second, third = (Tolerance(count, size=min(1.0, 100.0 / max(1, count) ** 0.5)) for count in counts)
    return first, second, third


def conv_cases() -> Iterator[Case]:
    for name, (x_shape, w_shape, *rest) in SETTINGS.items():
        setting: Setting = tuple(rest)  # type: ignore[assignment]
        forward, to_input, to_weight = terms(x_shape, w_shape, setting)
        x, weight, bias = uniform(*x_shape), uniform(*w_shape), uniform(w_shape[0])
        grad = uniform(x_shape[0], w_shape[0], *out_size(x_shape, w_shape, setting))
        yield case("", name, of(x, weight, bias, *setting), conv2d, forward)
        if name in ("plain", "groups_everything", "no_image", "mnist_1"):
            yield case("", f"{name}_no_bias", of(x, weight, None, *setting), conv2d, forward)
        yield case("_backward_input", name, of(grad, weight, x_shape, *setting), conv2d_backward_input, to_input)
        yield case("_backward_weight", name, of(grad, x, w_shape, *setting), conv2d_backward_weight, to_weight)


def view_cases() -> Iterator[Case]:
    """The same operands in other layouts; `transposed` is a kernel whose channels were swapped."""
    x_shape, w_shape = (2, 3, 6, 5), (4, 3, 3, 2)
    setting: Setting = ((2, 1), (1, 0), (1, 1), 1)
    forward, to_input, to_weight = terms(x_shape, w_shape, setting)
    size = out_size(x_shape, w_shape, setting)
    layouts: list[tuple[str, Maker, Maker, Maker]] = [
        (
            "channels_last",
            permuted(uniform(*x_shape), (0, 2, 3, 1)),
            permuted(uniform(*w_shape), (0, 2, 3, 1)),
            permuted(uniform(2, 4, *size), (0, 2, 3, 1)),
        ),
        ("transposed", uniform(*x_shape), permuted(uniform(*w_shape), (1, 0, 2, 3)), uniform(2, 4, *size)),
        (
            "stretched",
            stretched(uniform(1, 3, 6, 1), *x_shape),
            stretched(uniform(4, 1, 1, 2), *w_shape),
            stretched(uniform(1, 4, 1, 1), 2, 4, *size),
        ),
        ("strided", strided(uniform(*x_shape)), strided(uniform(*w_shape)), strided(uniform(2, 4, *size))),
    ]
    for name, x, weight, grad in layouts:
        yield case("", name, of(x, weight, strided(uniform(4)), *setting), conv2d, forward)
        yield case("_backward_input", name, of(grad, weight, x_shape, *setting), conv2d_backward_input, to_input)
        yield case("_backward_weight", name, of(grad, x, w_shape, *setting), conv2d_backward_weight, to_weight)


def value_cases() -> Iterator[Case]:
    plain: Setting = ((1, 1), (0, 0), (1, 1), 1)
    precise = Tolerance(4096, size=0.01)  # in TF32 the sum is 4096
    arguments = of(values(np.full((1, 4096, 1, 1), 1 + 2.0**-12)), values(np.ones((1, 4096, 1, 1))), None, *plain)
    yield case("", "not_tf32", arguments, conv2d, precise)
    # a NaN or an infinity reaches the outputs that see it, and no others: padding adds 0, not 0 * NaN
    x = np.arange(25.0).reshape(1, 1, 5, 5)
    x[0, 0, 0, 0], x[0, 0, 4, 4] = np.nan, np.inf
    special = of(values(x), uniform(2, 1, 3, 3), uniform(2), (1, 1), (1, 1), (1, 1), 1)
    yield case("", "special", special, conv2d, Tolerance(9, size=25.0))


def case(suffix: str, name: str, arguments: Any, reference: Any, tolerance: Tolerance) -> Case:
    return Case(f"conv2d{suffix}", name, arguments, reference, tolerance, Conv2dOps)


CASES = [*conv_cases(), *view_cases(), *value_cases()]
