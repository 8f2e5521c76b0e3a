"""Losses against PyTorch with every reduction; worked-out corners; cases 1, 3 and 8."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, nn
from gradcore.errors import ArgumentError, DTypeError, ShapeError

REDUCTIONS = ["mean", "sum", "none"]
rng = np.random.default_rng(0)


def check(close: Any, ours: Any, theirs: Any, prediction: np.ndarray, target: np.ndarray) -> None:
    """The value, and the gradient of the prediction through the tape and through loss.backward."""
    torch = pytest.importorskip("torch")
    x, other = Tensor(prediction, requires_grad=True), torch.tensor(prediction, requires_grad=True)
    loss, expected = ours(x, target), theirs(other, torch.tensor(target))
    close(loss, expected.detach().numpy())
    upstream = np.ones(loss.shape, loss.dtype) * loss.dtype.type(1.5)
    loss.backward(upstream)
    expected.backward(torch.tensor(upstream))
    close(x.grad, other.grad.numpy())
    ours(x, target)
    np.testing.assert_array_equal(ours.backward(upstream), x.grad)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 1, 3), (1,), ()])
def test_mse(reduction: str, shape: Any, close: Any, dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    prediction, target = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    check(close, nn.MSELoss(reduction), torch.nn.MSELoss(reduction=reduction), np.array(prediction), np.array(target))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 1, 3)])
def test_bce(reduction: str, shape: Any, close: Any, dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    logits = (rng.standard_normal(shape) * 20).astype(dtype)
    target = rng.integers(0, 2, shape).astype(dtype)
    check(close, nn.BCEWithLogitsLoss(reduction), torch.nn.BCEWithLogitsLoss(reduction=reduction), logits, target)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("n", "classes"), [(6, 4), (1, 2), (300, 10), (3, 1)])
@pytest.mark.parametrize("ignore", [-100, 0])
def test_cross_entropy(reduction: str, n: int, classes: int, ignore: int, close: Any, dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    logits = (rng.standard_normal((n, classes)) * 5).astype(dtype)
    labels = rng.integers(0, classes, n)
    labels[: n // 3] = ignore
    if reduction == "mean" and (labels == ignore).all():
        labels[-1] = ignore = classes - 1  # all ignored has a test of its own
        ignore = -100
    ours = nn.CrossEntropyLoss(ignore_index=ignore, reduction=reduction)
    check(close, ours, torch.nn.CrossEntropyLoss(ignore_index=ignore, reduction=reduction), logits, labels)


@pytest.mark.parametrize(
    ("logits", "label", "loss", "grad"),
    [
        ([1e4, 0, -1e4], 0, 0.0, [0, 0, 0]),
        ([1e4, 0, -1e4], 1, 1e4, [1, -1, 0]),
        ([1e4, 0, -1e4], 2, 2e4, [1, 0, -1]),
        ([-np.inf, 0, 0], 1, np.log(2.0), [0, -0.5, 0.5]),
        ([-np.inf, 2, -np.inf], 1, 0.0, [0, 0, 0]),
        ([-np.inf, 0, 0], 0, np.inf, [-1, 0.5, 0.5]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_cross_entropy_corners(logits: Any, label: int, loss: float, grad: Any, close: Any, dtype: Any) -> None:
    """Cases 1 and 3: no NaN, no warning."""
    criterion = nn.CrossEntropyLoss()
    close(criterion(np.array([logits], dtype), [label]), loss)
    close(criterion.backward(), [grad])


def test_ignored_labels(close: Any, dtype: Any) -> None:
    """Case 3: the mean goes over the kept rows only; all ignored is NaN with zero gradients."""
    criterion = nn.CrossEntropyLoss()
    zeros = np.zeros((2, 3), dtype)
    close(criterion(zeros, np.array([1, -100])), np.log(3.0))
    close(criterion.backward(), [[1 / 3, -2 / 3, 1 / 3], [0, 0, 0]])
    assert np.isnan(criterion(zeros, np.array([-100, -100])).item())
    assert not criterion.backward().numpy().any()


@pytest.mark.parametrize("label", [3, -1, 2**40])
def test_labels_that_are_no_class(label: int) -> None:
    """Case 3: the value and the class count; the next correct call works."""
    criterion = nn.CrossEntropyLoss()
    with pytest.raises(ArgumentError, match=f"cross_entropy: label {label} .*3 classes"):
        criterion(np.zeros((2, 3), np.float32), np.array([0, label]))
    assert criterion(np.zeros((1, 3), np.float32), np.array([0])).item() == pytest.approx(np.log(3.0))


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64", "uint64"])
def test_label_types(kind: str) -> None:
    loss = nn.CrossEntropyLoss()(np.array([[0.0, 1.0]], np.float32), np.array([1], kind))
    assert loss.item() == pytest.approx(np.log1p(np.exp(-1.0)))


def test_labels_must_be_integers() -> None:
    """Case 3's end."""
    with pytest.raises(DTypeError, match=r"cross_entropy.*float"):
        nn.CrossEntropyLoss()(np.zeros((1, 2), np.float32), np.array([1.0], np.float32))


