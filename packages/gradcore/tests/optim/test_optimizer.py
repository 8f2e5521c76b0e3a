"""What all optimizers share: the rate, skipping, state, memory, and misuse."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Parameter, Tensor, nn
from gradcore.errors import ArgumentError
from gradcore.optim import SGD, Adam, AdamW

KINDS = [
    lambda p, lr=0.05: SGD(p, lr=lr),
    lambda p, lr=0.05: SGD(p, lr=lr, momentum=0.9, weight_decay=0.01, nesterov=True),
    lambda p, lr=0.05: SGD(p, lr=lr, momentum=0.9, dampening=0.5),
    lambda p, lr=0.05: Adam(p, lr=lr, weight_decay=0.01),
    lambda p, lr=0.05: AdamW(p, lr=lr),
]
kinds = pytest.mark.parametrize("make", KINDS, ids=["sgd", "nesterov", "dampening", "adam", "adamw"])


def parameters(dtype: Any) -> list[Parameter]:
    rng = np.random.default_rng(0)
    return [Parameter(rng.standard_normal(shape).astype(dtype)) for shape in ((2, 3), (3,), (1,))]


def steps(optimizer: Any, first: int, last: int) -> None:
    for step in range(first, last):
        rng = np.random.default_rng(step)
        for i, p in enumerate(optimizer.parameters):
            p.grad = None if (i + step) % 4 == 0 else rng.standard_normal(p.shape).astype(p.dtype)
        optimizer.step()


@kinds
def test_state_survives_save_and_load(make: Any, dtype: Any) -> None:
    """Case 49: 25 steps at once equal 10, a new optimizer from the state, and 15, bit for bit."""
    whole = make(parameters(dtype))
    steps(whole, 0, 25)
    first = make(parameters(dtype))
    steps(first, 0, 10)
    results = []
    for keep in (True, False):
        resumed = make([Parameter(p) for p in first.parameters], lr=0.4)
        if keep:
            resumed.load_state_dict(first.state_dict())
            assert resumed.lr == 0.05
        else:
            resumed.lr = 0.05
        steps(resumed, 10, 25)
        results.append([p.numpy() for p in resumed.parameters])
    expected = [p.numpy() for p in whole.parameters]
    np.testing.assert_equal(results[0], expected)
    if len(first.state_dict()) > 4:  # it has moments: weights alone are not enough
        assert not all(np.array_equal(a, b) for a, b in zip(results[1], expected, strict=True))


@kinds
def test_rate_zero_changes_no_bit(make: Any, dtype: Any) -> None:
    """Case 47."""
    optimizer = make(parameters(dtype), lr=0.0)
    before = [p.numpy().tobytes() for p in optimizer.parameters]
    steps(optimizer, 0, 3)
    assert [p.numpy().tobytes() for p in optimizer.parameters] == before


@kinds
def test_no_gradients_at_all(make: Any) -> None:
    """Case 47: nothing changes, no error, no step counted."""
    optimizer = make(parameters(np.float32))
    before = optimizer.state_dict(), [p.tolist() for p in optimizer.parameters]
    optimizer.step()
    np.testing.assert_equal(optimizer.state_dict(), before[0])
    assert [p.tolist() for p in optimizer.parameters] == before[1]


@kinds
def test_gradients_are_left_as_they_are(make: Any, dtype: Any) -> None:
    """No result may change an operand: decay and momentum must not leak into .grad."""
    optimizer = make(parameters(dtype))
    grads = [np.full(p.shape, 0.5, dtype) for p in optimizer.parameters]
    for _ in range(2):
        for p, g in zip(optimizer.parameters, grads, strict=True):
            p.grad = g
        held = [p.grad for p in optimizer.parameters]
        optimizer.step()
        for grad, g in zip(held, grads, strict=True):
            np.testing.assert_array_equal(grad, g)


@kinds
def test_one_gradient_shared_by_two_parameters(make: Any) -> None:
    """Gradients may share memory; each parameter steps as if it had its own."""
    a, b, c = Parameter([1.0, 2.0]), Parameter([1.0, 2.0]), Parameter([1.0, 2.0])
    both, alone = make([a, b]), make([c])
    for _ in range(3):
        a.grad = b.grad = Tensor([0.5, -0.5])
        c.grad = [0.5, -0.5]
        both.step()
        alone.step()
    assert a.tolist() == b.tolist() == c.tolist()


@kinds
def test_a_single_number(make: Any, dtype: Any) -> None:
    """A parameter of shape () steps as one of shape (1,)."""
    number, vector = Parameter(np.array(0.5, dtype)), Parameter(np.array([0.5], dtype))
    optimizers = [make([number]), make([vector])]
    for grad in (0.3, -0.2, 0.1):
        number.grad, vector.grad = np.array(grad, dtype), np.array([grad], dtype)
        for optimizer in optimizers:
            optimizer.step()
        assert number.item() == vector.item()


def test_a_step_records_no_graph() -> None:
    """Case 31."""
    layer = nn.Linear(2, 1)
    optimizer = Adam(layer.parameters())
    layer([[1.0, 2.0]]).sum().backward()
    optimizer.step()
    assert repr(layer.weight).endswith("requires_grad=True)")  # a leaf still
    optimizer.zero_grad()
    assert layer.weight.grad is None


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "fast"])
def test_the_rate_is_checked_when_it_changes(value: Any) -> None:
    optimizer = SGD([Parameter([1.0])], lr=0.1)
    with pytest.raises(ArgumentError, match="SGD: lr must be"):
        optimizer.lr = value
    assert optimizer.lr == 0.1
    assert optimizer.state_dict()["lr"] == 0.1


def test_a_changed_rate_takes_effect() -> None:
    p = Parameter([0.0])
    optimizer = SGD([p], lr=1.0)
    for rate in (1.0, 0.25, 0.0):
        optimizer.lr = rate
        p.grad = [-1.0]
        optimizer.step()
    assert p.item() == 1.25


def test_what_cannot_be_optimised() -> None:
    """Case 47's end, and lists that would train nothing in silence."""
    p, frozen = Parameter([1.0, 2.0]), Parameter([1.0], requires_grad=False)
    with pytest.raises(ArgumentError, match="SGD: the list of parameters is empty"):
        SGD(nn.ReLU().parameters(), lr=0.1)
    with pytest.raises(ArgumentError, match="Adam: parameters must be a list of tensors, got one tensor"):
        Adam(p)
    with pytest.raises(ArgumentError, match="Adam: a parameter is in the list twice"):
        Adam([p, p])
    for wrong in (p * 2.0, p.reshape(1, 2), gradcore.tensor([1.0]), np.ones(2), "weight"):
        with pytest.raises(ArgumentError, match="AdamW: item 1 of the parameters must have requires_grad=True"):
            AdamW([p, wrong])
    with pytest.raises(ArgumentError, match="AdamW: every parameter is frozen"):
        AdamW([frozen])


