"""Layer: memory, threads, modes, moves to another backend, copies. Gradients are in test_layer.py."""

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Parameter, Tensor, nn
from gradcore.backend.numpy import NumpyBackend
from gradcore.backend.registry import register_backend
from gradcore.errors import BackendMismatch, GraphError


def network() -> nn.Sequential:
    gradcore.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(27, 4),
    )


def data(steps: int = 20) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal((8, 1, 6, 6)).astype(np.float32), rng.integers(0, 4, 8)) for _ in range(steps)]


def test_calling_many_times_without_backward_hoards_nothing() -> None:
    """Case 31's kind: what a layer remembers of a call is dropped at the next; the collector is off."""
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    nodes: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            y = net(np.ones((2, 3), np.float32))
            assert sum(ref() is not None for ref in nodes) == 0
            nodes.append(weakref.ref(y))
            del y
        del net
        assert all(ref() is None for ref in nodes)
    finally:
        gc.enable()


def test_training_hoards_nothing() -> None:
    """Case 31: 50 rounds with the collector off; no loss and no inner result outlives its round."""
    net, criterion = network(), nn.CrossEntropyLoss()
    optimizer = gradcore.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    images, labels = data(1)[0]
    gc.collect()
    gc.disable()
    try:
        for step in range(50):
            inner = net[:3](images)
            y = net(images)
            loss = criterion(y, labels)
            refs = [weakref.ref(t) for t in (inner, y, loss)]
            optimizer.zero_grad()
            if step % 2:
                loss.backward()
            else:
                net.backward(criterion.backward())
            optimizer.step()
            assert not optimizer.parameters[0].numpy().flags.writeable
            del inner, y, loss
            assert all(ref() is None for ref in refs)
    finally:
        gc.enable()


def test_values_changed_between_forward_and_backward() -> None:
    """Case 32: an optimizer step or copy_ in between is an error, never the gradient of the new weights."""
    layer = nn.Linear(1, 1, bias=False)
    optimizer = gradcore.optim.SGD(layer.parameters(), lr=0.1)
    x = Tensor([[3.0]], requires_grad=True)
    layer(x).sum().backward()
    for change in (optimizer.step, lambda: layer.weight.copy_(layer.weight.numpy() * 10)):
        y = layer(x).sum()
        change()
        with pytest.raises(GraphError, match=r"Linear: .*changed in place after the forward"):
            y.backward()
        layer(x)
        change()
        with pytest.raises(GraphError, match="changed in place"):
            layer.backward([[1.0]])


