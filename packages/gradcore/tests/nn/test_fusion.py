"""The peephole of Sequential: what it fuses, that values and gradients stay, and what a fused layer cannot do."""

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, nn
from gradcore.errors import DTypeError, GraphError, ShapeError
from gradcore.nn.fusion import PATTERNS


def network(fuse: bool = True) -> nn.Sequential:
    gradcore.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 8),
        nn.ReLU(),
        nn.Linear(8, 3),
        fuse=fuse,
    )


def images(count: int = 2) -> np.ndarray:
    return np.random.default_rng(1).random((count, 1, 8, 8)).astype(np.float32)


def functions(y: Tensor) -> list[str]:
    """The names of the Functions on the tape, the last first."""
    names, stack = [], [y._node]
    while stack:
        node = stack.pop()
        if node is not None and hasattr(node, "number"):
            names.append(repr(node))
            stack.extend(node.inputs)
    return names


def test_what_is_fused(backend_name: str) -> None:
    with gradcore.use_backend(backend_name):
        fused, plain = functions(network()(images())), functions(network(fuse=False)(images()))
    assert fused == ["Linear", "LinearReLU", "Reshape", "Conv2dReLUMaxPool2d", "LayerInput"]
    assert plain == ["Linear", "ReLU", "Linear", "Reshape", "MaxPool2d", "ReLU", "Conv2d", "LayerInput"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_gradients_are_the_plain_networks(backend_name: str, dtype: str) -> None:
    results = []
    with gradcore.use_backend(backend_name):
        for fuse in (True, False):
            model = network(fuse).astype(dtype)
            y = model(images().astype(dtype))
            grad = model.backward(np.ones(y.shape, dtype))
            results.append([y.numpy(), grad.numpy(), *(p.grad.numpy() for p in model.parameters())])
    for fused, plain in zip(*results, strict=True):
        assert fused.dtype == dtype
        np.testing.assert_allclose(fused, plain, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)


def test_only_exact_types_match() -> None:
    class Leaky(nn.ReLU):
        def forward(self, x: Tensor) -> Tensor:
            return x.relu() - 0.1 * (-x).relu()

    gradcore.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Leaky())
    assert "LinearReLU" not in functions(model(np.ones((2, 3), np.float32)))
    assert float(model(-np.ones((64, 3), np.float32)).min()) < 0.0


def test_layers_called_one_by_one_are_never_fused() -> None:
    model = network()
    x = Tensor(images())
    for layer in model:
        x = layer(x)
    assert not any("ReLUMaxPool" in name or name == "LinearReLU" for name in functions(x))


@pytest.mark.parametrize("index", [0, 1, 2, 4, 5])
def test_backward_of_a_layer_that_was_fused_away(index: int) -> None:
    model = network()
    model(images())
    with pytest.raises(GraphError, match=r"fused with its neighbours: build Sequential\(\.\.\., fuse=False\)"):
        model[index].backward(np.ones(1, np.float32))
    model.backward(np.ones((2, 3), np.float32))  # the whole network's works all the same


def test_a_fused_layer_called_alone_is_itself_again() -> None:
    layer = nn.Linear(3, 4)
    model = nn.Sequential(layer, nn.ReLU())
    model(np.ones((2, 3), np.float32))
    layer(np.ones((2, 3), np.float32))
    assert layer.backward(np.ones((2, 4), np.float32)).shape == (2, 3)


def test_reversed_loop_over_the_layers_without_fusion() -> None:
    model = network(fuse=False)
    y = model(images())
    grad = np.ones(y.shape, np.float32)
    whole = network(fuse=False)
    whole(images())
    expected = whole.backward(grad)
    for layer in reversed(list(model)):
        grad = layer.backward(grad)
    np.testing.assert_array_equal(grad.numpy(), expected.numpy())


def test_options_are_read_at_each_call() -> None:
    model = network()
    model[2].kernel_size = model[2].stride = (4, 4)
    with pytest.raises(ShapeError, match="linear"):
        model(images())


def test_errors_name_the_plain_operations() -> None:
    model = network()
    with pytest.raises(ShapeError, match=r"conv2d: got input \(2, 3, 8, 8\)"):
        model(np.ones((2, 3, 8, 8), np.float32))
    with pytest.raises(DTypeError, match="float64"):
        model(images().astype(np.float64))
    with pytest.raises(ShapeError, match="max_pool2d: kernel 9x9 is larger"):
        nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.ReLU(), nn.MaxPool2d(9))(images())


def test_nan_and_infinities_as_in_the_plain_network(backend_name: str) -> None:
    x = images()
    x[0, 0, 1, 1], x[1, 0, 4, 4] = np.nan, np.inf
    with gradcore.use_backend(backend_name):
        fused, plain = network()[:3](x).numpy(), network(fuse=False)[:3](x).numpy()
    np.testing.assert_array_equal(np.isnan(fused), np.isnan(plain))
    np.testing.assert_array_equal(np.isinf(fused), np.isinf(plain))


def test_integer_images_and_evaluation() -> None:
    model = network().eval()
    bytes_in = (images() * 255).astype(np.uint8)
    with gradcore.no_grad():
        y = model(bytes_in)
    np.testing.assert_allclose(y.numpy(), model(bytes_in.astype(np.float32)).numpy(), rtol=1e-6)
    assert not y.requires_grad


def test_a_slice_keeps_the_choice() -> None:
    assert network(fuse=False)[:3].fuse is False


def test_patterns_stand_longest_first() -> None:
    lengths = [len(pattern) for pattern, _ in PATTERNS]
    assert lengths == sorted(lengths, reverse=True)
