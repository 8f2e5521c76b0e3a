"""Squared error and binary cross-entropy beside PyTorch; shapes must be equal."""

import numpy as np
import pytest

from gradcore import Tensor, ops, tensor
from gradcore.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

LOSSES = {"mse_loss": "mse_loss", "bce_with_logits": "binary_cross_entropy_with_logits"}


@pytest.mark.parametrize("shape", [(), (1,), (5,), (4, 3), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_beside_torch(
    name: str, reduction: str, shape: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    functional = pytest.importorskip("torch").nn.functional
    prediction, target = rng.normal(size=shape).astype(dtype), rng.uniform(size=shape).astype(dtype)
    against_torch(
        lambda p, t: getattr(ops, name)(p, t, reduction),
        lambda p, t: getattr(functional, LOSSES[name])(p, t, reduction=reduction),
        prediction,
        target,
        layout=layout,
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "shapes", [((3, 1), (3,)), ((3,), (3, 1)), ((3,), ()), ((2, 3), (3, 2)), ((3,), (1,))], ids=str
)
def test_shapes_must_be_equal(name: str, shapes: tuple) -> None:
    """Case 8: broadcasting would give 1.3333333 for equal values."""
    p, t = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    for target in (Tensor(t), t, t.tolist()):
        with pytest.raises(ShapeError) as error:
            getattr(ops, name)(Tensor(p), target)
        assert all(text in str(error.value) for text in (name, str(shapes[0]), str(shapes[1])))
    assert ops.mse_loss(Tensor(p), p).item() == 0.0


@pytest.mark.filterwarnings("error")
def test_bce_far_from_zero(dtype: str, against_torch) -> None:
    """Case 1's kind: no overflow, no NaN, no warning."""
    functional = pytest.importorskip("torch").nn.functional
    x = np.array([-1e4, -100.0, -30.0, 0.0, 30.0, 100.0, 1e4, 1e4, -1e4], dtype)
    t = np.array([0, 1, 0.5, 0.5, 1, 0, 1, 0, 1], dtype)
    against_torch(ops.bce_with_logits, functional.binary_cross_entropy_with_logits, x, t, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_targets_of_other_types(name: str) -> None:
    x = tensor([0.5, 1.0], requires_grad=True)
    loss = getattr(ops, name)
    assert loss(x, [0, 1]).item() == loss(x, np.array([0, 1])).item() == loss(x, np.array([False, True])).item()
    with pytest.raises(DTypeError, match="float32 and float64"):
        loss(x, np.array([0.0, 1.0]))
    double = Tensor(np.array([0.5, 1.0]))
    assert loss(double, np.array([0, 1])).dtype == np.float64


@pytest.mark.parametrize("name", LOSSES)
def test_no_elements(name: str) -> None:
    empty = tensor(np.zeros((0, 2), np.float32))
    assert np.isnan(getattr(ops, name)(empty, empty).item())
    assert getattr(ops, name)(empty, empty, "sum").item() == 0.0
    assert getattr(ops, name)(empty, empty, "none").shape == (0, 2)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["avg", "", None, "Mean"], ids=repr)
def test_unknown_reduction(name: str, reduction: object) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: reduction {reduction!r} is not one of mean, sum, none"):
        getattr(ops, name)(tensor([1.0]), [1.0], reduction)
