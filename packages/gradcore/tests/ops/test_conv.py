"""Convolution: plain facts, groups, padding, layouts, empty batches beside PyTorch; arguments that make no sense."""

import numpy as np
import pytest

from gradcore import Tensor, ops, tensor
from gradcore.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


def run(x: np.ndarray, w: np.ndarray, **options) -> tuple[list, list, list]:
    """(y, dx, dw) for an upstream of ones."""
    x, w = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
    y = ops.conv2d(x, w, **options)
    y.sum().backward()
    return y.tolist(), x.grad.tolist(), w.grad.tolist()


def count(shape: tuple, dtype: str, start: int = 0) -> np.ndarray:
    return np.arange(start, start + np.prod(shape), dtype=dtype).reshape(shape)


def test_no_flip(dtype: str) -> None:
    """Case 19."""
    y, dx, dw = run(count((1, 1, 2, 2), dtype, 1), np.array([[[[0, 1], [0, 0]]]], dtype))
    assert (y, dx, dw) == ([[[[2]]]], [[[[0, 1], [0, 0]]]], [[[[1, 2], [3, 4]]]])


def test_kernel_as_large_as_the_input(dtype: str) -> None:
    """Case 19."""
    y, dx, dw = run(count((1, 1, 3, 3), dtype), np.ones((1, 1, 3, 3), dtype))
    assert (y, dx, dw) == ([[[[36]]]], np.ones((1, 1, 3, 3)).tolist(), count((1, 1, 3, 3), dtype).tolist())


def test_one_by_one(dtype: str) -> None:
    """Case 19."""
    y, _, dw = run(count((1, 2, 2, 2), dtype), np.array([10, 1], dtype).reshape(1, 2, 1, 1))
    assert (y, dw) == ([[[[4, 15], [26, 37]]]], [[[[6]], [[22]]]])


def test_groups_with_stride(dtype: str) -> None:
    """Case 20."""
    y, dx, dw = run(count((1, 2, 3, 3), dtype), count((2, 1, 2, 2), dtype, 1), groups=2, stride=2, padding=1)
    assert y == [[[[0, 11], [30, 67]], [[72, 158], [192, 397]]]]
    assert dx == [[[[4, 3, 4], [2, 1, 2], [4, 3, 4]], [[8, 7, 8], [6, 5, 6], [8, 7, 8]]]]
    assert dw == [[[[4, 8], [8, 16]]], [[[13, 26], [26, 52]]]]


def test_padding_larger_than_the_kernel(dtype: str) -> None:
    """Case 20."""
    y, dx, dw = run(np.ones((1, 1, 2, 2), dtype), np.ones((1, 1, 3, 3), dtype), padding=4)
    assert (np.shape(y), np.sum(y)) == ((1, 1, 8, 8), 36)
    assert (dx, dw) == (np.full((1, 1, 2, 2), 9).tolist(), np.full((1, 1, 3, 3), 4).tolist())


def test_a_transposed_kernel(dtype: str) -> None:
    """Case 22."""
    x, k = (
        Tensor(count((1, 2, 3, 3), dtype, 1), requires_grad=True),
        Tensor(count((2, 2, 2, 2), dtype, 1), requires_grad=True),
    )
    y = ops.conv2d(x, k.transpose(0, 1))
    (y * y).sum().backward()
    assert y.flatten().tolist() == [548, 600, 704, 756, 788, 872, 1040, 1124]
    assert x.grad.flatten().tolist() == [
        8976, 21568, 12864, 26128, 60848, 35264, 18784, 42544, 24032,
        30352, 66496, 36416, 75408, 163760, 88896, 46688, 100528, 54112,
    ]  # fmt: skip
    assert k.grad.flatten().tolist() == [
        16688, 21904, 32336, 37552, 24624, 32272, 47568, 55216,
        63632, 68848, 79280, 84496, 93456, 101104, 116400, 124048,
    ]  # fmt: skip


