"""Layers with a backward of their own among layers that live on the tape."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Parameter, Tensor, nn
from gradcore.nn import accumulate_grad


class HandLinear(nn.Layer):
    """Linear as an exercise has it: what backward needs is kept in attributes."""

    def __init__(self, inputs: int, outputs: int, dtype: Any = np.float32) -> None:
        super().__init__()
        rng = np.random.default_rng(inputs)
        self.weight = Parameter(rng.standard_normal((outputs, inputs)).astype(dtype))
        self.bias = Parameter(rng.standard_normal(outputs).astype(dtype))

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


def twin(layer: Any) -> nn.Layer:
    """The same layer from the library, sharing nothing."""
    if isinstance(layer, HandTanh):
        return nn.Tanh()
    made = nn.Linear(*reversed(layer.weight.shape))
    made.weight, made.bias = Parameter(layer.weight), Parameter(layer.bias)
    return made


X = np.random.default_rng(9).standard_normal((5, 3))
UP = np.random.default_rng(8).standard_normal((5, 2))


def mixtures(dtype: Any) -> dict[str, list[nn.Layer]]:
    first, last = HandLinear(3, 4, dtype), HandLinear(4, 2, dtype)
    return {
        "all": [first, HandTanh(), last],
        "first": [first, nn.Tanh(), twin(last)],
        "middle": [twin(first), HandTanh(), twin(last)],
        "last": [twin(first), nn.Tanh(), last],
        "no parameters first": [HandTanh(), twin(first), twin(last)],
    }


@pytest.mark.parametrize("place", ["all", "first", "middle", "last", "no parameters first"])
@pytest.mark.parametrize("way", ["tape", "whole net", "reversed loop", "grad"])
def test_among_tape_layers(place: str, way: str, close: Any, dtype: Any) -> None:
    """The same gradients as the library's layers, whichever way they are asked for."""
    layers = mixtures(dtype)[place]
    net = nn.Sequential(*layers)
    plain = nn.Sequential(*[twin(m) if isinstance(m, HandLinear | HandTanh) else m for m in layers])
    x, up = Tensor(X.astype(dtype), requires_grad=True), UP.astype(dtype)
    expected = gradcore.grad((plain(x) * up).sum(), [x, *plain.parameters()])
    net.zero_grad()
    y = net(x)
    if way == "grad":
        got = gradcore.grad((y * up).sum(), [x, *net.parameters()])
        assert all(p.grad is None for p in net.parameters())
    else:
        if way == "tape":
            (y * up).sum().backward()
            input_grad: Any = x.grad
        elif way == "whole net":
            input_grad = net.backward(up)
        else:
            input_grad = up
            for layer in reversed(layers):
                input_grad = layer.backward(input_grad)
        got = [input_grad, *[p.grad for p in net.parameters()]]
    for ours, theirs in zip(got, expected, strict=True):
        close(ours, theirs)


def test_gradients_add_to_what_is_there() -> None:
    """The engine sees the call's own contribution, the user the sum."""
    layer = HandLinear(2, 1)
    for times in (1.0, 2.0):
        layer([[1.0, 2.0]]).sum().backward()
        assert layer.bias.grad.tolist() == [times]
    layer([[1.0, 2.0]])
    layer.backward([[1.0]])
    assert layer.bias.grad.tolist() == [3.0]


def test_a_parameter_shared_with_a_tape_layer(close: Any, dtype: Any) -> None:
    hand, tape = HandLinear(3, 3, dtype), nn.Linear(3, 3)
    tape.weight, tape.bias = hand.weight, hand.bias
    plain = twin(hand)
    x = X.astype(dtype)
    expected = gradcore.grad(plain(plain(x)).sum(), plain.parameters())
    for net in (nn.Sequential(hand, tape), nn.Sequential(tape, hand)):
        net.zero_grad()
        net(x).sum().backward()
        for parameter, other in zip(net.parameters(), expected, strict=True):
            close(parameter.grad, other)


class Residual(nn.Layer):
    """A parent with a backward of its own, which calls its children's: the classic interface, nested."""

    def __init__(self, *layers: nn.Layer) -> None:
        super().__init__()
        self.body = list(layers)

    def forward(self, x: Any) -> Any:
        y = x
        for layer in self.body:
            y = layer(y)
        return x + y

    def backward(self, grad_output: Any) -> Any:
        grad = grad_output
        for layer in reversed(self.body):
            grad = layer.backward(grad)
        return grad_output + grad


@pytest.mark.parametrize("hand", [False, True])
@pytest.mark.parametrize("way", ["tape", "classic"])
def test_nested(hand: bool, way: str, close: Any, dtype: Any) -> None:
    inner = HandLinear(3, 3, dtype)
    net = nn.Sequential(HandTanh(), Residual(inner if hand else twin(inner), nn.Tanh()), HandLinear(3, 2, dtype))
    plain = [twin(inner), twin(net[2])]
    x, up = Tensor(X.astype(dtype), requires_grad=True), UP.astype(dtype)
    start = x.tanh()
    expected = gradcore.grad(
        (plain[1](start + plain[0](start).tanh()) * up).sum(), [x, *plain[0].parameters(), *plain[1].parameters()]
    )
    y = net(x)
    if way == "tape":
        (y * up).sum().backward()
    else:
        x.grad = net.backward(up)
    for ours, theirs in zip([x.grad, *[p.grad for p in net.parameters()]], expected, strict=True):
        close(ours, theirs)


def test_nothing_is_hoarded() -> None:
    """Case 31, with the collector off."""
    net = nn.Sequential(HandLinear(3, 3), Residual(nn.Linear(3, 3)), HandTanh())
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            y = net(np.ones((2, 3), np.float32))
            loss = y.sum()
            refs = [weakref.ref(y), weakref.ref(loss)]
            loss.backward()
            del loss, y
            net(np.zeros((2, 3), np.float32))
            assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()
