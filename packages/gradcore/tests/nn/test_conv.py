"""Conv2d against PyTorch over its options; cases 17, 22, 24."""

from typing import Any

import numpy as np
import pytest

from gradcore import Parameter, nn, ops
from gradcore.errors import ArgumentError, ShapeError

OPTIONS = [
    ((2, 3, 3), {}, (2, 2, 6, 7)),
    ((2, 4, (2, 3)), {"stride": 2, "padding": 1, "groups": 2}, (3, 2, 7, 5)),
    ((3, 2, 2), {"stride": (1, 2), "padding": (0, 2), "bias": False}, (1, 3, 5, 4)),
    ((4, 4, 3), {"dilation": 2, "padding": 2, "groups": 4}, (2, 4, 6, 6)),
    ((1, 2, 1), {"stride": 3}, (2, 1, 7, 7)),
    ((1, 1, 3), {"padding": 4}, (1, 1, 2, 2)),
    ((2, 2, (5, 1)), {"dilation": (1, 3), "groups": 2}, (2, 2, 5, 3)),
    ((3, 4, 3), {}, (0, 3, 8, 8)),
]


@pytest.mark.parametrize(("arguments", "options", "shape"), OPTIONS)
def test_like_torch(like_torch: Any, arguments: Any, options: Any, shape: Any) -> None:
    torch = pytest.importorskip("torch")
    like_torch(nn.Conv2d(*arguments, **options), torch.nn.Conv2d(*arguments, **options), *shape)


def test_swapped_kernel(dtype: Any) -> None:
    """Case 22: a parameter that is convolved through a transpose gets its own gradient."""
    x = nn.Parameter(np.arange(1, 19, dtype=dtype).reshape(1, 2, 3, 3))
    kernel = Parameter(np.arange(1, 17, dtype=dtype).reshape(2, 2, 2, 2))
    y = ops.conv2d(x, kernel.transpose(0, 1))
    assert y.numpy().ravel().tolist() == [548, 600, 704, 756, 788, 872, 1040, 1124]
    (y * y).sum().backward()
    # fmt: off
    assert x.grad.numpy().ravel().tolist() == [
        8976, 21568, 12864, 26128, 60848, 35264, 18784, 42544, 24032,
        30352, 66496, 36416, 75408, 163760, 88896, 46688, 100528, 54112,
    ]
    assert kernel.grad.numpy().ravel().tolist() == [
        16688, 21904, 32336, 37552, 24624, 32272, 47568, 55216,
        63632, 68848, 79280, 84496, 93456, 101104, 116400, 124048,
    ]
    # fmt: on


def test_a_whole_network_on_no_images(backend: Any) -> None:
    """Case 24: shapes, and gradients of exact zeros, for a batch of none."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(3, 1), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 5))
    y = net(np.zeros((0, 3, 8, 8), np.float32))
    assert y.shape == (0, 5)
    assert net[0](np.zeros((0, 3, 8, 8), np.float32)).shape == (0, 4, 6, 6)
    y.sum().backward()
    for name, parameter in net.named_parameters():
        assert not parameter.grad.numpy().any(), name
        assert parameter.grad.shape == parameter.shape
    net.zero_grad()
    net(np.zeros((0, 3, 8, 8), np.float32))
    assert net.backward(np.zeros((0, 5), np.float32)).shape == (0, 3, 8, 8)


def test_an_image_does_not_depend_on_its_batch(cast: Any, close: Any, dtype: Any) -> None:
    """Case 24: image 2 of a batch of five equals that image alone, forward and backward."""
    net = cast(nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)))
    x = np.random.default_rng(0).standard_normal((5, 2, 6, 6)).astype(dtype)
    many = net(x).numpy()
    grads = net.backward(np.ones_like(many)).numpy()
    one = net(x[2:3])
    close(one, many[2:3])
    close(net.backward(np.ones(one.shape, dtype)), grads[2:3])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stride": 0}, "stride must be at least 1, got 0"),
        ({"stride": -1}, "stride.*-1"),
        ({"kernel_size": 0}, "kernel_size.*got 0"),
        ({"dilation": 0}, "dilation.*got 0"),
        ({"padding": -1}, "padding.*-1"),
        ({"padding": (1, 2, 3)}, "padding.*pair"),
        ({"stride": 1.5}, "stride.*1.5"),
        ({"groups": 3}, "groups=3 must divide in_channels=4"),
        ({"groups": 0}, "groups.*got 0"),
        ({"in_channels": 0}, "in_channels"),
        ({"out_channels": "8"}, "out_channels.*'8'"),
    ],
)
def test_senseless_options(options: dict[str, Any], text: str) -> None:
    """Case 17: a clear error at construction, never a division by zero in a kernel."""
    with pytest.raises(ArgumentError, match=f"Conv2d: {text}"):
        nn.Conv2d(**{"in_channels": 4, "out_channels": 4, "kernel_size": 3, **options})


def test_senseless_inputs() -> None:
    """Case 17: text with the shapes; afterwards the layer still works."""
    layer = nn.Conv2d(4, 2, 3, groups=2)
    with pytest.raises(ShapeError, match=r"conv2d.*\(1, 3, 5, 5\).*\(2, 2, 3, 3\).*groups 2"):
        layer(np.zeros((1, 3, 5, 5), np.float32))
    with pytest.raises(ShapeError, match="kernel 3x3 is larger than the padded input 2x2"):
        layer(np.zeros((1, 4, 2, 2), np.float32))
    with pytest.raises(ShapeError, match=r"\(N, C, H, W\)"):
        layer(np.zeros((4, 5, 5), np.float32))
    layer.bias = Parameter(np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match=r"bias \(3,\), expected \(2,\)"):
        layer(np.zeros((1, 4, 3, 3), np.float32))
    layer.bias = None
    assert layer(np.zeros((1, 4, 3, 3), np.float32)).shape == (1, 2, 1, 1)
    assert nn.Conv2d(1, 1, 3, padding=1)(np.zeros((1, 1, 2, 2), np.float32)).shape == (1, 1, 2, 2)


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (lambda: nn.Conv2d(1, 16, 3, padding=1), "Conv2d(1, 16, 3, padding=1)  # 160 parameters"),
        (
            lambda: nn.Conv2d(4, 2, (3, 5), 2, (0, 1), 2, 2, False),
            "Conv2d(4, 2, (3, 5), stride=2, padding=(0, 1), dilation=2, groups=2, bias=False)  # 60 parameters",
        ),
    ],
)
def test_repr(layer: Any, text: str) -> None:
    assert repr(layer()) == text
