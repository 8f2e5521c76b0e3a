"""Comparisons, maximum, minimum and where: beside NumPy and PyTorch, ties, weak scalars, errors."""

import operator
from collections.abc import Callable

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, tensor
from gradcore.errors import DTypeError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

COMPARISONS = [operator.gt, operator.ge, operator.lt, operator.le, operator.eq, operator.ne]


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_comparisons_beside_numpy(compare: Callable, kind: str, rng: np.random.Generator) -> None:
    a, b = rng.integers(0, 3, (4, 1)).astype(kind), rng.integers(0, 3, (1, 5)).astype(kind)
    for ours, right in [(compare(Tensor(a), Tensor(b)), b), (compare(Tensor(a), b), b), (compare(Tensor(a), 1), 1)]:
        assert (ours.dtype, ours.requires_grad) == (np.bool_, False)
        np.testing.assert_array_equal(ours.numpy(), compare(a, right))
    np.testing.assert_array_equal(compare(b, Tensor(a)).numpy(), compare(b, a))
    np.testing.assert_array_equal(compare(1, Tensor(a)).numpy(), compare(1, a))


@pytest.mark.parametrize("compare", COMPARISONS)
def test_nan_and_infinity(compare: Callable) -> None:
    a = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
    np.testing.assert_array_equal(compare(Tensor(a), Tensor(a[::-1])).numpy(), compare(a, a[::-1]))


@pytest.mark.parametrize("scalar", [0.1, np.float64(0.1), np.float32(0.1)], ids=repr)
def test_scalars_are_weak(scalar: float) -> None:
    """Case 35: float32(0.1) is larger than 0.1 in float64; as the tensor's type they are equal."""
    assert (tensor([0.1]) == scalar).tolist() == [True]
    assert (tensor([0.1]) > scalar).tolist() == [False]
    assert (scalar == tensor([0.1])).tolist() == [True]


def test_integers_meet_other_types() -> None:
    whole = Tensor(np.array([0, 1, 2]))
    assert (whole > 0.5).tolist() == [False, True, True]
    assert (whole == tensor([0.0, 1.5, 2.0])).tolist() == [True, False, True]
    assert (whole == Tensor(np.array([0.0, 1.5, 2.0]))).tolist() == [True, False, True]
    assert (whole > Tensor(np.array([0, 0, 5], np.int32))).tolist() == [False, True, False]
    big = Tensor(np.array([2**24, 2**24 + 1]))
    assert (big == big[::-1]).tolist() == [False, False]  # not compared as float32
    assert (big == 2**24 + 1).tolist() == [False, True]


def test_comparisons_refuse() -> None:
    with pytest.raises(DTypeError, match=r"greater: .*float32 and float64"):
        _ = tensor([1.0]) > np.array([1.0])
    with pytest.raises(ShapeError, match=r"equal: got \(2,\) and \(3,\)"):
        _ = tensor([1.0, 2.0]) == tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "shapes", [((), ()), ((2, 3), (2, 3)), ((3, 1), (1, 4)), ((2, 1, 3), (4, 1)), ((0, 2), (2,))], ids=str
)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_beside_torch(
    name: str, shapes: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    """Case 7: the operands are small integers, so that many tie."""
    torch = pytest.importorskip("torch")
    a, b = (rng.integers(-1, 2, shape).astype(dtype) for shape in shapes)
    against_torch(getattr(gradcore, name), getattr(torch, name), a, b, layout=layout)


@pytest.mark.parametrize("choose", [gradcore.maximum, gradcore.minimum])
def test_ties_and_scalars(choose: Callable, dtype: str) -> None:
    """Case 7: half each; a scalar may stand on either side."""
    a, b = (Tensor(np.array([2.0], dtype), requires_grad=True) for _ in range(2))
    choose(a, b).sum().backward()
    assert (a.grad.item(), b.grad.item()) == (0.5, 0.5)
    for y in (choose(a, 2.0), choose(2, a), choose(a, [2.0]), choose(np.array([2.0], dtype), a)):
        assert (y.dtype, y.tolist()) == (dtype, [2.0])
        a.grad = None
        y.sum().backward()
        assert a.grad.item() == 0.5


@pytest.mark.parametrize("choose", [gradcore.maximum, gradcore.minimum])
def test_nan_wins(choose: Callable) -> None:
    y = choose(tensor([np.nan, 1.0, np.nan]), tensor([1.0, np.nan, np.nan]))
    assert np.isnan(y.numpy()).all()


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_refuses(name: str) -> None:
    choose = getattr(gradcore, name)
    with pytest.raises(DTypeError, match=f"{name}: one operand must be a Tensor"):
        choose(1.0, 2.0)
    with pytest.raises(ShapeError, match=r"got \(2,\) and \(3,\)"):
        choose(tensor([1.0, 2.0]), [1.0, 2.0, 3.0])
    with pytest.raises(DTypeError, match="float32 and float64"):
        choose(tensor([1.0]), np.array([1.0]))


@pytest.mark.parametrize(
    "shapes", [((2, 3),) * 3, ((3, 1), (1, 4), ()), ((4,), (2, 1), (1,)), ((0, 2), (2,), (2,))], ids=str
)
def test_where_beside_torch(shapes: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    torch = pytest.importorskip("torch")
    mask = rng.integers(0, 2, shapes[0]).astype(bool)
    a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes[1:])
    condition = torch.tensor(mask)
    against_torch(
        lambda x, y: gradcore.where(tensor(mask), x, y), lambda x, y: torch.where(condition, x, y), a, b, layout=layout
    )


def test_where_takes_scalars_and_arrays(dtype: str) -> None:
    x = Tensor(np.array([1.0, 2.0], dtype), requires_grad=True)
    for y in (gradcore.where(x > 1.5, x, 0.0), gradcore.where(np.array([False, True]), x, [0, 0])):
        assert (y.dtype, y.tolist()) == (dtype, [0.0, 2.0])
    gradcore.where(x > 1.5, 0.0, x).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    assert gradcore.where(x > 1.5, 1.0, 2.0).tolist() == [2.0, 1.0]


def test_where_keeps_a_nan_out() -> None:
    """Case 3's kind: an infinite slope of the branch that was not chosen counts for nothing where it is cut first."""
    x = tensor([0.0, 4.0], requires_grad=True)
    gradcore.where(x > 0.0, gradcore.where(x > 0.0, x, 1.0).sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_where_refuses() -> None:
    x = tensor([1.0, 2.0])
    with pytest.raises(DTypeError, match="condition must be bool, got float32"):
        gradcore.where(x, x, x)
    with pytest.raises(DTypeError, match="must be a Tensor"):
        gradcore.where(np.array([True]), 1.0, 2.0)
    with pytest.raises(ShapeError, match=r"Where: got \(3,\) and \(2,\) and \(2,\)"):
        gradcore.where(tensor([1.0, 2.0, 3.0]) > 0.0, x, x)


def test_where_notices_a_changed_condition() -> None:
    """Case 32's kind: the condition is saved too."""
    condition, x = tensor(np.array([True, False])), tensor([1.0, 2.0], requires_grad=True)
    y = gradcore.where(condition, x, 0.0)
    condition.copy_(np.array([False, True]))
    with pytest.raises(GraphError, match=r"Where: .*changed in place"):
        y.sum().backward()


def test_where_lets_its_operands_change() -> None:
    """Its gradient needs the condition only."""
    x = tensor([1.0, 2.0], requires_grad=True)
    y = gradcore.where(tensor(np.array([True, False])), x, 0.0)
    x.copy_([3.0, 4.0])
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
