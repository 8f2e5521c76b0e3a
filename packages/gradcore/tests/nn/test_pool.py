"""MaxPool2d and AvgPool2d against PyTorch over their options; case 17."""

from typing import Any

import numpy as np
import pytest

from gradcore import nn
from gradcore.errors import ArgumentError, ShapeError

BOTH = [nn.MaxPool2d, nn.AvgPool2d]
WINDOWS = [
    ((2,), {}),
    ((3, 1), {}),
    ((3, 2, 1), {}),
    (((2, 3), (3, 1), (1, 0)), {}),
    ((2,), {"ceil_mode": True}),
    ((3, 2, 1), {"ceil_mode": True}),
    ((1, 2), {"ceil_mode": True}),
]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("arguments", "options"), WINDOWS)
@pytest.mark.parametrize("shape", [(2, 3, 7, 6), (1, 1, 3, 3), (0, 2, 5, 5)])
def test_like_torch(like_torch: Any, kind: Any, arguments: Any, options: Any, shape: Any) -> None:
    torch = pytest.importorskip("torch")
    like_torch(kind(*arguments, **options), getattr(torch.nn, kind.__name__)(*arguments, **options), *shape)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_average_without_padding_counted(like_torch: Any, ceil_mode: bool) -> None:
    torch = pytest.importorskip("torch")
    options = {"padding": 1, "stride": 2, "ceil_mode": ceil_mode, "count_include_pad": False}
    like_torch(nn.AvgPool2d(3, **options), torch.nn.AvgPool2d(3, **options), 2, 2, 7, 8)


def test_max_with_dilation(like_torch: Any) -> None:
    torch = pytest.importorskip("torch")
    like_torch(nn.MaxPool2d(2, 1, 1, 2), torch.nn.MaxPool2d(2, 1, 1, 2), 2, 2, 6, 7)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"stride": -2}, "stride"),
        ({"kernel_size": 0}, "kernel_size"),
        ({"padding": -1}, "padding must be at least 0, got -1"),
        ({"kernel_size": 4, "padding": 3}, "padding 3 is more than half"),
        ({"kernel_size": "2"}, "kernel_size must be an integer or a pair"),
    ],
)
def test_senseless_options(kind: Any, options: dict[str, Any], text: str) -> None:
    """Case 17: refused when the layer is made."""
    with pytest.raises(ArgumentError, match=f"{kind.__name__}: {text}"):
        kind(**{"kernel_size": 2, **options})


def test_dilation_zero() -> None:
    with pytest.raises(ArgumentError, match="MaxPool2d: dilation must be at least 1, got 0"):
        nn.MaxPool2d(2, dilation=0)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("kernel", "size"), [(2, (1, 1)), (6, (3, 6)), ((3, 1), (2, 9))])
def test_window_larger_than_the_input(kind: Any, kernel: Any, size: Any) -> None:
    """Case 17: an error with the sizes, and the next correct call works."""
    layer = kind(kernel)
    with pytest.raises(ShapeError, match=f"pool2d: kernel .*larger than the padded input {size[0]}x{size[1]}"):
        layer(np.zeros((1, 1, *size), np.float32))
    assert layer(np.zeros((1, 1, 6, 6), np.float32)).shape[:2] == (1, 1)


def test_the_largest_padding_allowed(dtype: Any) -> None:
    """Case 17: kernel 4, padding 2, stride 4 over 0..24 works."""
    x = np.arange(25, dtype=dtype).reshape(1, 1, 5, 5)
    assert nn.MaxPool2d(4, 4, 2)(x).tolist() == [[[[6, 9], [21, 24]]]]


def test_reach_and_padding(dtype: Any) -> None:
    """Case 17's last point: kernel 3, dilation 2, padding 2 reaches over 5 entries, and no output is -inf."""
    x = -np.arange(1, 26, dtype=dtype).reshape(1, 1, 5, 5)
    y = nn.MaxPool2d(3, 1, 2, 2)(x).numpy()
    wide = np.pad(x[0, 0], 2, constant_values=-np.inf)
    expected = [[wide[i : i + 5 : 2, j : j + 5 : 2].max() for j in range(5)] for i in range(5)]
    assert y.tolist() == [[expected]]


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.MaxPool2d(2), "MaxPool2d(2)"),
        (nn.MaxPool2d((2, 3), 1, 1, 2, True), "MaxPool2d((2, 3), stride=1, padding=1, ceil_mode=True, dilation=2)"),
        (nn.AvgPool2d(3, 3, 1, count_include_pad=False), "AvgPool2d(3, padding=1, count_include_pad=False)"),
    ],
)
def test_repr(layer: Any, text: str) -> None:
    assert repr(layer) == text