# x, weight, stride, padding, dilation, groups
SETTINGS = [
    ((2, 3, 8, 8), (4, 3, 3, 3), 1, 0, 1, 1),
    ((2, 3, 8, 7), (4, 3, 3, 2), 2, 1, 1, 1),
    ((1, 2, 9, 9), (2, 2, 2, 2), 3, 0, 1, 1),  # stride larger than the kernel
    ((2, 4, 7, 6), (6, 2, 3, 3), (2, 1), (1, 2), 1, 2),
    ((2, 4, 9, 9), (4, 1, 3, 3), 2, 2, 2, 4),
    ((1, 1, 5, 5), (1, 1, 5, 5), 1, 0, 1, 1),
    ((3, 2, 6, 6), (2, 2, 1, 1), 2, 0, 1, 1),
    ((1, 2, 7, 7), (3, 2, 2, 3), (3, 2), (0, 1), (2, 3), 1),
    ((1, 1, 1, 1), (1, 1, 3, 3), 1, 1, 1, 1),
    ((0, 3, 8, 8), (4, 3, 3, 3), 1, 0, 1, 1),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_beside_torch(setting: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    """Cases 19, 20 and 41: as contiguous arrays, transposed and backwards."""
    functional = pytest.importorskip("torch").nn.functional
    x_shape, w_shape, *options = setting
    x, w, b = (rng.normal(size=s).astype(dtype) for s in (x_shape, w_shape, w_shape[:1]))
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {}
    against_torch(
        lambda *o: ops.conv2d(*o, *options), lambda *o: functional.conv2d(*o, *options), x, w, b, layout=layout, **close
    )
    against_torch(
        lambda *o: ops.conv2d(*o, None, *options),
        lambda *o: functional.conv2d(*o, None, *options),
        x,
        w,
        layout=layout,
        **close,
    )


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True)], ids=str)
def test_only_what_is_wanted_is_computed(wanted: tuple, backend, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for name in ("conv2d_backward_input", "conv2d_backward_weight"):
        real = getattr(backend, name)
        monkeypatch.setattr(backend, name, lambda *a, _n=name, _r=real: called.append(_n) or _r(*a))
    shapes = ((1, 2, 4, 4), (3, 2, 3, 3), (3,))
    operands = [tensor(np.ones(s, np.float32), requires_grad=w) for s, w in zip(shapes, wanted, strict=True)]
    ops.conv2d(*operands).sum().backward()
    assert [x.grad is not None for x in operands] == list(wanted)
    assert called == [["conv2d_backward_input"], ["conv2d_backward_weight"], []][wanted.index(True)]


def test_empty_batch_through_a_network(backend) -> None:
    """Case 24: exact zeros for the weights, and the shapes of a batch of none."""
    x = tensor(np.ones((0, 3, 8, 8), np.float32), requires_grad=True)
    w, b = (
        tensor(np.ones((4, 3, 3, 3), np.float32), requires_grad=True),
        tensor(np.ones(4, np.float32), requires_grad=True),
    )
    v = tensor(np.ones((2, 36), np.float32), requires_grad=True)
    y = ops.conv2d(x, w, b)
    pooled, averaged = ops.max_pool2d(y, 2), ops.avg_pool2d(y, 2)
    assert (y.shape, pooled.shape, averaged.shape) == ((0, 4, 6, 6), (0, 4, 3, 3), (0, 4, 3, 3))
    out = ops.linear((pooled + averaged).flatten(1), v)
    assert out.shape == (0, 2)
    out.sum().backward()
    assert x.grad.shape == (0, 3, 8, 8)
    for parameter in (w, b, v):
        assert parameter.grad.shape == parameter.shape
        assert not parameter.grad.numpy().any()


def test_a_row_alone_equals_the_row_in_a_batch(dtype: str, rng: np.random.Generator, close) -> None:
    """Case 24."""
    x, w = (Tensor(rng.normal(size=s).astype(dtype)) for s in ((5, 3, 8, 8), (4, 3, 3, 3)))
    close(ops.conv2d(x, w)[2:3], ops.conv2d(x[2:3], w))
    close(ops.avg_pool2d(x, 3)[2:3], ops.avg_pool2d(x[2:3], 3))


X, W = (1, 4, 6, 6), (6, 4, 3, 3)


@pytest.mark.parametrize(
    ("x", "w", "options", "error", "text"),
    [
        (X, W, {"stride": 0}, ArgumentError, "stride must be at least 1, got 0"),
        (X, W, {"stride": (1, -2)}, ArgumentError, r"stride must be at least 1, got \(1, -2\)"),
        (X, W, {"dilation": 0}, ArgumentError, "dilation must be at least 1, got 0"),
        (X, W, {"padding": -1}, ArgumentError, "padding must be at least 0, got -1"),
        (X, W, {"stride": 1.5}, ArgumentError, "stride must be an integer or a pair of integers, got 1.5"),
        (X, W, {"groups": 0}, ArgumentError, "groups"),
        (X, W, {"groups": 3}, ShapeError, r"input \(1, 4, 6, 6\) and weight \(6, 4, 3, 3\) with groups 3"),
        (X, (6, 2, 3, 3), {"groups": 4}, ShapeError, "groups 4"),
        (X, (5, 2, 3, 3), {"groups": 2}, ShapeError, r"\(5, 2, 3, 3\) with groups 2"),
        (
            X,
            (6, 3, 3, 3),
            {},
            ShapeError,
            r"input \(1, 4, 6, 6\) and weight \(6, 3, 3, 3\) with groups 1, expected 3 input",
        ),
        (X, (6, 4, 0, 3), {}, ShapeError, r"weight must be .*got \(6, 4, 0, 3\)"),
        (X, (6, 4, 3), {}, ShapeError, r"got \(6, 4, 3\)"),
        ((4, 6, 6), W, {}, ShapeError, r"input must be \(N, C, H, W\), got \(4, 6, 6\)"),
        ((1, 4, 2, 2), W, {}, ShapeError, "kernel 3x3 is larger than the padded input 2x2"),
        ((1, 4, 4, 4), W, {"dilation": 2}, ShapeError, "kernel 5x5 is larger than the padded input 4x4"),
        ((1, 4, 0, 5), W, {}, ShapeError, "larger than the padded input 0x5"),
    ],
)
def test_arguments_that_make_no_sense(x: tuple, w: tuple, options: dict, error: type, text: str) -> None:
    """Case 17; the next correct call works: 3x3 on 2x2 with padding 1 gives 2x2."""
    with pytest.raises(error, match=f"^conv2d: .*{text}"):
        ops.conv2d(tensor(np.ones(x, np.float32)), tensor(np.ones(w, np.float32)), **options)
    assert ops.conv2d(tensor(np.ones((1, 4, 2, 2), np.float32)), tensor(np.ones(W, np.float32)), padding=1).shape == (
        1,
        6,
        2,
        2,
    )


@pytest.mark.parametrize("shape", [(5,), (1, 6), ()], ids=str)
def test_bias_of_wrong_length(shape: tuple) -> None:
    """Case 17."""
    x, w, b = (tensor(np.ones(s, np.float32)) for s in (X, W, shape))
    with pytest.raises(ShapeError, match=r"conv2d: got bias .*, expected \(6,\)"):
        ops.conv2d(x, w, b)


def test_types(dtype: str) -> None:
    """Case 41: float64 is computed in float64, integer images become floats, mixing is an error."""
    x, w = np.full((1, 1, 2, 2), 1e300), np.ones((1, 1, 2, 2))
    assert ops.conv2d(Tensor(x), Tensor(w / 4)).item() == pytest.approx(1e300)
    image = np.array([[[[250, 250], [250, 250]]]], np.uint8)
    for kind in ("uint8", "int32", "int64"):
        y = ops.conv2d(Tensor(image.astype(kind)), Tensor(w.astype(dtype)))
        assert (y.dtype, y.item()) == (dtype, 1000)
    assert ops.conv2d(Tensor(image > 0), Tensor(w.astype(dtype))).item() == 4
    with pytest.raises(DTypeError, match="Conv2d: operands of float64 and float32"):
        ops.conv2d(Tensor(x), tensor(w.astype(np.float32)))
    with pytest.raises(DTypeError, match="Conv2d: operands are Tensors, got ndarray"):
        ops.conv2d(x, Tensor(w))


@pytest.mark.filterwarnings("error")
def test_infinities_pass_without_a_warning() -> None:
    """As in the other operations: NaN where inf meets 0 or minus inf, and only there."""
    x = np.ones((1, 1, 3, 3), np.float32)
    x[..., 0, 0] = np.inf
    y = ops.conv2d(Tensor(x), tensor(np.array([[[[0.0, 1.0], [1.0, 1.0]]]], np.float32)))
    assert np.isnan(y.numpy()).tolist() == [[[[True, False], [False, False]]]]


def test_repeatable(rng: np.random.Generator) -> None:
    """Case 74: ten times the same data, ten times the same bits."""
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((4, 3, 12, 12), (5, 3, 3, 3)))
    assert len({str(run(x, w, stride=2, padding=1)) for _ in range(10)}) == 1
