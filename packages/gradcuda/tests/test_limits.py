"""Sizes and precision (cases 4, 24, 57, 58): nothing, very much, more than a grid's y and z, and float32 is float32."""

from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, nn

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def current(backend: Any) -> Any:
    with gradcore.use_backend("cuda"):
        yield


def test_a_batch_of_none_then_a_product(backend: Any) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.AvgPool2d(3, stride=1), nn.Flatten(), nn.Linear(4, 5))
    x = Tensor(np.zeros((0, 3, 8, 8), np.float32), requires_grad=True)
    y = net(x)
    assert y.shape == (0, 5)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape
    for p in net.parameters():
        assert p.grad is not None
        np.testing.assert_array_equal(p.grad.numpy(), np.zeros(p.shape, np.float32))
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(
        backend.to_numpy(backend.matmul(*map(backend.asarray, (a, a.T)), False, False)), a @ a.T
    )


@pytest.mark.parametrize("shape", [(70_000, 1, 2, 2), (1, 70_000, 2, 2)], ids=str)
def test_more_planes_than_a_grid_has_rows(shape: tuple[int, ...]) -> None:
    host = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = Tensor(host, requires_grad=True)
    y = nn.MaxPool2d(2)(x)
    np.testing.assert_array_equal(y.numpy().ravel(), host.reshape(70_000, 4).max(1))
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.numpy().sum() == 70_000


def test_more_positions_than_a_grid_has_rows() -> None:
    net = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    net.weight.copy_(np.ones((1, 1, 3, 3), np.float32))
    y = net(Tensor(np.ones((1, 1, 256, 256), np.float32))).numpy()[0, 0]
    assert (y[0, 0], y[0, 1], y[1, 1], y[-1, -1]) == (4, 6, 9, 4)
    assert y.sum(dtype=np.float64) == 586_756


def test_a_large_batch_through_linear_and_loss() -> None:
    net = nn.Linear(3, 2)
    x = np.random.default_rng(0).standard_normal((70_000, 3)).astype(np.float32)
    labels = np.arange(70_000) % 2
    loss = nn.CrossEntropyLoss()(net(Tensor(x)), labels)
    loss.backward()
    logits = x.astype(np.float64) @ net.weight.numpy().astype(np.float64).T + net.bias.numpy()
    chosen = logits[np.arange(70_000), labels] - np.log(np.exp(logits).sum(1))
    assert loss.item() == pytest.approx(-chosen.mean(), rel=1e-5)
    assert net.bias.grad is not None
    assert np.isfinite(net.bias.grad.numpy()).all()


def test_beyond_two_to_the_31(backend: Any) -> None:
    count = 2**31 + 1000
    if backend.memory_statistics()["reserved"] > 0:
        backend.trim_memory()
    x = backend.full((count,), 1, np.uint8)
    assert int(backend.to_numpy(backend.sum(x, None, False))) == count
    y = backend.strided_slice(x, (count - 5,), (count,), (1,))
    np.testing.assert_array_equal(backend.to_numpy(y), np.ones(5, np.uint8))
    wide = backend.add(backend.reshape(x, (count, 1)), backend.full((1, 1), 2, np.uint8))
    np.testing.assert_array_equal(
        backend.to_numpy(backend.take(wide, backend.asarray(np.array([count - 1])), 0)), [[3]]
    )


def test_a_million_small_numbers(backend: Any) -> None:
    column = backend.full((1_000_000, 2), 0.1, np.float32)
    np.testing.assert_allclose(backend.to_numpy(backend.sum(column, (0,), False)), [100_000.0015] * 2, rtol=1e-4)
    np.testing.assert_allclose(backend.to_numpy(backend.sum_to(column, (2,))), [100_000.0015] * 2, rtol=1e-4)


def test_float32_is_float32(backend: Any) -> None:
    from gradcuda import cuda_backend

    row = np.full((1, 4096), 1 + 2.0**-12, np.float32)
    ones = np.ones((4096, 1), np.float32)

    def product(one: Any) -> float:
        return float(one.to_numpy(one.matmul(one.asarray(row), one.asarray(ones), False, False))[0, 0])

    assert product(backend) == pytest.approx(4097, abs=0.05)
    conv = (backend.asarray(row.reshape(1, 4096, 1, 1)), backend.asarray(ones.reshape(1, 4096, 1, 1)))
    y = backend.conv2d(*conv, None, (1, 1), (0, 0), (1, 1), 1)
    assert float(backend.to_numpy(y).item()) == pytest.approx(4097, abs=0.05)
    wide = [np.full((256, 4096), 1 + 2.0**-12, np.float32), np.ones((4096, 256), np.float32)]
    for precision, expected in (("float32", 4097.0), ("tf32", 4096.0)):
        one = cuda_backend(precision=precision)
        got = one.to_numpy(one.matmul(*map(one.asarray, wide), False, False))
        np.testing.assert_allclose(got, expected, atol=0.05)


@pytest.mark.parametrize(
    "shapes", [((5, 3, 4), (4, 6)), ((2, 1, 3, 4), (5, 4, 6)), ((4, 1, 2, 3), (1, 5, 3, 2))], ids=str
)
def test_batched_products(backend: Any, shapes: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    for ta in (False, True):
        for tb in (False, True):
            left, right = (np.ascontiguousarray(m.swapaxes(-1, -2)) if t else m for m, t in ((a, ta), (b, tb)))
            got = backend.to_numpy(backend.matmul(backend.asarray(left), backend.asarray(right), ta, tb))
            np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-5)


def test_embedding_gradient(backend: Any) -> None:
    """take_backward with many picks of the same rows: like NumPy's add.at in float64, the same bits each time."""
    rng = np.random.default_rng(0)
    for rows, picks, width in ((1000, 20_000, 64), (10, 50_000, 1), (3, 1_000_000, 2)):
        indices, grad = rng.integers(0, rows, picks), rng.random((picks, width), np.float32)
        wanted = np.zeros((rows, width))
        np.add.at(wanted, indices, grad)
        args = (backend.asarray(grad), backend.asarray(indices), 0, rows)
        first = backend.to_numpy(backend.take_backward(*args))
        np.testing.assert_allclose(first, wanted, rtol=1e-5)
        assert first.tobytes() == backend.to_numpy(backend.take_backward(*args)).tobytes()
