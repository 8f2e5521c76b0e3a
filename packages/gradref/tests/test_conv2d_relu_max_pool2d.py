"""Convolution, ReLU and max pool as one step, fast and reference, against the float64 oracle.

Forward is tested on whole numbers, whose sums are exact: then every position can be compared, ties included.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import kernels, oracle
from .oracle import Conv, Pool, assert_same, data, whole_numbers
from .shapes import FUSED, INF, NAN, SPOILT, fused, pooled

both = pytest.mark.parametrize("reference", [False, True], ids=["fast", "reference"])
named = pytest.mark.parametrize("name", FUSED)


def check(s: Conv, p: Pool, reference: bool, spoil: tuple[float, ...] = (), which: int = 0) -> None:
    """Forward and all gradients. `which` array gets the values of `spoil`: x, weight or grad."""
    x, weight = (
        whole_numbers(shape, seed, spoil if seed == which else ())
        for seed, shape in enumerate((s.x_shape, s.weight_shape))
    )
    bias = whole_numbers((s.y_shape[1],), 3)
    for b in (bias, None):
        y, indices = kernels.conv2d_relu_max_pool2d(s, p, x, weight, b, reference)
        expected = oracle.conv2d_relu_max_pool2d(s, p, x, weight, b)
        np.testing.assert_array_equal(y, expected[0])
        np.testing.assert_array_equal(indices, expected[1])
    grad = data(p.y_shape, 2, spoil if which == 2 else ())
    assert_same(
        kernels.fused_backward_input(s, grad, indices, weight, reference),
        oracle.fused_backward_input(s, grad, indices, weight),
        4 * (s.kernel[0] * s.kernel[1] * s.o) ** 0.5,
    )
    assert_same(
        kernels.fused_backward_weight(s, grad, indices, x, reference),
        oracle.fused_backward_weight(s, grad, indices, x),
        4 * (s.n * p.out[0] * p.out[1] + 1) ** 0.5,
    )
    assert_same(
        kernels.fused_backward_bias(grad, indices),
        oracle.fused_backward_bias(grad, indices),
        (s.n * p.out[0] * p.out[1] + 1) ** 0.5,
    )


@both
@named
def test_named_shapes(name: str, reference: bool) -> None:
    check(*FUSED[name], reference)


@both
@pytest.mark.parametrize("which", [0, 1, 2], ids=["x", "weight", "grad"])
@named
def test_infinities_and_nan_stay_where_the_formula_has_them(name: str, which: int, reference: bool) -> None:
    check(*FUSED[name], reference, (INF, -INF, NAN), which)


@settings(max_examples=150, deadline=None)
@given(sizes=fused(), spoil=st.sampled_from(SPOILT), which=st.integers(0, 2))
def test_any_shape(sizes: tuple[Conv, Pool], spoil: tuple[float, ...], which: int) -> None:
    check(*sizes, False, spoil, which)


@settings(max_examples=30, deadline=None)
@given(sizes=fused(), spoil=st.sampled_from(SPOILT), which=st.integers(0, 2))
def test_any_shape_reference(sizes: tuple[Conv, Pool], spoil: tuple[float, ...], which: int) -> None:
    check(*sizes, True, spoil, which)


@named
def test_ordinary_numbers_give_the_three_steps_bit_for_bit(name: str) -> None:
    """The same sums in the same order; so the same winners."""
    s, p = FUSED[name]
    x, weight, bias = data(s.x_shape, 0), data(s.weight_shape, 1), data((s.y_shape[1],), 2)
    y, indices = kernels.conv2d_relu_max_pool2d(s, p, x, weight, bias, False)
    steps = kernels.max_pool2d(p, oracle.relu(kernels.conv2d(s, x, weight, bias, False)), False)
    assert y.tobytes() == steps[0].tobytes()
    np.testing.assert_array_equal(indices, np.where(y <= 0, -1, steps[1]))


@both
def test_closed_and_open(reference: bool) -> None:
    """Below 0, 0 and minus infinity are closed; NaN stays open and passes its gradient on."""
    s = Conv(1, 1, (2, 10), 1, (1, 1))
    p = pooled(s, (2, 2), (2, 2))
    windows = np.array([[-1, -2, -3, -1], [0, -1, 0, 0], [-INF] * 4, [1, NAN, NAN, INF], [2, 3, 3, 1]], np.float32)
    x = windows.reshape(5, 2, 2).transpose(1, 0, 2).reshape(s.x_shape)
    weight, grad = np.ones(s.weight_shape, np.float32), np.arange(1, 6, dtype=np.float32).reshape(p.y_shape)
    y, indices = kernels.conv2d_relu_max_pool2d(s, p, x, weight, None, reference)
    np.testing.assert_array_equal(y.ravel(), [0, 0, 0, NAN, 3])
    assert indices.ravel().tolist() == [-1, -1, -1, 16, 9]
    dx = kernels.fused_backward_input(s, grad, indices, weight, reference)
    assert np.flatnonzero(dx).tolist() == [9, 16]
    assert dx.ravel()[[9, 16]].tolist() == [5, 4]
    assert kernels.fused_backward_bias(grad, indices).tolist() == [9]


@both
def test_what_is_closed_or_not_chosen_contributes_exactly_nothing(reference: bool) -> None:
    """No 0 * infinity: neither for infinite entries of x that lost, nor for an infinite gradient that is closed."""
    s = Conv(1, 1, (2, 4), 1, (1, 1))
    p = pooled(s, (2, 2), (2, 2))
    x = np.array([[1, -INF, -INF, -1], [-INF, -INF, -1, -INF]], np.float32).reshape(s.x_shape)
    weight, grad = np.ones(s.weight_shape, np.float32), np.array([2, INF], np.float32).reshape(p.y_shape)
    _, indices = kernels.conv2d_relu_max_pool2d(s, p, x, weight, None, reference)
    assert indices.ravel().tolist() == [0, -1]
    assert kernels.fused_backward_weight(s, grad, indices, x, reference).item() == 2
    dx = kernels.fused_backward_input(s, grad, indices, np.full(s.weight_shape, -INF, np.float32), reference)
    assert dx.ravel().tolist() == [-INF, 0, 0, 0, 0, 0, 0, 0]
    assert kernels.fused_backward_bias(grad, indices).item() == 2


@both
@pytest.mark.parametrize("wrong", [-2, 10**6, -(2**31), 2**31 - 1])
def test_an_index_outside_the_plane_is_an_error(wrong: int, reference: bool) -> None:
    s, p = FUSED["mnist 2"]
    indices = np.zeros(p.y_shape, np.int32)
    indices[-1, -1, -1, -1] = wrong
    grad = data(p.y_shape, 0)
    with pytest.raises(ValueError, match="backward_input: an index lies outside its plane"):
        kernels.fused_backward_input(s, grad, indices, data(s.weight_shape, 1), reference)
    with pytest.raises(ValueError, match="backward_weight: an index lies outside its plane"):
        kernels.fused_backward_weight(s, grad, indices, data(s.x_shape, 1), reference)


def test_a_million_gradients_of_a_bias_are_summed_accurately() -> None:
    grad = np.full((1000, 1, 32, 32), 0.1, np.float32)
    db = kernels.fused_backward_bias(grad, np.zeros(grad.shape, np.int32))
    assert abs(db.item() / (grad.size * float(np.float32(0.1))) - 1) < 1e-5


@named
def test_repeats_bit_for_bit(name: str) -> None:
    s, p = FUSED[name]
    x, weight, grad = data(s.x_shape, 0), data(s.weight_shape, 1), data(p.y_shape, 2)

    def run() -> list[bytes]:
        y, indices = kernels.conv2d_relu_max_pool2d(s, p, x, weight, None, False)
        dx = kernels.fused_backward_input(s, grad, indices, weight, False)
        dw = kernels.fused_backward_weight(s, grad, indices, x, False)
        return [a.tobytes() for a in (y, indices, dx, dw, kernels.fused_backward_bias(grad, indices))]

    first = run()
    assert all(run() == first for _ in range(3))


@named
def test_like_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    s, p = FUSED[name]
    if s.n == 0:
        pytest.skip("PyTorch does not pool an empty batch")
    x, weight, bias = data(s.x_shape, 0), data(s.weight_shape, 1), data((s.y_shape[1],), 2)
    grad = data(p.y_shape, 3)
    tx, tw, tb = (torch.from_numpy(a).double().requires_grad_() for a in (x, weight, bias))
    functional = torch.nn.functional
    z = functional.relu(functional.conv2d(tx, tw, tb, *s.options))
    expected = functional.max_pool2d(z, p.kernel, p.stride, p.padding)
    gradients = torch.autograd.grad(expected, (tx, tw, tb), torch.from_numpy(grad).double())
    y, indices = kernels.conv2d_relu_max_pool2d(s, p, x, weight, bias, False)
    assert_same(y, expected.detach().numpy(), 50)
    for got, wanted in zip(
        (
            kernels.fused_backward_input(s, grad, indices, weight, False),
            kernels.fused_backward_weight(s, grad, indices, x, False),
            kernels.fused_backward_bias(grad, indices),
        ),
        gradients,
        strict=True,
    ):
        assert_same(got, wanted.numpy(), 50)
