"""Softmax and cross-entropy beside PyTorch, at huge and infinite logits, and labels that are no class."""

import numpy as np
import pytest

from gradcore import Tensor, ops, tensor
from gradcore.errors import ArgumentError, DTypeError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

INF = np.inf


@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 0), ((4, 3), -1), ((4, 3), 0), ((2, 3, 4), 1), ((0, 3), 1), ((1, 1), 1)], ids=str
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_beside_torch(
    name: str, shape: tuple, axis: int, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    values = rng.normal(size=shape, scale=5).astype(dtype)
    against_torch(lambda x: getattr(x, name)(axis), lambda x: getattr(x, name)(axis), values, layout=layout)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(1, 3), (5, 10), (0, 4), (3, 1)], ids=str)
def test_cross_entropy_beside_torch(
    shape: tuple, reduction: str, dtype: str, layout: str, rng: np.random.Generator, against_torch
) -> None:
    torch = pytest.importorskip("torch")
    labels = rng.integers(0, shape[1], shape[0])
    if shape[0] > 2:
        labels[1] = -100
    against_torch(
        lambda x: ops.cross_entropy(x, labels, reduction=reduction),
        lambda x: torch.nn.functional.cross_entropy(x, torch.tensor(labels), reduction=reduction),
        rng.normal(size=shape).astype(dtype),
        layout=layout,
    )


