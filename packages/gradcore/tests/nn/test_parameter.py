"""Parameter and Buffer: gradients, copies, pickles, frozen parameters."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import nn
from gradcore.nn import Buffer, Parameter


def test_a_parameter_made_inside_no_grad_wants_gradients_later() -> None:
    """Case 29's end."""
    with gradcore.no_grad():
        w = Parameter([3.0])
        layer = nn.Linear(1, 1)
    (w * 2.0).sum().backward()
    assert w.grad.tolist() == [2.0]
    layer([[1.0]]).sum().backward()
    assert layer.bias.grad.tolist() == [1.0]


def test_a_parameter_copies_its_data() -> None:
    data = np.ones(2, np.float32)
    w = Parameter(data)
    data[:] = 5.0
    assert w.tolist() == [1.0, 1.0]


def test_integers_cannot_be_learnt() -> None:
    """Case 43."""
    with pytest.raises(TypeError, match=r"requires_grad.*int64"):
        Parameter(np.array([1, 2]))


def test_a_buffer_wants_no_gradient() -> None:
    assert not Buffer([1.0]).requires_grad
    assert Buffer(np.array(0, np.int64)).dtype == np.int64


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("persistent", [True, False])
def test_copies_of_a_buffer(duplicate: Any, persistent: bool) -> None:
    """A copy that forgot `persistent` would add a name to the state_dict."""
    twin = duplicate(Buffer([1.0, 2.0], persistent=persistent))
    assert type(twin) is Buffer
    assert twin.persistent is persistent
    assert twin.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_parameter(duplicate: Any) -> None:
    w = Parameter([1.0, 2.0])
    (w * w).sum().backward()
    twin = duplicate(w)
    assert type(twin) is Parameter
    assert twin.requires_grad
    twin.copy_([5.0, 5.0])
    assert w.tolist() == [1.0, 2.0]


def test_a_frozen_parameter() -> None:
    """requires_grad_(False): no gradient, and zero_grad has nothing to do; it can be thawed."""
    layer = nn.Linear(2, 1)
    layer.weight.requires_grad_(False)
    layer([[1.0, 2.0]]).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad.tolist() == [1.0]
    layer.zero_grad()
    assert layer.bias.grad is None
    layer.weight.requires_grad_()
    layer([[1.0, 2.0]]).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 2.0]]


def test_a_gradient_must_fit() -> None:
    w = Parameter([1.0, 2.0])
    for wrong in (np.zeros(3, np.float32), np.zeros(2)):
        with pytest.raises(gradcore.GradcoreError, match="grad: float"):
            w.grad = wrong
    w.grad = [1.0, 2.0]
    assert w.grad.tolist() == [1.0, 2.0]
    with pytest.raises(gradcore.GradcoreError, match="requires_grad=True keeps a gradient"):
        gradcore.tensor([1.0]).grad = [1.0]
