"""Layer: the classic interface and the tape are one mechanism; inputs, subclasses, misuse."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Parameter, Tensor, nn
from gradcore.errors import GraphError, ShapeError


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


def grads(layer: nn.Layer) -> list[np.ndarray]:
    return [p.grad.numpy() for p in layer.parameters()]


def train(way: str) -> dict[str, np.ndarray]:
    """The state after 20 steps of one of the ways to write the loop."""
    net, criterion = network(), nn.CrossEntropyLoss()
    optimizer = gradcore.optim.Adam(net.parameters(), lr=0.01)
    for images, labels in data():
        optimizer.zero_grad()
        if way == "each layer by hand":
            x: Any = images
            for layer in net:
                x = layer.forward(x)
            criterion.forward(x, labels)
            grad = criterion.backward()
            for layer in reversed(list(net)):
                grad = layer.backward(grad)
        else:
            loss = criterion(net(images), labels)
            if way == "classic":
                net.backward(criterion.backward())
            else:
                loss.backward()
        optimizer.step()
    return net.state_dict()


@pytest.mark.parametrize("way", ["classic", "each layer by hand"])
def test_every_loop_trains_to_the_same_bits(way: str) -> None:
    """20 steps with batch norm and dropout: equal weights and running statistics, bit for bit."""
    np.testing.assert_equal(train(way), train("tape"))


def test_five_ways_to_the_same_gradients(cast: Any, dtype: Any) -> None:
    """layer(x), layer.forward(x), the whole net, a reversed loop, and loss.backward."""
    net = cast(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Sigmoid()))
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(dtype)
    upstream = np.random.default_rng(1).standard_normal((5, 2)).astype(dtype)
    results = []
    for way in ("call", "forward", "loop", "inner loop", "tape"):
        net.zero_grad()
        image = Tensor(x, requires_grad=True)
        if way == "tape":
            (net(image) * upstream).sum().backward()
            grad = image.grad
        elif way in ("call", "forward"):
            net(image) if way == "call" else net.forward(image)
            grad = net.backward(upstream)
            assert image.grad is None  # returned, not added
        else:
            if way == "inner loop":
                net(image)
            else:
                y: Any = image
                for layer in net:
                    y = layer(y)
            grad = upstream
            for layer in reversed(list(net)):
                grad = layer.backward(grad)
        results.append([np.array(grad), *grads(net)])
    for other in results[1:]:
        for ours, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_backward_adds_up() -> None:
    """As .grad does everywhere: a second forward and backward without zeroing doubles (case 28)."""
    layer = nn.Linear(2, 1)
    for times in (1, 2):
        layer([[1.0, 2.0]])
        layer.backward([[1.0]])
        assert layer.weight.grad.tolist() == [[1.0 * times, 2.0 * times]]


def test_backward_needs_a_call_first() -> None:
    layer = nn.Linear(2, 1)
    with pytest.raises(GraphError, match=r"Linear.backward: call the layer first"):
        layer.backward([[1.0]])
    layer([[1.0, 2.0]])
    layer.backward([[1.0]])
    with pytest.raises(GraphError, match="freed"):
        layer.backward([[1.0]])
    layer([[1.0, 2.0]])
    layer.backward([[1.0]], retain_graph=True)
    layer.backward([[1.0]])
    assert layer.bias.grad.tolist() == [3.0]


@pytest.mark.parametrize("grad", [[1.0], [[1.0, 1.0]], [[1.0], [1.0]], None])
def test_backward_checks_the_shape(grad: Any) -> None:
    layer = nn.Linear(2, 1)
    layer(np.zeros((3, 2), np.float32))
    with pytest.raises(ShapeError, match=r"Linear.backward: "):
        layer.backward(grad)
    assert layer.backward([[1.0]] * 3).shape == (3, 2)


def test_layers_inside_no_grad() -> None:
    """Case 29: no tape inside, also none left of an earlier call; the next call records again."""
    layer = nn.Linear(2, 1)
    layer([[1.0, 2.0]])
    with gradcore.no_grad():
        y = layer([[1.0, 2.0]])
    assert not y.requires_grad
    with pytest.raises(GraphError, match="outside no_grad"):
        layer.backward([[1.0]])
    layer([[1.0, 2.0]])
    assert layer.backward([[1.0]]).shape == (1, 2)


def test_a_frozen_part_inside_a_layer() -> None:
    class Frozen(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            with gradcore.no_grad():
                features = self.body(x)
            return self.head(features)

    layer = Frozen()
    layer([[1.0, 2.0]])
    assert layer.backward([[1.0]]) is None
    assert layer.body.weight.grad is None
    assert layer.head.bias.grad.tolist() == [1.0]


def test_a_layer_used_twice_in_a_forward(dtype: Any) -> None:
    layer = nn.Linear(1, 1, bias=False)
    layer.weight = Parameter(np.array([[3.0]], dtype))
    x = Tensor(np.array([[2.0]], dtype), requires_grad=True)
    layer(layer(x)).sum().backward()
    assert layer.weight.grad.item() == 12.0  # d(w*w*x)/dw
    assert x.grad.item() == 9.0


def test_a_layer_whose_output_is_its_input() -> None:
    class Same(nn.Layer):
        def forward(self, x: Any) -> Any:
            return x

    for layer in (Same(), nn.Dropout().eval(), nn.Dropout(0.0), nn.Sequential(Same(), Same())):
        layer([1.0, 2.0])
        assert layer.backward([3.0, 4.0]).tolist() == [3.0, 4.0]
        net = nn.Sequential(nn.Linear(2, 2), layer, nn.Linear(2, 1))
        y = net([[1.0, 2.0]])
        tape = gradcore.grad(y.sum(), net.parameters(), retain_graph=True)
        net.backward([[1.0]])
        for ours, theirs in zip(grads(net), tape, strict=True):
            np.testing.assert_array_equal(ours, theirs)


class Bilinear(nn.Layer):
    """Two inputs and an option."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = Parameter([2.0])

    def forward(self, a: Any, b: Any, scale: float = 1.0) -> Any:
        return a * b * self.factor * scale


