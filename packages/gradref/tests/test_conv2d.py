"""The convolution kernels, fast and reference, against the float64 oracle; values worked out by hand; PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import kernels, oracle
from .oracle import Conv, assert_same, data
from .shapes import CONVS, INF, NAN, SPOILT, convs

both = pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])


def check(s: Conv, reference: bool, spoil: tuple[float, ...] = (), which: int = 0) -> None:
    """All three kernels. `which` array gets the values of `spoil`: x, weight or grad."""
    x, weight, grad = (
        data(shape, seed, spoil if seed == which else ())
        for seed, shape in enumerate((s.x_shape, s.weight_shape, s.y_shape))
    )
    bias = data((s.weight_shape[0],), 3)
    taps = s.c * s.kernel[0] * s.kernel[1]
    for b in (bias, None):
        assert_same(kernels.conv2d(s, x, weight, b, reference), oracle.conv2d(s, x, weight, b), taps**0.5)
    assert_same(
        kernels.conv2d_backward_input(s, grad, weight, reference),
        oracle.conv2d_backward_input(s, grad, weight),
        (taps * s.o / s.c) ** 0.5,
    )
    positions = s.n * s.y_shape[2] * s.y_shape[3]
    assert_same(
        kernels.conv2d_backward_weight(s, grad, x, reference),
        oracle.conv2d_backward_weight(s, grad, x),
        (positions + 1) ** 0.5,
    )


@both
@pytest.mark.parametrize("name", CONVS)
def test_named_shapes(name: str, reference: bool) -> None:
    check(CONVS[name], reference)


@both
@pytest.mark.parametrize("which", [0, 1, 2], ids=["x", "weight", "grad"])
@pytest.mark.parametrize("name", ["mnist 1", "small planes share a line", "lanes are inputs", "lanes are groups"])
def test_infinities_and_nan_stay_where_the_formula_has_them(name: str, which: int, reference: bool) -> None:
    check(CONVS[name], reference, (INF, -INF, NAN), which)


@settings(max_examples=150, deadline=None)
@given(s=convs(), spoil=st.sampled_from(SPOILT), which=st.integers(0, 2))
def test_any_shape(s: Conv, spoil: tuple[float, ...], which: int) -> None:
    check(s, False, spoil, which)


@settings(max_examples=40, deadline=None)
@given(s=convs(), spoil=st.sampled_from(SPOILT), which=st.integers(0, 2))
def test_any_shape_reference(s: Conv, spoil: tuple[float, ...], which: int) -> None:
    check(s, True, spoil, which)


@both
def test_an_infinite_weight_on_padding_gives_nan(reference: bool) -> None:
    s = Conv(1, 1, (2, 2), 1, (1, 2), padding=(0, 1))
    weight = np.array([INF, 0], np.float32).reshape(s.weight_shape)
    y = kernels.conv2d(s, np.ones(s.x_shape, np.float32), weight, None, reference)
    np.testing.assert_array_equal(y[0, 0], [[NAN, INF, INF]] * 2)


@both
def test_facts(reference: bool) -> None:
    """No flip; the kernel as large as the input; 1x1 over two channels."""
    s = Conv(1, 1, (2, 2), 1, (2, 2))
    x = np.array([1, 2, 3, 4], np.float32).reshape(s.x_shape)
    weight = np.array([0, 1, 0, 0], np.float32).reshape(s.weight_shape)
    one = np.ones(s.y_shape, np.float32)
    assert kernels.conv2d(s, x, weight, None, reference).item() == 2
    assert kernels.conv2d_backward_input(s, one, weight, reference).ravel().tolist() == [0, 1, 0, 0]
    assert kernels.conv2d_backward_weight(s, one, x, reference).ravel().tolist() == [1, 2, 3, 4]

    s = Conv(1, 2, (2, 2), 1, (1, 1))
    x = np.arange(8, dtype=np.float32).reshape(s.x_shape)
    weight = np.array([10, 1], np.float32).reshape(s.weight_shape)
    assert kernels.conv2d(s, x, weight, None, reference).ravel().tolist() == [4, 15, 26, 37]
    assert kernels.conv2d_backward_weight(s, np.ones(s.y_shape, np.float32), x, reference).ravel().tolist() == [6, 22]


@both
def test_groups_with_stride(reference: bool) -> None:
    s = Conv(1, 1, (3, 3), 1, (2, 2), (2, 2), (1, 1), groups=2)
    x = np.arange(18, dtype=np.float32).reshape(s.x_shape)
    weight = np.arange(1, 9, dtype=np.float32).reshape(s.weight_shape)
    one = np.ones(s.y_shape, np.float32)
    y = kernels.conv2d(s, x, weight, None, reference)
    assert y.ravel().tolist() == [0, 11, 30, 67, 72, 158, 192, 397]
    dx = kernels.conv2d_backward_input(s, one, weight, reference)
    assert dx.ravel().tolist() == [4, 3, 4, 2, 1, 2, 4, 3, 4, 8, 7, 8, 6, 5, 6, 8, 7, 8]
    dw = kernels.conv2d_backward_weight(s, one, x, reference)
    assert dw.ravel().tolist() == [4, 8, 8, 16, 13, 26, 26, 52]


@both
def test_padding_larger_than_the_kernel(reference: bool) -> None:
    s = Conv(1, 1, (2, 2), 1, (3, 3), padding=(4, 4))
    x, weight = np.ones(s.x_shape, np.float32), np.ones(s.weight_shape, np.float32)
    grad = np.ones(s.y_shape, np.float32)
    assert kernels.conv2d(s, x, weight, None, reference).sum() == 36
    assert kernels.conv2d_backward_input(s, grad, weight, reference).tolist() == [[[[9, 9], [9, 9]]]]
    assert (kernels.conv2d_backward_weight(s, grad, x, reference) == 4).all()


@pytest.mark.parametrize("name", CONVS)
def test_repeats_bit_for_bit(name: str) -> None:
    s = CONVS[name]
    x, weight, grad = data(s.x_shape, 0), data(s.weight_shape, 1), data(s.y_shape, 2)
    for kernel, *arrays in (
        (kernels.conv2d, x, weight, None),
        (kernels.conv2d_backward_input, grad, weight),
        (kernels.conv2d_backward_weight, grad, x),
    ):
        first = kernel(s, *arrays, False).tobytes()
        assert all(kernel(s, *arrays, False).tobytes() == first for _ in range(3))


def test_one_image_alone_gives_its_row_of_a_batch() -> None:
    s = CONVS["small planes share a line"]
    x, weight = data(s.x_shape, 0), data(s.weight_shape, 1)
    alone = Conv(1, s.c, s.size, s.o, s.kernel, s.stride, s.padding, s.dilation, s.groups)
    batch = kernels.conv2d(s, x, weight, None, False)
    assert_same(kernels.conv2d(alone, x[2:3], weight, None, False), batch[2:3].astype(float))


@pytest.mark.parametrize("name", CONVS)
def test_like_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    s = CONVS[name]
    x, weight, grad, bias = data(s.x_shape, 0), data(s.weight_shape, 1), data(s.y_shape, 2), data((s.y_shape[1],), 3)
    tx, tw = (torch.from_numpy(a).double().requires_grad_() for a in (x, weight))
    y = torch.nn.functional.conv2d(tx, tw, torch.from_numpy(bias).double(), *s.options)
    dx, dw = torch.autograd.grad(y, (tx, tw), torch.from_numpy(grad).double())
    for got, expected in (
        (kernels.conv2d(s, x, weight, bias, False), y),
        (kernels.conv2d_backward_input(s, grad, weight, False), dx),
        (kernels.conv2d_backward_weight(s, grad, x, False), dw),
    ):
        assert_same(got, expected.detach().numpy(), 50)
