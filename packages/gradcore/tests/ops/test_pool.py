"""Pooling: NaN, ties, padding, overlap, ceil_mode, divisors, layouts, and arguments that make no sense."""

import numpy as np
import pytest

from gradcore import Tensor, ops, tensor
from gradcore.errors import ArgumentError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

NAN, INF = np.nan, np.inf


def run(pool, values: object, *arguments, dtype: str = "float32", **options) -> tuple[list, list]:
    """(y, dx) of one image for an upstream of ones."""
    x = Tensor(np.array(values, dtype)[None, None], requires_grad=True)
    y = pool(x, *arguments, **options)
    y.sum().backward()
    return y.numpy()[0, 0].tolist(), x.grad.numpy()[0, 0].tolist()


def count(rows: int, columns: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + rows * columns).reshape(rows, columns)


@pytest.mark.parametrize(
    ("window", "at"),
    [([1, 2, 3, NAN], 3), ([NAN, 2, 3, 4], 0), ([NAN] * 4, 3), ([NAN, 1, NAN, 2], 2), ([INF, NAN, INF, INF], 1)],
)
def test_nan_in_a_window(window: list, at: int, dtype: str) -> None:
    """Case 10: the output is NaN, the gradient goes to the last NaN; many channels agree with one."""
    y, dx = run(ops.max_pool2d, np.reshape(window, (2, 2)), 2, dtype=dtype)
    assert np.isnan(y).tolist() == [[True]]
    assert np.flatnonzero(dx).tolist() == [at]
    x = Tensor(np.tile(np.array(window, dtype).reshape(2, 2), (3, 40, 1, 1)), requires_grad=True)
    many = ops.max_pool2d(x, 2)
    many.sum().backward()
    assert np.isnan(many.numpy()).all()
    assert (x.grad.numpy() == dx).all()


def test_nan_in_the_centre(dtype: str) -> None:
    """Case 10."""
    values = count(3, 3, 1).astype(float)
    values[1, 1] = NAN
    y, dx = run(ops.max_pool2d, values, 2, 1, dtype=dtype)
    assert np.isnan(y).all()
    assert dx == [[0, 0, 0], [0, 4, 0], [0, 0, 0]]


def test_ties(dtype: str) -> None:
    """Case 11: the whole gradient to the first maximum."""
    assert run(ops.max_pool2d, [[1, 2], [2, 2]], 2, dtype=dtype)[1] == [[0, 1], [0, 0]]
    assert run(ops.max_pool2d, np.zeros((2, 2)), 2, dtype=dtype)[1] == [[1, 0], [0, 0]]
    assert run(ops.max_pool2d, np.zeros((3, 3)), 2, 1, dtype=dtype)[1] == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert run(ops.max_pool2d, np.full((2, 2), -INF), 2, dtype=dtype) == ([[-INF]], [[1, 0], [0, 0]])


def test_padding_never_wins(dtype: str) -> None:
    """Case 11."""
    assert run(ops.max_pool2d, np.full((2, 2), -1), 2, 2, 1, dtype=dtype) == ([[-1, -1]] * 2, [[1, 1]] * 2)
    assert run(ops.max_pool2d, -count(3, 3, 1), 3, 2, 1, dtype=dtype)[0] == [[-1, -2], [-4, -5]]


def test_overlapping_windows_add_up(dtype: str) -> None:
    """Case 13."""
    values = np.ones((5, 5))
    values[2, 2] = 9
    y, dx = run(ops.max_pool2d, values, 3, 1, dtype=dtype)
    assert (y, dx[2][2], np.sum(dx)) == ([[9] * 3] * 3, 9, 9)
    assert run(ops.max_pool2d, [[5, 3, 1, 2, 5]], (1, 2), 1, dtype=dtype) == ([[5, 3, 2, 5]], [[1, 1, 0, 1, 1]])
    y, dx = run(ops.max_pool2d, count(3, 3, 1), 2, 2, 1, dtype=dtype)
    assert (y, dx) == ([[1, 3], [7, 9]], [[1, 0, 1], [0, 0, 0], [1, 0, 1]])


def test_kernels_smaller_than_the_stride(dtype: str) -> None:
    """Case 19."""
    for pool in (ops.max_pool2d, ops.avg_pool2d):
        y, dx = run(pool, count(5, 5), 1, 2, dtype=dtype)
        assert y == [[0, 2, 4], [10, 12, 14], [20, 22, 24]]
        assert dx == [[1, 0, 1, 0, 1], [0] * 5, [1, 0, 1, 0, 1], [0] * 5, [1, 0, 1, 0, 1]]
    assert run(ops.max_pool2d, count(5, 5), 2, 3, dtype=dtype)[0] == [[6, 9], [21, 24]]


