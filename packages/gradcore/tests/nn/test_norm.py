"""BatchNorm2d against PyTorch: outputs, gradients and running statistics, in training and in evaluation."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import nn
from gradcore.errors import ArgumentError, ShapeError


def spread(layer: nn.BatchNorm2d) -> nn.BatchNorm2d:
    """Weights and statistics that are not all ones and zeros."""
    rng = np.random.default_rng(2)
    for tensor in (layer.weight, layer.bias, layer.running_mean):
        tensor.copy_(rng.standard_normal(tensor.shape))
    layer.running_var.copy_(rng.uniform(0.5, 2.0, layer.running_var.shape))
    return layer


@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (5, 3, 1, 1), (1, 3, 4, 1), (8, 1, 3, 4)])
@pytest.mark.parametrize("options", [{}, {"eps": 1e-2, "momentum": 0.5}, {"momentum": 0.0}])
def test_training(like_torch: Any, close: Any, shape: Any, options: Any) -> None:
    torch = pytest.importorskip("torch")
    layer, twin = spread(nn.BatchNorm2d(shape[1], **options)), torch.nn.BatchNorm2d(shape[1], **options)
    like_torch(layer, twin, *shape)  # the layer is called twice by it, the twin once
    twin(torch.tensor(np.random.default_rng(1).uniform(-2, 2, shape), dtype=twin.weight.dtype))
    for name in ("running_mean", "running_var"):
        close(getattr(layer, name), getattr(twin, name).numpy(), name)
    assert layer.num_batches_tracked.item() == twin.num_batches_tracked.item() == 2


@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (1, 3, 1, 1), (0, 3, 2, 2)])
def test_evaluation(like_torch: Any, shape: Any) -> None:
    torch = pytest.importorskip("torch")
    layer = spread(nn.BatchNorm2d(3)).eval()
    before = layer.state_dict()
    like_torch(layer, torch.nn.BatchNorm2d(3).eval(), *shape)
    assert layer.num_batches_tracked.item() == 0
    np.testing.assert_allclose(layer.running_mean, before["running_mean"], rtol=1e-7)


def test_running_statistics_of_several_batches(cast: Any, close: Any, dtype: Any) -> None:
    """After 20 training batches, evaluation uses what they left, as PyTorch does."""
    torch = pytest.importorskip("torch")
    layer, twin = cast(nn.BatchNorm2d(2)), torch.nn.BatchNorm2d(2).to(getattr(torch, dtype.name))
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(3.0, 2.0, (6, 2, 3, 3)).astype(dtype)
        close(layer(x), twin(torch.tensor(x)).detach().numpy())
    close(layer.running_mean, twin.running_mean.numpy())
    close(layer.running_var, twin.running_var.numpy())
    close(layer.eval()(x), twin.eval()(torch.tensor(x)).detach().numpy())


def test_the_statistics_move_without_a_tape_too() -> None:
    layer = nn.BatchNorm2d(1)
    with gradcore.no_grad():
        layer(np.full((2, 1, 2, 2), 5.0, np.float32))
    assert layer.running_mean.tolist() == [0.5]
    assert layer.running_var.numpy() == pytest.approx([0.9])


def test_a_far_mean_does_not_spoil_the_variance(cast: Any, dtype: Any) -> None:
    """Two passes, not mean of squares minus square of mean: 10,000 plus or minus 1 in float32."""
    x = np.where(np.arange(64).reshape(4, 1, 4, 4) % 2, 10_001, 9_999).astype(dtype)
    y = cast(nn.BatchNorm2d(1))(x)
    np.testing.assert_allclose(y.abs(), 1.0, rtol=1e-4)


@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (0, 2, 3, 3)])
def test_too_little_to_normalise(shape: Any) -> None:
    """Case 24's kind: refused in training, before the running statistics change."""
    layer = nn.BatchNorm2d(2)
    with pytest.raises(ShapeError, match="batch_norm: training needs more than one value per channel"):
        layer(np.zeros(shape, np.float32))
    assert layer.running_mean.tolist() == [0.0, 0.0]
    assert layer.num_batches_tracked.item() == 0
    assert layer.eval()(np.zeros(shape, np.float32)).shape == shape


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 2, 4), (4,)])
def test_wrong_input(shape: Any) -> None:
    with pytest.raises(ShapeError, match=r"batch_norm: got input .* expected \(N, 2, H, W\)"):
        nn.BatchNorm2d(2)(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"channels": 0}, "channels"),
        ({"channels": 2.0}, "channels"),
        ({"eps": -1e-5}, "eps"),
        ({"momentum": float("nan")}, "momentum"),
        ({"momentum": None}, "momentum"),
    ],
)
def test_senseless_options(options: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"BatchNorm2d: {text}"):
        nn.BatchNorm2d(**{"channels": 2, **options})


def test_backward_after_the_statistics_changed() -> None:
    """Case 32: a training batch between forward and backward of an evaluation does not change the gradients."""
    x = np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2)
    grads = []
    for disturbed in (False, True):
        layer = nn.BatchNorm2d(1).eval()
        image = nn.Parameter(x)
        y = (layer(image) * x).sum()
        if disturbed:
            layer.train()(x)
        y.backward()
        grads.append([layer.weight.grad.tolist(), layer.bias.grad.tolist(), image.grad.tolist()])
    assert grads[0] == grads[1]


def test_names_and_repr() -> None:
    layer = nn.BatchNorm2d(3)
    names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert list(layer.state_dict()) == names
    assert layer.state_dict()["num_batches_tracked"].dtype == np.int64
    assert repr(layer) == "BatchNorm2d(3)  # 6 parameters"