@pytest.mark.parametrize("call", [
    lambda layer: layer([3.0], [5.0], 10.0),
    lambda layer: layer([3.0], [5.0], scale=10.0),
    lambda layer: layer([3.0], b=[5.0], scale=10.0),
    lambda layer: layer(scale=10.0, b=np.array([5.0], np.float32), a=Tensor([3.0])),
])  # fmt: skip
def test_several_inputs(call: Any) -> None:
    """A tuple of gradients in the order of the inputs, however they were passed."""
    layer = Bilinear()
    assert call(layer).tolist() == [300.0]
    assert [g.tolist() for g in layer.backward([1.0])] == [[100.0], [60.0]]
    assert layer.factor.grad.tolist() == [150.0]


def test_an_input_that_does_not_matter() -> None:
    class First(nn.Layer):
        def forward(self, a: Any, b: Any) -> Any:
            return a * 2.0

    layer = First()
    layer([1.0], [1.0])
    first, second = layer.backward([1.0])
    assert first.tolist() == [2.0]
    assert second is None


def test_a_subclass_without_super_init() -> None:
    """Forgotten super().__init__(): works, on the backend that is current when it is needed."""

    class Forgetful(nn.Layer):
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    class Bare(nn.Layer):
        def __init__(self) -> None:
            self.power = 2.0

        def forward(self, x: Any) -> Any:
            return x**self.power

    layer = nn.Sequential(Forgetful(), Bare())
    layer.eval().train()
    layer([[1.0, 2.0]]).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    bare = Bare()
    assert bare([3.0]).tolist() == [9.0]
    assert bare.backward([1.0]).tolist() == [6.0]
    assert "Bare()" in repr(layer)


def test_a_subclass_that_calls_super_forward() -> None:
    """The border is that of the outer forward."""

    class Shifted(nn.Linear):
        def forward(self, x: Any) -> Any:
            return super().forward(x * 3.0) * 2.0

    layer = Shifted(2, 1)
    y = layer([[1.0, 2.0]])
    expected = gradcore.grad(y.sum(), layer.parameters(), retain_graph=True)
    assert (layer.weight.numpy() * 6.0).tolist() == layer.backward([[1.0]]).tolist()
    for ours, theirs in zip(grads(layer), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_result_that_is_no_tensor() -> None:
    """backward has nothing to start from, and must not start from what super().forward returned."""

    class Pair(nn.Linear):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            return y, y.relu()

    layer = Pair(2, 1)
    y, positive = layer([[1.0, 2.0]])
    with pytest.raises(GraphError, match=r"Pair.backward: call the layer first, .* one tensor as its result"):
        layer.backward([[1.0]])
    (y + positive).sum().backward()
    assert layer.weight.grad is not None


def test_a_layer_without_forward() -> None:
    with pytest.raises(NotImplementedError, match="Empty has no forward"):
        type("Empty", (nn.Layer,), {})()([1.0])


def test_errors_name_the_operation() -> None:
    net = network()
    with pytest.raises(ShapeError, match=r"conv2d: .*\(8, 2, 6, 6\)"):
        net(np.zeros((8, 2, 6, 6), np.float32))
    with pytest.raises(ShapeError, match=r"linear: .*\(8, 48\)"):
        net(np.zeros((8, 1, 8, 8), np.float32))
    assert net(np.zeros((8, 1, 6, 6), np.float32)).shape == (8, 4)