def test_four_threads() -> None:
    """Case 38: each with its own network and seed; the same bits as one after the other."""

    def run(seed: int, into: dict[int, Any]) -> None:
        with gradcore.use_backend(name):
            gradcore.manual_seed(seed)
            net, criterion = (
                nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 4)),
                nn.MSELoss(),
            )
            optimizer = gradcore.optim.Adam(net.parameters())
            rng = np.random.default_rng(seed)
            for _ in range(50):
                x = rng.standard_normal((4, 1, 6, 6)).astype(np.float32)
                criterion(net(x), np.ones((4, 4), np.float32))
                optimizer.zero_grad()
                net.backward(criterion.backward())
                optimizer.step()
            into[seed] = net.state_dict()

    name = gradcore.get_backend().name
    alone: dict[int, Any] = {}
    together: dict[int, Any] = {}
    for seed in range(4):
        run(seed, alone)
    threads = [threading.Thread(target=run, args=(seed, together)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_equal(together, alone)
    assert not np.array_equal(alone[0]["0.weight"], alone[1]["0.weight"])


def test_modes_reach_everything() -> None:
    net = network()
    assert net.eval() is net
    assert not any(layer.training for layer in net.layers())
    net[4].train()
    assert [layer.training for layer in net].count(True) == 1
    assert all(layer.training for layer in net.train().layers())


def test_zero_grad_also_with_frozen_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    net[0].weight.requires_grad_(False)
    net([[1.0, 2.0]]).sum().backward()
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


class Elsewhere(NumpyBackend):
    name = "elsewhere"


def test_moving_to_another_backend() -> None:
    """Parameters, gradients, buffers and counters; results stay the same; mixing is an error that names both."""
    with register_backend("elsewhere", lambda name: Elsewhere()):
        net, stays = network(), network()
        images, labels = data(1)[0]
        for each in (net, stays):
            nn.CrossEntropyLoss()(each(images), labels).backward()
        before = gradcore.optim.SGD(net.parameters(), lr=0.1)
        here = net.backend
        assert net.to("elsewhere") is net
        target = gradcore.get_backend("elsewhere")
        assert all(layer.backend is target for layer in net.layers())
        for p, other in zip(net.parameters(), stays.parameters(), strict=True):
            assert p.backend is p.grad.backend is target
            np.testing.assert_array_equal(p.grad, other.grad)
        assert net[4].counter.backend is target
        with pytest.raises(GraphError, match="call the layer first"):
            net.backward(np.zeros((8, 4), np.float32))
        with pytest.raises(BackendMismatch, match="make the optimizer after"):
            before.step()
        with pytest.raises(BackendMismatch, match=f"{here.name}.*elsewhere|elsewhere.*{here.name}"):
            net(Tensor(images))
        for each in (net, stays):
            each.zero_grad()
            nn.CrossEntropyLoss(backend=each.backend)(each(images), labels).backward()
            gradcore.optim.SGD(each.parameters(), lr=0.1).step()
        for name, value in net.state_dict().items():
            np.testing.assert_allclose(value, stays.state_dict()[name], rtol=1e-5, atol=1e-6)
        net(images)
        with pytest.raises(BackendMismatch, match=r"Sequential.backward: a gradient on backend"):
            net.backward(Tensor(np.zeros((8, 4), np.float32)))
        with pytest.raises(BackendMismatch, match="grad: on"):
            net[0].bias.grad = Tensor(np.zeros(3, np.float32))


def test_a_layer_without_parameters_moves_too() -> None:
    with register_backend("elsewhere", lambda name: Elsewhere()):
        layer = nn.ReLU().to("elsewhere")
        assert layer([1.0]).backend is gradcore.get_backend("elsewhere")


def test_where_a_layer_is_made() -> None:
    with register_backend("elsewhere", lambda name: Elsewhere()):
        target = gradcore.get_backend("elsewhere")
        for make in (
            lambda b: nn.Linear(1, 1, backend=b),
            lambda b: nn.Dropout(backend=b),
            lambda b: nn.Flatten(backend=b),
        ):
            assert make("elsewhere").backend is target
        gradcore.manual_seed(0)
        there = nn.Linear(3, 3, backend="elsewhere").state_dict()
        gradcore.manual_seed(0)
        np.testing.assert_equal(nn.Linear(3, 3).state_dict(), there)  # weights are drawn on the host


@pytest.mark.parametrize("when", ["new", "called", "trained"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies(duplicate: Any, when: str) -> None:
    """copy.deepcopy keeps the best network of a run: values and modes, no tape, shared parts still shared."""
    net = network()
    images, labels = data(1)[0]
    if when != "new":
        loss = nn.CrossEntropyLoss()(net(images), labels)
    if when == "trained":
        loss.backward()
        gradcore.optim.SGD(net.parameters(), lr=0.1).step()
    net[6].again = net[6].weight
    net.eval()
    twin = duplicate(net)
    np.testing.assert_equal(twin.state_dict(), net.state_dict())
    assert twin.backend is net.backend
    assert twin[2].backend is net[2].backend
    assert not twin[4].training
    assert twin[6].again is twin[6].weight
    with gradcore.no_grad():
        np.testing.assert_array_equal(twin(images), net(images))
    twin[6].bias.copy_(np.ones(4))
    assert net[6].bias.tolist() != [1.0] * 4
    twin.train()(images).sum().backward()
    assert all(p.grad is not None for p in twin.parameters())


def test_repr_of_a_layer_of_ones_own() -> None:
    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter([1.0])
            self.blocks = [nn.Linear(1, 2), nn.ReLU()]

    lines = ["Net(", "  (blocks.0): Linear(1, 2)  # 4 parameters", "  (blocks.1): ReLU()", ")  # 5 parameters"]
    assert repr(Net()).splitlines() == lines
