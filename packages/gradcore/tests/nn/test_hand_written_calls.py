"""Layers with a backward of their own: calls, subclasses, losses, options, misuse. See test_hand_written.py too."""

import copy
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Parameter, Tensor, nn
from gradcore.errors import DTypeError, GraphError, ShapeError
from gradcore.nn import accumulate_grad

X = np.random.default_rng(9).standard_normal((5, 3))


class HandLinear(nn.Layer):
    """Linear as an exercise has it: what backward needs is kept in attributes."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        rng = np.random.default_rng(inputs)
        self.weight = Parameter(rng.standard_normal((outputs, inputs)).astype(np.float32))
        self.bias = Parameter(rng.standard_normal(outputs).astype(np.float32))

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, grad_output: Any) -> Any:
        accumulate_grad(self.weight, grad_output.T @ self.x)
        accumulate_grad(self.bias, grad_output.sum(0))
        return grad_output @ self.weight


class HandTanh(nn.Layer):
    """No parameters."""

    def forward(self, x: Any) -> Any:
        self.y = x.tanh()
        return self.y

    def backward(self, grad_output: Any) -> Any:
        return grad_output * (1.0 - self.y * self.y)


def test_called_twice_is_an_error() -> None:
    """Attributes remember one call; silently using the second's values would be a wrong gradient."""
    layer = HandTanh()
    x = Tensor([1.0], requires_grad=True)
    y = layer(x) + layer(x * 2.0)
    with pytest.raises(GraphError, match="HandTanh: a hand-written backward remembers only the last call"):
        y.backward()
    layer(x).backward()
    assert x.grad.item() == pytest.approx(1 - np.tanh(1.0) ** 2)


def test_called_again_inside_no_grad_is_an_error_too() -> None:
    """An evaluation between forward and backward overwrites the attributes just the same."""
    layer = HandTanh()
    y = layer(Tensor([1.0], requires_grad=True))
    with gradcore.no_grad():
        layer(Tensor([5.0]))
    with pytest.raises(GraphError, match="called again since"):
        y.backward()


def test_parameters_changed_in_between() -> None:
    """Case 32."""
    layer = HandLinear(1, 1)
    y = layer([[1.0]])
    layer.weight.copy_([[9.0]])
    with pytest.raises(GraphError, match=r"HandLinear: .*changed in place"):
        y.sum().backward()


def test_a_library_layer_with_another_backward() -> None:
    """A subclass that overrides only backward: here, gradients clipped on their way."""

    class Clipped(nn.Linear):
        def forward(self, x: Any) -> Any:
            self.x = x
            return super().forward(x)

        def backward(self, grad_output: Any) -> Any:
            accumulate_grad(self.weight, grad_output.T @ self.x)
            return (grad_output @ self.weight) * 0.0 + 7.0

    class Straight(nn.ReLU):
        def backward(self, grad_output: Any) -> Any:
            return grad_output

    net = nn.Sequential(nn.Linear(2, 2), Clipped(2, 3, bias=False), Straight())
    assert net([[1.0, 2.0]]).shape == (1, 3)
    net.backward([[-1.0, -1.0, -1.0]])
    assert net[0].bias.grad.tolist() == [7.0, 7.0]
    assert net[1].weight.grad.shape == (3, 2)


def test_super_backward_is_a_clear_error() -> None:
    class Logged(nn.Linear):
        def backward(self, grad_output: Any) -> Any:
            return super().backward(grad_output)

    layer = Logged(1, 1)
    layer([[1.0]])
    with pytest.raises(GraphError, match=r"Logged.backward: .*no super.*backward"):
        layer.backward([[1.0]])


def test_a_subclass_of_a_hand_written_layer() -> None:
    class Doubled(HandLinear):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2.0

        def backward(self, grad_output: Any) -> Any:
            return super().backward(grad_output * 2.0)

    layer = Doubled(2, 1)
    for call in (lambda: layer(Tensor([[1.0, 2.0]])).sum().backward(), lambda: layer.backward([[1.0]])):
        layer.zero_grad()
        call()
        assert layer.bias.grad.tolist() == [2.0]
        assert layer.weight.grad.tolist() == [[2.0, 4.0]]


class HandLoss(nn.Loss):
    """A loss by hand: only the prediction has a gradient; the labels arrive as they were given."""

    def forward(self, logits: Any, labels: Any) -> Any:
        self.probabilities, self.labels = logits.softmax(), np.asarray(labels)
        assert self.labels.dtype.kind == "i"
        chosen = self.probabilities.numpy()[np.arange(len(self.labels)), self.labels]
        return Tensor(-np.log(chosen).mean())

    def backward(self, grad_output: Any) -> Any:
        one_hot = np.eye(self.probabilities.shape[1], dtype=np.float32)[self.labels]
        return (self.probabilities - one_hot) * (grad_output.item() / len(self.labels))


