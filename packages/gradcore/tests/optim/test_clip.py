"""Clipping beside PyTorch; the norm in float64; gradients that are not finite; shared gradients."""

from typing import Any

import numpy as np
import pytest

from gradcore import Parameter, Tensor
from gradcore.errors import ArgumentError
from gradcore.optim import clip_grad_norm_, clip_grad_value_


def with_grads(dtype: Any, *grads: Any) -> list[Parameter]:
    parameters = []
    for grad in grads:
        parameters.append(Parameter(np.zeros(np.shape(grad) if grad is not None else 1, dtype)))
        if grad is not None:
            parameters[-1].grad = np.array(grad, dtype)
    return parameters


@pytest.mark.parametrize("limit", [0.0, 0.1, 3.0, 100.0])
def test_norm_like_torch(limit: float, dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    grads = [rng.standard_normal((4, 5)), None, rng.standard_normal(7), rng.standard_normal(())]
    ours = with_grads(dtype, *grads)
    theirs = [torch.zeros(p.shape, dtype=getattr(torch, dtype.name), requires_grad=True) for p in ours]
    for p, q in zip(ours, theirs, strict=True):
        q.grad = None if p.grad is None else torch.tensor(p.grad.numpy())
    norm = clip_grad_norm_(ours, limit)
    assert norm == pytest.approx(torch.nn.utils.clip_grad_norm_(theirs, limit).item(), rel=1e-6)
    for p, q in zip(ours, theirs, strict=True):
        if q.grad is None:
            assert p.grad is None
        else:
            np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-9)


def test_value_like_torch(dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    grads = [[0.3, -0.3, 5.0, -5.0, np.inf, -np.inf, 0.0], [[1.0]]]
    ours = with_grads(dtype, *grads, None)
    theirs = [torch.zeros(p.shape, requires_grad=True) for p in ours[:2]]
    for q, grad in zip(theirs, grads, strict=True):
        q.grad = torch.tensor(grad)
    clip_grad_value_(ours, 0.5)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    for p, q in zip(ours[:2], theirs, strict=True):
        np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-7)
        assert p.grad.dtype == dtype
    assert ours[2].grad is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("value", "count"), [(1e20, 4), (3e38, 1000), (1e-30, 9), (3e38, 1_000_000)])
def test_float32_squares_neither_overflow_nor_vanish(value: float, count: int) -> None:
    """Convention "gradient norm": PyTorch's float32 sum is inf here, and its scale 0 zeroes every gradient."""
    (p,) = with_grads(np.float32, np.full(count, value))
    norm = clip_grad_norm_([p], 1e-31 if value < 1 else 1.0)
    expected = float(np.float32(value)) * count**0.5
    assert norm == pytest.approx(expected, rel=1e-6)
    if value > 1:
        np.testing.assert_allclose(p.grad, np.full(count, count**-0.5), rtol=1e-5)


def test_a_norm_within_the_limit_changes_no_bit(dtype: Any) -> None:
    p = with_grads(dtype, [0.1, 0.2], [0.3])
    held = [q.grad for q in p]
    clip_grad_norm_(p, 5.0)
    assert all(q.grad is grad for q, grad in zip(p, held, strict=True))


@pytest.mark.filterwarnings("error")
def test_not_finite(dtype: Any) -> None:
    """As in PyTorch: NaN makes all NaN, infinity zeroes the finite; or an error before any change."""
    p = with_grads(dtype, [np.nan, 1.0], [2.0])
    with pytest.raises(ArgumentError, match="clip_grad_norm_: the gradient norm is nan"):
        clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p[1].grad.tolist() == [2.0]
    assert np.isnan(clip_grad_norm_(p, 1.0))
    assert np.isnan(p[1].grad.numpy()).all()
    p = with_grads(dtype, [1.0, 2.0], [2.0])
    p[0].grad = np.array([1.0, np.inf], dtype)
    assert clip_grad_norm_(p, 1.0) == np.inf
    assert p[1].grad.tolist() == [0.0]
    (q,) = with_grads(dtype, [np.nan, 9.0])
    clip_grad_value_([q], 1.0)
    np.testing.assert_array_equal(q.grad, np.array([np.nan, 1.0], dtype))


def test_shared_gradients_are_scaled_once(dtype: Any) -> None:
    """Two parameters may hold one gradient; scaling it in place would scale it twice."""
    a, b = with_grads(dtype, [3.0], [0.0])
    shared = Tensor(np.array([3.0], dtype))
    a.grad = b.grad = shared
    norm = clip_grad_norm_([a, b], 1.0)
    assert norm == pytest.approx(18**0.5)
    assert a.grad.item() == pytest.approx(3 / 18**0.5, rel=1e-5)
    assert b.grad.item() == a.grad.item()
    assert shared.item() == 3.0


def test_one_tensor_and_generators(dtype: Any) -> None:
    """One tensor is as good as a list of it; iterating over its rows would clip nothing, in silence."""
    (p,) = with_grads(dtype, [3.0, 4.0])
    assert clip_grad_norm_(p, 1.0) == 5.0
    np.testing.assert_allclose(p.grad, [0.6, 0.8], rtol=1e-5)
    clip_grad_value_(p, 0.7)
    np.testing.assert_allclose(p.grad, [0.6, 0.7], rtol=1e-5)
    assert clip_grad_norm_((q for q in [p]), 9.0) == pytest.approx((0.36 + 0.49) ** 0.5, rel=1e-5)


def test_nothing_to_clip() -> None:
    assert clip_grad_norm_(with_grads(np.float32, None), 1.0) == 0.0
    assert clip_grad_norm_([], 1.0) == 0.0
    clip_grad_value_([], 1.0)


@pytest.mark.parametrize("clip", [clip_grad_norm_, clip_grad_value_])
@pytest.mark.parametrize("limit", [-1.0, float("nan"), None])
def test_the_limit_is_checked(clip: Any, limit: Any) -> None:
    p = with_grads(np.float32, [2.0])
    with pytest.raises(ArgumentError, match=f"{clip.__name__}: "):
        clip(p, limit)
    assert p[0].grad.tolist() == [2.0]
