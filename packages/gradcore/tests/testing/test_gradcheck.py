"""check_gradient: right rules pass, each kind of wrong one is found and named, and nothing of the user's changes."""

import re
from typing import Any

import numpy as np
import pytest

from gradcore import Function, Tensor, nn, ops
from gradcore.errors import ArgumentError, DTypeError
from gradcore.testing import check_gradient

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.5, 2, (3, 4)), RNG.uniform(0.5, 2, (3, 4))


class Product(Function):
    """a * b with a rule that may be wrong by a factor for one of them."""

    def __init__(self, wrong: tuple[float, float] = (1.0, 1.0)) -> None:
        self.wrong = wrong

    def forward(self, a: Any, b: Any) -> Any:
        self.saved = a, b
        return self.backend.multiply(a, b)

    def backward(self, grad: Any) -> Any:
        a, b = self.saved
        multiply = self.backend.multiply
        return multiply(multiply(grad, b), self.wrong[0]), multiply(multiply(grad, a), self.wrong[1])


class OneEntryWrong(Function):
    """x**2 with one wrong entry in its gradient."""

    def forward(self, x: Any) -> Any:
        self.saved = x
        return self.backend.multiply(x, x)

    def backward(self, grad: Any) -> Any:
        slope = np.array(self.saved) * 2
        slope[1, 2] *= 1.001
        return self.backend.multiply(grad, self.backend.asarray(slope))


class ByHand(nn.Layer):
    """y = x @ w.T, its backward written by hand; wrong scales the weight's gradient."""

    def __init__(self, wrong: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(RNG.uniform(-1, 1, (2, 4)).astype(np.float32))
        self.wrong = wrong

    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return ops.matmul(x, self.weight.T)

    def backward(self, grad_output: Tensor) -> Tensor:
        nn.accumulate_grad(self.weight, ops.matmul(grad_output.T, self.x) * self.wrong)
        return ops.matmul(grad_output, self.weight)


@pytest.mark.parametrize("full", [False, True])
def test_right_rules_pass(full: bool) -> None:
    check_gradient(Product(), A, B, full=full)
    check_gradient(lambda a, b: (a * b).exp().sum(0) / a.sum(), A, B, full=full)
    check_gradient(lambda a, b: a @ b.T, A, B, full=full)
    check_gradient(lambda x: x * 2.0, 3.0 * np.ones(()), full=full)
    check_gradient(lambda x: x.sum(), np.zeros((0, 3)), full=full)


@pytest.mark.parametrize(
    ("wrong", "text"), [((1.01, 1), "input 0 of shape (3, 4)"), ((1, 1.01), "input 1 of shape (3, 4)")]
)
def test_the_wrong_operand_is_named_with_both_numbers(wrong: tuple[float, float], text: str) -> None:
    pattern = re.escape(text) + r": backward says -?\d[\d.e-]*, central differences say -?\d"
    with pytest.raises(AssertionError, match=pattern):
        check_gradient(Product(wrong), A, B)


def test_full_names_the_entry() -> None:
    with pytest.raises(AssertionError, match="full=True names the entry"):
        check_gradient(OneEntryWrong(), A)
    with pytest.raises(AssertionError, match=re.escape("input 0, entry (1, 2): backward says")):
        check_gradient(OneEntryWrong(), A, full=True)


def test_a_missing_gradient_counts_as_zero() -> None:
    class Forgets(Product):
        def backward(self, grad: Any) -> Any:
            return super().backward(grad)[0], None

    with pytest.raises(AssertionError, match=r"input 1 .* backward says 0, "):
        check_gradient(Forgets(), A, B)


def test_a_nan_is_no_agreement() -> None:
    with pytest.raises(AssertionError, match="nan"):
        check_gradient(lambda x: (x - x).sqrt() * 0.0, A)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(4, 3),
        nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2), nn.Sigmoid()),
        nn.Dropout(0.5),
        ByHand(),
        nn.Sequential(nn.Linear(4, 4), ByHand(), nn.Tanh()),
    ],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.parametrize("full", [False, True])
def test_layers_and_their_parameters(layer: nn.Layer, full: bool) -> None:
    check_gradient(layer, A, full=full)


def test_image_layers() -> None:
    x = RNG.permutation(2 * 2 * 6 * 6).reshape(2, 2, 6, 6) / 10.0
    check_gradient(nn.Conv2d(2, 3, 3, padding=1), x)
    check_gradient(nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 2)), x)
    check_gradient(nn.BatchNorm2d(2), x, rtol=1e-5)


def test_a_loss_with_labels() -> None:
    check_gradient(nn.CrossEntropyLoss(), A, np.array([0, 3, 1]))
    check_gradient(lambda x: ops.cross_entropy(x, [0, 3, 1], reduction="none"), A)


def test_a_wrong_parameter_gradient_of_a_layer_is_named() -> None:
    with pytest.raises(AssertionError, match=re.escape("ByHand: parameter 'weight' of shape (2, 4): backward says")):
        check_gradient(ByHand(wrong=1.1), A)
    with pytest.raises(AssertionError, match=re.escape("Sequential: parameter '1.weight', entry (0, 0)")):
        check_gradient(nn.Sequential(nn.Tanh(), ByHand(wrong=1.1)), A, full=True)


def test_nothing_of_the_users_changes() -> None:
    layer, x = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), Tensor(A.astype(np.float32), requires_grad=True)
    norm = nn.BatchNorm2d(2)
    before = layer.state_dict()
    check_gradient(layer, x)
    check_gradient(norm, RNG.uniform(-1, 1, (2, 2, 3, 3)), rtol=1e-5)
    assert x.grad is None
    assert x.dtype == np.float32
    assert all(p.grad is None and p.dtype == np.float32 for p in layer.parameters())
    assert all(np.array_equal(before[name], value) for name, value in layer.state_dict().items())
    assert norm.running_mean.tolist() == [0.0, 0.0]


def test_parameters_of_a_plain_function() -> None:
    weight = Tensor(B, requires_grad=True)
    check_gradient(lambda x: x * weight, A, parameters=[weight])
    assert np.array_equal(weight.numpy(), B)
    with pytest.raises(AssertionError, match="parameter 0 of shape"):
        check_gradient(lambda x: Product((1, 1.1))(x, weight), A, parameters=[weight])
    with pytest.raises(DTypeError, match="parameter 0 must be float64"):
        check_gradient(lambda x: x, A, parameters=[Tensor([1.0], requires_grad=True)])


def test_frozen_parameters_are_left_out() -> None:
    layer = ByHand(wrong=1.1)
    layer.weight.requires_grad_(False)
    check_gradient(nn.Sequential(nn.Tanh()), A)
    with pytest.raises(ArgumentError, match="no float array, tensor or parameter"):
        check_gradient(lambda x: x, np.arange(3))


def test_what_is_no_float64_function() -> None:
    with pytest.raises(ArgumentError, match="returned list, expected one Tensor"):
        check_gradient(lambda x: [x], A)
    with pytest.raises(DTypeError, match="returned float32"):
        check_gradient(lambda x: x.astype("float32"), A)