def test_a_loss_by_hand() -> None:
    """criterion.backward() starts from 1, as the library's losses do."""
    net, labels = nn.Linear(3, 4), np.array([0, 3])
    x = X[:2].astype(np.float32)
    nn.CrossEntropyLoss()(net(x), labels).backward()
    expected = net.weight.grad.numpy()
    criterion = HandLoss()
    for way in ("classic", "tape"):
        net.zero_grad()
        loss = criterion(net(x), labels)
        if way == "tape":
            loss.backward()
        else:
            net.backward(criterion.backward())
        np.testing.assert_allclose(net.weight.grad, expected, rtol=1e-5, atol=1e-6)


def test_options_and_integers_pass_as_they_are() -> None:
    class Pick(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter([2.0])

        def forward(self, x: Any, index: Any, mode: str, *, times: float = 1.0) -> Any:
            assert mode == "plain"
            assert index.dtype == np.int64
            self.index, self.times, self.x = index, times, x
            return x * self.scale * times

        def backward(self, grad_output: Any) -> Any:
            accumulate_grad(self.scale, (grad_output * self.x).sum((0,), True) * self.times)
            return grad_output * self.scale * self.times, None, None

    layer = Pick()
    x = Tensor([3.0], requires_grad=True)
    for call in (
        lambda: layer(x, np.array([1]), "plain", times=5.0),
        lambda: layer(x, mode="plain", index=np.array([1]), times=5.0),
    ):
        x.grad = None
        layer.zero_grad()
        call().sum().backward()
        assert x.grad.tolist() == [10.0]
        assert layer.scale.grad.tolist() == [15.0]


def test_frozen_parameters() -> None:
    layer = HandLinear(2, 1)
    layer.weight.requires_grad_(False)
    layer([[1.0, 2.0]]).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad.tolist() == [1.0]


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda g: (g, g), ShapeError, "Wrong.backward: returned 2 gradients for 1 inputs"),
        (lambda g: g.sum(), ShapeError, r"Wrong: backward returned shape \(\) for operand 0 of shape \(2,\)"),
        (lambda g: np.zeros(2), DTypeError, "Wrong.backward: returned a gradient of float64, expected float32"),
    ],
)
def test_wrong_gradients(result: Any, error: Any, text: str) -> None:
    """Convention "custom op returns wrong gradient shape": an error, never a silent sum."""

    class Wrong(nn.Layer):
        def forward(self, x: Any) -> Any:
            return x * 1.0

        def backward(self, grad_output: Any) -> Any:
            return result(grad_output)

    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(error, match=text):
        Wrong()(x).sum().backward()
    (x * 1.0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_result_that_is_no_tensor() -> None:
    class Wrong(HandTanh):
        def forward(self, x: Any) -> Any:
            return x.numpy()

    with pytest.raises(GraphError, match=r"Wrong: .* must return one Tensor, got ndarray"):
        Wrong()(Tensor([1.0], requires_grad=True))


def test_no_gradient_of_the_input() -> None:
    class Stop(nn.Layer):
        def forward(self, x: Any) -> Any:
            return x * 1.0

        def backward(self, grad_output: Any) -> None:
            return None

    x = Tensor([1.0], requires_grad=True)
    (Stop()(x) + x).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_an_exception_leaves_gradients_and_recording_as_they_were() -> None:
    """Case 29: in a custom backward, too."""

    class Broken(HandLinear):
        def backward(self, grad_output: Any) -> Any:
            raise KeyboardInterrupt

    layer = Broken(2, 1)
    layer.bias.grad = [5.0]
    with pytest.raises(KeyboardInterrupt):
        layer([[1.0, 2.0]]).sum().backward()
    assert layer.bias.grad.tolist() == [5.0]
    assert (layer.bias * 2.0).requires_grad


def test_a_direct_backward_records_nothing() -> None:
    layer = HandLinear(2, 1)
    layer([[1.0, 2.0]])
    assert not layer.backward([[1.0]]).requires_grad
    assert not layer.weight.grad.requires_grad


def test_copies_and_names() -> None:
    net = nn.Sequential(HandLinear(3, 2), HandTanh())
    net(X.astype(np.float32)).sum().backward()
    twin_net = copy.deepcopy(net)
    assert list(twin_net.state_dict()) == ["0.weight", "0.bias"]
    assert repr(net[0](np.ones((1, 3), np.float32))).endswith("from=HandLinear)")
    twin_net(X.astype(np.float32)).sum().backward()
    assert twin_net[0].weight.grad.shape == (2, 3)


def test_without_super_init() -> None:
    class Forgetful(nn.Layer):
        def __init__(self) -> None:
            self.factor = Parameter([3.0])

        def forward(self, x: Any) -> Any:
            self.x = x
            return x * self.factor

        def backward(self, grad_output: Any) -> Any:
            accumulate_grad(self.factor, (grad_output * self.x).sum((0,), True))
            return grad_output * self.factor

    layer = Forgetful()
    layer([2.0]).sum().backward()
    assert layer.factor.grad.tolist() == [2.0]
    assert layer.backward([1.0]).tolist() == [3.0]