def test_a_generator_of_parameters() -> None:
    layer = nn.Linear(2, 1)
    optimizer = SGD((p for _, p in layer.named_parameters()), lr=0.1)
    assert [id(p) for p in optimizer.parameters] == [id(p) for p in layer.parameters()]


def test_frozen_on_the_way() -> None:
    """A parameter frozen after the optimizer was made is skipped, and goes on when it is thawed."""
    layer = nn.Linear(1, 1)
    optimizer = SGD(layer.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    weight, bias = layer.weight.item(), layer.bias.item()
    layer.weight.requires_grad_(False)
    layer([[1.0]]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    assert layer.weight.item() == weight
    assert layer.bias.item() != bias
    layer.weight.requires_grad_()
    layer([[1.0]]).sum().backward()
    optimizer.step()
    assert layer.weight.item() != weight


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lr": np.array(-0.1)}, "lr must be at least 0"),
        ({"lr": np.array(np.nan)}, "lr must be"),
        ({"exp_avg.0": None}, "missing exp_avg.0"),
        ({"exp_avg.9": np.zeros(1)}, "unexpected exp_avg.9"),
        ({"exp_avg_sq.0": np.zeros(3, np.float32)}, r"exp_avg_sq.0 has shape \(3,\)"),
        ({"step.0": np.array(1.5)}, "step.0 is float64, expected int64"),
    ],
)
def test_loading_is_all_or_nothing(change: Any, text: str) -> None:
    optimizer = Adam([Parameter([1.0, 2.0])], lr=0.1)
    steps(optimizer, 1, 3)
    before = optimizer.state_dict()
    state = {k: v for k, v in {**Adam([Parameter([0.0, 0.0])]).state_dict(), **change}.items() if v is not None}
    with pytest.raises(ArgumentError, match=f"Adam.load_state_dict: .*{text}"):
        optimizer.load_state_dict(state)
    np.testing.assert_equal(optimizer.state_dict(), before)
    assert optimizer.lr == 0.1


def test_the_state_of_another_kind() -> None:
    p = [Parameter([1.0])]
    with pytest.raises(ArgumentError, match=r"SGD.load_state_dict: .*missing momentum_buffer.0; unexpected exp_avg"):
        SGD(p, lr=0.1, momentum=0.9).load_state_dict(Adam(p).state_dict())


def test_repr() -> None:
    assert repr(Adam(nn.Linear(30, 40).parameters())) == "Adam(lr=0.001)  # 2 tensors, 1,240 parameters"