@pytest.mark.parametrize(("prediction", "target"), [((3, 1), (3,)), ((3,), (3, 1)), ((2, 3), (3,)), ((1,), ())])
@pytest.mark.parametrize("kind", [nn.MSELoss, nn.BCEWithLogitsLoss])
def test_shapes_must_be_equal(kind: Any, prediction: Any, target: Any) -> None:
    """Case 8: never a silent broadcast; both shapes in the text."""
    with pytest.raises(ShapeError) as error:
        kind()(np.zeros(prediction, np.float32), np.zeros(target, np.float32))
    assert str(prediction) in str(error.value)
    assert str(target) in str(error.value)


def test_cross_entropy_shapes() -> None:
    with pytest.raises(ShapeError, match=r"labels \(2, 1\) for logits \(2, 3\)"):
        nn.CrossEntropyLoss()(np.zeros((2, 3), np.float32), np.zeros((2, 1), np.int64))
    with pytest.raises(ShapeError, match=r"logits must be \(N, C\).*got \(3,\)"):
        nn.CrossEntropyLoss()(np.zeros(3, np.float32), np.zeros(3, np.int64))


def test_lists_and_scalars_as_targets(close: Any, dtype: Any) -> None:
    """A list takes the prediction's type."""
    prediction = Tensor(np.array([[1.0], [3.0]], dtype))
    close(nn.MSELoss()(prediction, [[0.0], [1.0]]), 2.5)


def test_float64_target_for_float32() -> None:
    with pytest.raises(DTypeError, match="float32 and float64"):
        nn.MSELoss()(Tensor([1.0]), np.array([1.0]))


def test_the_target_may_want_a_gradient(close: Any, dtype: Any) -> None:
    prediction, target = (nn.Parameter(np.array(v, dtype)) for v in ([1.0, 2.0], [0.0, 5.0]))
    nn.MSELoss("sum")(prediction, target).backward()
    close(prediction.grad, [2.0, -6.0])
    close(target.grad, [-2.0, 6.0])


def test_keywords() -> None:
    """Inputs given by name are inputs all the same."""
    criterion = nn.MSELoss()
    criterion(prediction=Tensor([3.0, 0.0]), target=[0.0, 0.0])
    assert criterion.backward().tolist() == [3.0, 0.0]
    criterion(Tensor([3.0]), target=[0.0])
    assert criterion.backward().tolist() == [6.0]


@pytest.mark.parametrize("kind", [nn.MSELoss, nn.CrossEntropyLoss, nn.BCEWithLogitsLoss])
def test_options(kind: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{kind.__name__}: reduction 'average' is not one of mean, sum, none"):
        kind(reduction="average")
    assert repr(kind()) == f"{kind.__name__}()"
    assert repr(kind(reduction="sum")) == f"{kind.__name__}(reduction='sum')"


def test_a_reduction_in_the_place_of_ignore_index() -> None:
    """The other losses take the reduction first; here that would be an index that no label equals."""
    with pytest.raises(ArgumentError, match="CrossEntropyLoss: ignore_index must be an integer, got 'sum'"):
        nn.CrossEntropyLoss("sum")
    assert repr(nn.CrossEntropyLoss(0, "sum")) == "CrossEntropyLoss(ignore_index=0, reduction='sum')"


def test_backward_needs_an_upstream_gradient_unless_it_is_one_number() -> None:
    criterion = nn.MSELoss("none")
    criterion(Tensor([1.0, 2.0]), [0.0, 0.0])
    with pytest.raises(ShapeError, match=r"MSELoss.backward: the output has shape \(2,\)"):
        criterion.backward()


def test_no_tape_inside_no_grad() -> None:
    criterion = nn.MSELoss()
    with gradcore.no_grad():
        loss = criterion(nn.Parameter([1.0]), [0.0])
    assert not loss.requires_grad
    with pytest.raises(gradcore.GradcoreError, match=r"MSELoss.backward: call the layer first, outside no_grad"):
        criterion.backward()