@pytest.mark.filterwarnings("error")
def test_huge_logits(dtype: str) -> None:
    """Case 1."""
    row = np.array([[10000, 0, -10000]], dtype)
    assert Tensor(row).log_softmax().tolist() == [[0, -10000, -20000]]
    assert Tensor(row).softmax().tolist() == [[1, 0, 0]]
    for label, loss, grad in [(0, 0, [0, 0, 0]), (1, 10000, [1, -1, 0]), (2, 20000, [1, 0, -1])]:
        x = Tensor(row, requires_grad=True)
        y = ops.cross_entropy(x, [label])
        y.backward()
        assert (y.item(), x.grad.tolist()) == (loss, [grad])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("logits", "label", "loss", "grad"),
    [
        ([-INF, 0, 0], 1, 0.6931472, [0, -0.5, 0.5]),
        ([-INF, 2, -INF], 1, 0.0, [0, 0, 0]),
        ([-INF, 0, 0], 0, INF, [-1, 0.5, 0.5]),
        ([-INF, -INF, -INF], 0, np.nan, [np.nan] * 3),
        ([np.nan, 0, 0], 1, np.nan, [np.nan] * 3),
    ],
)
def test_infinite_logits(logits: list, label: int, loss: float, grad: list, dtype: str, close) -> None:
    """Case 3."""
    x = Tensor(np.array([logits], dtype), requires_grad=True)
    y = ops.cross_entropy(x, [label])
    y.backward()
    assert y.item() == pytest.approx(loss, rel=1e-6, nan_ok=True)
    close(x.grad, [grad], rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_one_bad_row_harms_no_other() -> None:
    """Case 3's kind."""
    x = tensor([[-INF, -INF], [0.0, 0.0]], requires_grad=True)
    losses = ops.cross_entropy(x, [0, 1], reduction="none")
    losses.backward([1.0, 1.0])
    assert np.isnan(losses.numpy()).tolist() == [True, False]
    assert x.grad.numpy()[1].tolist() == [0.5, -0.5]


@pytest.mark.parametrize("label", [3, -1, 255, -100])
def test_labels_that_are_no_class(label: int) -> None:
    """Case 3: named with the class count, from the host and on the backend; -100 is only special as ignore_index."""
    x = tensor(np.zeros((2, 3), np.float32))
    for labels in (
        [0, label],
        np.array([0, label]),
        Tensor(np.array([0, label])),
        Tensor(np.array([0, label], np.int32)),
    ):
        with pytest.raises(ArgumentError, match=rf"cross_entropy: label {label} is not one of 0..2 \(3 classes\)"):
            ops.cross_entropy(x, labels, ignore_index=-7).item()
    assert ops.cross_entropy(x, [0, 1]).item() == pytest.approx(1.0986123)


def test_labels_of_wrong_type_or_shape() -> None:
    """Case 3."""
    x = tensor(np.zeros((2, 3), np.float32))
    for labels in ([0.0, 1.0], np.array([0.0, 1.0]), tensor([0.0, 1.0]), [True, False], ["a", "b"]):
        with pytest.raises(DTypeError, match="cross_entropy: labels and indices are integers"):
            ops.cross_entropy(x, labels)
    for labels in ([0], [[0, 1]], [[0], [1]], [0, 1, 2], 0):
        with pytest.raises(ShapeError, match=r"cross_entropy: got labels .* for logits \(2, 3\)"):
            ops.cross_entropy(x, labels)
    for shape in ((3,), (), (2, 3, 4), (2, 0)):
        with pytest.raises(ShapeError, match=r"cross_entropy: logits must be \(N, C\)"):
            ops.cross_entropy(tensor(np.zeros(shape, np.float32)), [0, 0])
    with pytest.raises(ArgumentError, match="cross_entropy: reduction 'avg'"):
        ops.cross_entropy(x, [0, 1], reduction="avg")


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64", "uint16"])
def test_labels_of_every_integer_type(kind: str) -> None:
    x, labels = tensor([[0.0, 1.0], [2.0, 0.0]]), np.array([1, 0]).astype(kind)
    expected = ops.cross_entropy(x, [1, 0]).item()
    assert ops.cross_entropy(x, labels).item() == ops.cross_entropy(x, Tensor(labels)).item() == expected


@pytest.mark.parametrize("ignored", [-100, 0, 7])
def test_ignored_rows(ignored: int, dtype: str, close) -> None:
    """Case 3: the mean is over the kept rows; nothing kept is NaN, with zero gradients."""
    for labels in ([2, ignored], Tensor(np.array([2, ignored]))):
        x = Tensor(np.zeros((2, 3), dtype), requires_grad=True)
        loss = ops.cross_entropy(x, labels, ignore_index=ignored)
        loss.backward()
        assert loss.item() == pytest.approx(1.0986123)
        close(x.grad, [[1 / 3, 1 / 3, -2 / 3], [0, 0, 0]])
    x = Tensor(np.zeros((2, 3), dtype), requires_grad=True)
    loss = ops.cross_entropy(x, [ignored, ignored], ignore_index=ignored)
    loss.backward()
    assert np.isnan(loss.item())
    assert x.grad.tolist() == [[0.0] * 3] * 2
    assert ops.cross_entropy(x, [ignored, ignored], ignore_index=ignored, reduction="sum").item() == 0.0


def test_changed_labels_are_noticed() -> None:
    """Case 32's kind."""
    x, labels = tensor([[1.0, 2.0]], requires_grad=True), Tensor(np.array([0]))
    loss = ops.cross_entropy(x, labels)
    labels.copy_(np.array([1]))
    with pytest.raises(GraphError, match=r"SoftmaxCrossEntropy: .*changed in place"):
        loss.backward()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_errors(name: str) -> None:
    function = getattr(ops, name)
    with pytest.raises(ArgumentError, match=f"^{name}: axis 2 is out of range for 2 axes"):
        function(tensor([[1.0]]), 2)
    with pytest.raises(ArgumentError, match=f"^{name}: axis -1 is out of range for 0 axes"):
        function(tensor(1.0))
    with pytest.raises(ArgumentError, match=rf"^{name}: no elements along axis -1 of shape \(2, 0\)"):
        function(tensor(np.zeros((2, 0), np.float32)))
    assert function(tensor(np.array([1, 1]))).dtype == np.float32


def test_rows_of_softmax_sum_to_one(dtype: str, rng: np.random.Generator, close) -> None:
    x = Tensor(rng.normal(size=(50, 20), scale=30).astype(dtype))
    close(x.softmax().sum(1), np.ones(50))
    close(x.softmax(0).sum(0), np.ones(20))
