"""Reductions: beside PyTorch and NumPy, exact sums of a million terms, ties, empty inputs, errors."""

from collections.abc import Callable

import numpy as np
import pytest

from gradcore import Tensor, tensor
from gradcore.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("backend")

SHAPES = [(), (1,), (5,), (2, 3), (2, 3, 4), (3, 1, 2)]
MILLION = 1_000_000


def axes_of(ndim: int) -> list:
    """None, each axis from both ends, all pairs, all together."""
    pairs = [(i, j) for i in range(ndim) for j in range(i + 1, ndim)]
    return [None, *range(-ndim, ndim), *pairs, tuple(range(ndim))]


CALLS = [(shape, axis, keep) for shape in SHAPES for axis in axes_of(len(shape)) for keep in (False, True)]


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sum_and_mean_beside_torch(name: str, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    for shape, axis, keep in CALLS:
        if axis == ():  # PyTorch reads no axes as all axes, NumPy and gradcore as none
            continue
        values = rng.normal(size=shape).astype(dtype)
        against_torch(
            lambda x, a=axis, k=keep: getattr(x, name)(a, k),
            lambda x, a=axis, k=keep: getattr(x, name)(dim=a, keepdim=k),
            values,
            layout=layout,
        )


@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min_beside_torch(name: str, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    """Case 7: small integers, so that many tie; tied entries share evenly, as in PyTorch's amax and amin."""
    for shape, axis, keep in CALLS:
        if axis == ():
            continue
        values = rng.integers(-1, 2, shape).astype(dtype)
        against_torch(
            lambda x, a=axis, k=keep: getattr(x, name)(a, k),
            lambda x, a=axis, k=keep: getattr(x, "a" + name)(dim=() if a is None else a, keepdim=k),
            values,
            layout=layout,
        )


@pytest.mark.parametrize("correction", [0, 1, 1.5])
def test_var_beside_torch(correction: float, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    for axis in (None, 0, -1, (0, 1), (0, 2)):
        against_torch(
            lambda x, a=axis: x.var(a, keepdims=True, correction=correction),
            lambda x, a=axis: x.var(dim=a, keepdim=True, correction=correction),
            rng.normal(size=(3, 4, 5)).astype(dtype),
            layout=layout,
            atol=1e-5 if dtype == "float32" else 1e-12,
        )


def test_var_without_enough_elements_is_nan() -> None:
    assert np.isnan(tensor([1.0]).var(correction=1).item())
    assert np.isnan(tensor(np.zeros((0, 2))).var(0).numpy()).all()
    assert tensor([1.0]).var().item() == 0.0


@pytest.mark.parametrize("name", ["sum", "mean", "max"])
def test_no_axes_named_changes_nothing(name: str) -> None:
    x = tensor([[1.0, 2.0]], requires_grad=True)
    y = getattr(x, name)(axis=())
    assert y.tolist() == [[1.0, 2.0]]
    y.backward([[3.0, 4.0]])
    assert x.grad.tolist() == [[3.0, 4.0]]


ARRANGEMENTS: dict[str, tuple[Callable[[np.ndarray], Tensor], object, int]] = {
    "down a column": (lambda a: Tensor(a.reshape(-1, 2)), 0, 2),
    "mean of a row": (lambda a: Tensor(a.reshape(2, -1)), 1, 2),
    "one column": (lambda a: Tensor(a.reshape(-1, 1)), 0, 1),
    "all": (lambda a: Tensor(a), None, 1),
    "all of a matrix": (lambda a: Tensor(a.reshape(2000, -1)), None, 1),
    "all, transposed": (lambda a: Tensor(a.reshape(2000, -1)).T, None, 1),
    "all, every other": (lambda a: Tensor(np.repeat(a, 2))[::2], None, 1),
    "all, backwards": (lambda a: Tensor(a)[::-1], None, 1),
    "column of the transpose": (lambda a: Tensor(a.reshape(-1, 2)).T, 1, 2),
    "several short axes": (lambda a: Tensor(a.reshape(250, 250, 16, 2)), (0, 1, 2), 2),
    "axes around a kept one": (lambda a: Tensor(a.reshape(1000, 2, 1000)), (0, 2), 2),
    "short axes around a kept one": (lambda a: Tensor(a.reshape(200, 50, 2, 100)), (0, 1, 3), 2),
    "the middle": (lambda a: Tensor(a.reshape(1, -1, 2)), 1, 2),
    "a stretched one": (lambda a: Tensor(a[:2]).broadcast_to((MILLION, 2)), 0, 2),
    "stretched short axes": (lambda a: Tensor(a[:1]).broadcast_to((100, 100, 100, 2)), (0, 1, 2), 2),
}


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_a_million_terms(name: str, close) -> None:
    """Case 4: NumPy alone adds some of these one by one and is 0.96 % off."""
    arrange, axis, results = ARRANGEMENTS[name]
    x = arrange(np.full(2 * MILLION, 0.1, np.float32))
    count = x.size // results
    close(x.sum(axis).numpy().ravel(), np.full(results, count * float(np.float32(0.1))), rtol=1e-5)
    close(x.mean(axis).numpy().ravel(), np.full(results, np.float32(0.1)), rtol=1e-5)


@pytest.mark.parametrize("shape", [(MILLION, 2), (250, 250, 16, 2), (1000, 1000, 2)], ids=str)
def test_a_million_terms_in_a_gradient(shape: tuple, close) -> None:
    """Case 4: the gradient of a broadcast bias."""
    bias = tensor([0.0, 0.0], requires_grad=True)
    (Tensor(np.zeros(shape, np.float32)) + bias).backward(np.full(shape, 0.1, np.float32))
    close(bias.grad, np.full(2, 100000.0015), rtol=1e-5)


@pytest.mark.parametrize("shape", [(300, 7), (7, 300), (3, 300, 5), (300, 300), (20, 20, 20, 3)], ids=str)
def test_blocks_leave_nothing_out(shape: tuple, layout: str, close) -> None:
    """Different terms: a wrong stride or block border shows."""
    values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) % 101
    x = (
        Tensor(values)
        if layout == "contiguous"
        else Tensor(values.T.copy()).permute_dims(tuple(range(len(shape)))[::-1])
    )
    for axis in axes_of(len(shape)):
        close(x.sum(axis), values.sum(axis))


def test_empty_inputs() -> None:
    """Case 6."""
    empty = tensor(np.zeros((0, 3), np.float32), requires_grad=True)
    assert empty.sum().item() == 0.0
    assert empty.sum(0).tolist() == [0.0, 0.0, 0.0]
    assert empty.sum(1).shape == (0,)
    assert np.isnan(empty.mean().item())
    assert np.isnan(empty.mean(0).numpy()).tolist() == [True] * 3
    for name in ("max", "min", "argmax"):
        for axis in (None, 0):
            with pytest.raises(ArgumentError, match=rf"{name}: no elements .*\(0, 3\)"):
                getattr(empty, name)(axis)
        assert getattr(empty, name)(1).shape == (0,)
    (empty.sum() + empty.max(1).sum()).backward()
    assert empty.grad.shape == (0, 3)


@pytest.mark.parametrize(
    "values", [[1, np.nan, 3], [np.nan] * 3, [2, 5, 5, 1], [-np.inf, -np.inf], [np.inf, np.nan, np.nan]], ids=str
)
def test_argmax_beside_numpy(values: list, dtype: str) -> None:
    """Case 6: the first NaN, else the first of equals."""
    x = Tensor(np.array(values, dtype))
    assert x.argmax().item() == np.argmax(values)
    assert x.argmax(0, keepdims=True).tolist() == [np.argmax(values)]


def test_argmax_of_all_kinds(rng: np.random.Generator) -> None:
    for kind in ("float32", "float64", "int32", "int64", "uint8", "bool"):
        values = rng.integers(0, 4, (4, 5, 6)).astype(kind)
        for axis in (None, 0, 1, -1):
            y = Tensor(values).argmax(axis)
            assert y.dtype == np.int64
            np.testing.assert_array_equal(y.numpy(), values.argmax(axis))
            np.testing.assert_array_equal(Tensor(values).argmax(axis, True).numpy(), values.argmax(axis, keepdims=True))
    assert not tensor([1.0, 2.0], requires_grad=True).argmax().requires_grad


def test_max_of_nan() -> None:
    """Case 6's kind: NaN wins, and takes the gradient; a row without one is as usual."""
    x = tensor([[1.0, np.nan], [3.0, 2.0]], requires_grad=True)
    y = x.max(1)
    assert np.isnan(y.numpy()).tolist() == [True, False]
    y.backward([1.0, 1.0])
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "values", [[2.0, 2.0, 2.0], [1.0, 2.0, 2.0], [2.0, 1.0, 1.0], [np.inf, np.inf, 0.0], [-np.inf] * 3], ids=str
)
def test_tied_gradients_sum_to_the_upstream(name: str, values: list) -> None:
    """Case 7: 1, never 3."""
    x = tensor(values, requires_grad=True)
    getattr(x, name)().backward()
    assert x.grad.sum().item() == pytest.approx(1.0)
    best = max(values) if name == "max" else min(values)
    assert [g > 0 for g in x.grad.tolist()] == [v == best for v in values]


def test_kept_sum_times_itself() -> None:
    """Case 39."""
    x = tensor(np.arange(6, dtype=np.float32).reshape(2, 3), requires_grad=True)
    (x.sum(-1, keepdims=True) * x).sum().backward()
    assert x.grad.tolist() == [[6, 6, 6], [24, 24, 24]]


def test_integers_and_bools_are_summed_as_floats() -> None:
    for kind in ("int32", "int64", "uint8", "bool"):
        y = Tensor(np.ones((300, 300), kind)).sum((0, 1))
        assert (y.dtype, y.item()) == (np.float32, 90000)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var"])
def test_axes_that_do_not_exist(name: str) -> None:
    x = tensor([[1.0, 2.0]])
    for axis, text in [
        (2, "axis 2 is out of range"),
        (-3, "axis -3"),
        ((0, 0), "twice"),
        ((0, -2), "twice"),
        (0.5, "integer"),
        ("a", "integer"),
    ]:
        with pytest.raises(ArgumentError, match=rf"^{name}: .*{text}"):
            getattr(x, name)(axis)
    with pytest.raises(ArgumentError, match="axis 0 is out of range for 0 axes"):
        getattr(tensor(1.0), name)(0)