def test_what_the_average_divides_by(dtype: str, close) -> None:
    """Case 15."""
    y, dx = run(ops.avg_pool2d, [[1, 2, 3, 4, 5]], (1, 2), 2, ceil_mode=True, dtype=dtype)
    assert (y, dx) == ([[1.5, 3.5, 5.0]], [[0.5, 0.5, 0.5, 0.5, 1]])
    y, _ = run(ops.avg_pool2d, count(7, 7), 2, 3, ceil_mode=True, dtype=dtype)
    assert y == [[4, 7, 9.5], [25, 28, 30.5], [42.5, 45.5, 48]]
    y, dx = run(ops.avg_pool2d, [[1, 2], [3, 4]], 3, 1, 1, dtype=dtype)
    close(np.array([y, dx], dtype), [np.full((2, 2), 10 / 9), np.full((2, 2), 4 / 9)])
    y, dx = run(ops.avg_pool2d, [[1, 2], [3, 4]], 3, 1, 1, count_include_pad=False, dtype=dtype)
    assert (y, dx) == ([[2.5] * 2] * 2, [[1, 1]] * 2)


# shape, kernel, stride, padding
SETTINGS = [
    ((2, 3, 6, 7), 2, 2, 0),
    ((1, 2, 7, 8), 3, 2, 1),
    ((2, 1, 8, 10), 3, 4, 0),
    ((1, 1, 5, 6), 1, 2, 0),
    ((1, 3, 9, 9), (3, 2), (1, 3), (1, 0)),
    ((2, 2, 4, 4), 4, 1, 2),
    ((1, 1, 1, 1), 1, 1, 0),
    ((3, 2, 5, 5), 5, 5, 0),
    ((0, 2, 6, 6), 2, 2, 0),
    ((2, 2, 25, 25), 2, 2, 0),
]


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_beside_torch(
    setting: tuple, ceil_mode: bool, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    """Cases 11, 13, 14, 15: small integers tie often, no output is -inf."""
    functional = pytest.importorskip("torch").nn.functional
    shape, *window = setting
    values = rng.integers(-3, 3, shape).astype(dtype)
    for dilation in (1, 2) if shape[-1] > 4 and setting[1] != 5 else (1,):
        against_torch(
            lambda x, d=dilation: ops.max_pool2d(x, *window, d, ceil_mode),
            lambda x, d=dilation: functional.max_pool2d(x, *window, d, ceil_mode),
            values,
            layout=layout,
        )
    for include in (True, False):
        against_torch(
            lambda x, i=include: ops.avg_pool2d(x, *window, ceil_mode, i),
            lambda x, i=include: functional.avg_pool2d(x, *window, ceil_mode, i),
            values,
            layout=layout,
        )


def test_any_array(dtype: str) -> None:
    """Case 41."""
    image = count(5, 5).astype(dtype)[None, None]
    for values in (
        image,
        np.asfortranarray(image),
        image.transpose(2, 3, 0, 1).transpose(2, 3, 0, 1),
        image[..., ::-1, ::-1][..., ::-1, ::-1],
    ):
        assert ops.max_pool2d(Tensor(values), 2).flatten().tolist() == [6, 8, 16, 18]
    x = Tensor(image)
    assert ops.max_pool2d(x.transpose(2, 3).transpose(2, 3), 2).flatten().tolist() == [6, 8, 16, 18]
    assert ops.max_pool2d(x[..., ::-1, :], 2).flatten().tolist() == [21, 23, 11, 13]
    assert ops.max_pool2d(Tensor(image[..., ::-1, :]), 2).flatten().tolist() == [21, 23, 11, 13]
    row = np.arange(4, dtype=dtype)
    for stretched in (Tensor(np.broadcast_to(row, (1, 1, 4, 4))), Tensor(row).broadcast_to((1, 1, 4, 4))):
        assert ops.avg_pool2d(stretched, 2).flatten().tolist() == [0.5, 2.5, 0.5, 2.5]
    image.flags.writeable = False
    assert ops.max_pool2d(Tensor(image), 2).flatten().tolist() == [6, 8, 16, 18]
    assert image.ravel().tolist() == list(range(25))
    for big_endian in (">f4", ">f8"):
        y = ops.avg_pool2d(Tensor(count(4, 4).astype(big_endian)[None, None]), 2)
        assert y.flatten().tolist() == [2.5, 4.5, 10.5, 12.5]


def test_types() -> None:
    """Case 41: no type is cut, a float16 sum does not overflow, integer and bool images become float32."""
    assert ops.avg_pool2d(Tensor(np.full((1, 1, 2, 2), 1e300)), 2).item() == pytest.approx(1e300)
    assert ops.avg_pool2d(Tensor(np.full((1, 1, 4, 4), 60000, np.float16)), 4).item() == 60000
    for kind in ("uint8", "int16", "int64", "bool"):
        image = Tensor(np.ones((1, 1, 2, 2), kind))
        for pool in (ops.max_pool2d, ops.avg_pool2d):
            assert (pool(image, 2).dtype, pool(image, 2).item()) == (np.float32, 1)


def test_a_large_window(close) -> None:
    """Case 4's kind: 65,536 terms, one by one, would be 6e-4 off."""
    y = ops.avg_pool2d(tensor(np.full((1, 1, 256, 256), 0.1, np.float32)), 256)
    close(y.numpy().ravel(), [np.float32(0.1)])


def test_dilation_with_padding() -> None:
    """Case 17: kernel 3, dilation 2, padding 2 reaches 5; the values are right, and never -inf."""
    y = ops.max_pool2d(tensor(count(4, 4, -100).astype(np.float32)[None, None]), 3, 1, 2, 2)
    padded = np.full((8, 8), -INF)
    padded[2:6, 2:6] = count(4, 4, -100)
    expected = [[padded[i : i + 5 : 2, j : j + 5 : 2].max() for j in range(4)] for i in range(4)]
    assert y.numpy()[0, 0].tolist() == expected
    assert np.isfinite(expected).all()


def test_windows_that_miss_the_input() -> None:
    """Case 17's kind: a dilated window may step over a small input; its maximum would be -inf."""
    with pytest.raises(ShapeError, match=r"max_pool2d: kernel .* misses the input of 1x1"):
        ops.max_pool2d(tensor(np.zeros((1, 1, 1, 1), np.float32)), 2, 1, 1, 2)


def test_padding_of_half_the_kernel_works() -> None:
    """Case 17."""
    assert run(ops.max_pool2d, count(5, 5), 4, 4, 2)[0] == [[6, 9], [21, 24]]


@pytest.mark.parametrize(
    ("shape", "arguments", "error", "text"),
    [
        ((1, 1, 5, 5), {"kernel_size": 2, "stride": 0}, ArgumentError, "stride must be at least 1, got 0"),
        ((1, 1, 5, 5), {"kernel_size": 2, "stride": -1}, ArgumentError, "stride must be at least 1, got -1"),
        ((1, 1, 5, 5), {"kernel_size": 0}, ArgumentError, "kernel_size must be at least 1, got 0"),
        ((1, 1, 5, 5), {"kernel_size": (2, -3)}, ArgumentError, r"kernel_size must be at least 1, got \(2, -3\)"),
        (
            (1, 1, 5, 5),
            {"kernel_size": 2.5},
            ArgumentError,
            "kernel_size must be an integer or a pair of integers, got 2.5",
        ),
        ((1, 1, 5, 5), {"kernel_size": 2, "padding": -1}, ArgumentError, "padding must be at least 0, got -1"),
        (
            (1, 1, 5, 5),
            {"kernel_size": 4, "padding": 3},
            ArgumentError,
            "padding 3 is more than half of the kernel's reach 4",
        ),
        ((1, 1, 1, 1), {"kernel_size": 2}, ShapeError, "kernel 2x2 is larger than the padded input 1x1"),
        ((1, 1, 3, 6), {"kernel_size": 6}, ShapeError, "kernel 6x6 is larger than the padded input 3x6"),
        ((1, 5, 5), {"kernel_size": 2}, ShapeError, r"input must be \(N, C, H, W\), got \(1, 5, 5\)"),
    ],
)
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_arguments_that_make_no_sense(name: str, shape: tuple, arguments: dict, error: type, text: str) -> None:
    """Case 17."""
    pool = getattr(ops, name)
    with pytest.raises(error, match=f"^{name}: {text}"):
        pool(tensor(np.zeros(shape, np.float32)), **arguments)
    assert pool(tensor(np.ones((1, 1, 2, 2), np.float32)), 2).item() == 1.0


def test_no_dilation_of_nothing() -> None:
    """Case 17."""
    with pytest.raises(ArgumentError, match="max_pool2d: dilation must be at least 1, got 0"):
        ops.max_pool2d(tensor(np.zeros((1, 1, 5, 5), np.float32)), 2, dilation=0)


def test_a_changed_input_is_noticed() -> None:
    """Case 32: max pooling saves positions, not values."""
    x = tensor(count(4, 4).astype(np.float32)[None, None], requires_grad=True)
    y = ops.max_pool2d(x, 2)
    x.copy_(np.zeros((1, 1, 4, 4), np.float32))
    with pytest.raises(GraphError, match=r"MaxPool2d: .*changed in place"):
        y.sum().backward()


@pytest.mark.parametrize("shape", [(70_000, 1, 2, 2), (1, 70_000, 2, 2)], ids=str)
def test_very_many_planes(shape: tuple, rng: np.random.Generator) -> None:
    """Case 57 on the CPU."""
    values = rng.normal(size=shape).astype(np.float32)
    y = ops.max_pool2d(Tensor(values), 2)
    np.testing.assert_array_equal(y.numpy().ravel(), values.max((2, 3)).ravel())


def test_repeatable(rng: np.random.Generator) -> None:
    """Case 74: overlapping windows, ten times the same bits."""
    values = rng.normal(size=(30, 30))
    assert len({str(run(ops.max_pool2d, values, 3, 1)) for _ in range(10)}) == 1
