"""Sequential: names, indexing, nesting, and the same layer twice."""

from typing import Any

import numpy as np
import pytest

from gradcore import nn
from gradcore.errors import ArgumentError


def convolutional(module: Any) -> Any:
    """The same small network of gradcore.nn or of torch.nn."""
    return module.Sequential(
        module.Conv2d(1, 4, 3, padding=1),
        module.BatchNorm2d(4),
        module.ReLU(),
        module.MaxPool2d(2),
        module.Sequential(module.Conv2d(4, 6, 3), module.Tanh(), module.AvgPool2d(2)),
        module.Flatten(),
        module.Linear(6, 5),
    )


@pytest.mark.parametrize("training", [True, False])
def test_like_torch(like_torch: Any, training: bool) -> None:
    torch = pytest.importorskip("torch")
    like_torch(convolutional(nn).train(training), convolutional(torch.nn).train(training), 6, 1, 9, 9)


def test_names_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = convolutional(nn).state_dict(), convolutional(torch.nn).state_dict()
    assert list(ours) == list(theirs)
    assert [v.shape for v in ours.values()] == [tuple(v.shape) for v in theirs.values()]


def test_the_same_layer_twice(dtype: Any) -> None:
    """One set of weights, both gradients; the state_dict has it under both names, as in PyTorch."""
    torch = pytest.importorskip("torch")
    shared, other = nn.Linear(3, 3), torch.nn.Linear(3, 3)
    net, twin = nn.Sequential(shared, nn.Tanh(), shared), torch.nn.Sequential(other, torch.nn.Tanh(), other)
    twin.load_state_dict({name: torch.tensor(value) for name, value in net.state_dict().items()})
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    net(x).sum().backward()
    twin(torch.tensor(x)).sum().backward()
    np.testing.assert_allclose(shared.weight.grad, other.weight.grad.numpy(), rtol=1e-5, atol=1e-6)
    tape = shared.weight.grad.numpy()
    net.zero_grad()
    net(x)
    net.backward(np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(shared.weight.grad, tape)


def test_list_like() -> None:
    layers = [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)]
    net = nn.Sequential(*layers)
    assert len(net) == 3
    assert list(net) == layers
    assert net[-1] is layers[2]
    body = net[:2]
    assert isinstance(body, nn.Sequential)
    assert list(body) == layers[:2]
    assert body([[1.0, 2.0]]).shape == (1, 3)
    with pytest.raises(IndexError):
        net[3]


def test_none_at_all() -> None:
    net = nn.Sequential()
    assert net([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert net.backward([3.0, 4.0]).tolist() == [3.0, 4.0]
    assert net.parameters() == []


def test_a_subclass_that_holds_more() -> None:
    """Its own layers are found beside those of the sequence."""

    class Net(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(2, 3), nn.Tanh())
            self.head = nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.head(super().forward(x))

    net = Net()
    assert list(net.state_dict()) == ["0.weight", "0.bias", "head.weight", "head.bias"]
    net([[1.0, 2.0]]).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net([[1.0, 2.0]])
    assert net.backward([[1.0]]).shape == (1, 2)


@pytest.mark.parametrize("wrong", [[nn.ReLU()], np.tanh, "relu", nn.ReLU])
def test_what_is_no_layer(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="Sequential: argument 1 must be a Layer, got"):
        nn.Sequential(nn.ReLU(), wrong)


def test_repr() -> None:
    net = nn.Sequential(nn.Linear(2, 8), nn.Sequential(nn.Tanh(), nn.Linear(8, 1)))
    assert repr(net).splitlines() == [
        "Sequential(",
        "  (0): Linear(2, 8)  # 24 parameters",
        "  (1): Sequential(",
        "    (0): Tanh()",
        "    (1): Linear(8, 1)  # 9 parameters",
        "  )  # 9 parameters",
        ")  # 33 parameters",
    ]
