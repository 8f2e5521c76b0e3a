"""BaseBackend's compositions against the overrides of the numpy backend, and what a backend may leave out."""

from collections.abc import Callable

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, nn, ops, optim
from gradcore.backend.base import BaseBackend
from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import ArgumentError, NotSupported

OVERRIDES = sorted(
    name for name in vars(NumpyBackend) if name in vars(BaseBackend) and callable(getattr(NumpyBackend, name))
)
Composed = type(
    "Composed", (NumpyBackend,), {"name": "composed"} | {name: vars(BaseBackend)[name] for name in OVERRIDES}
)
numpy, composed = NumpyBackend(), Composed()


def test_the_composed_backend_is_one() -> None:
    """Or the tests below would compare a method with itself."""
    assert {"softmax_cross_entropy", "adam_", "log_softmax"} <= set(OVERRIDES)
    for name in OVERRIDES:
        assert getattr(Composed, name) is vars(BaseBackend)[name]


def close(a: object, b: object, kind: str) -> None:
    np.testing.assert_allclose(
        a, b, **({"rtol": 1e-5, "atol": 1e-6} if kind == "float32" else {"rtol": 1e-12, "atol": 1e-14})
    )


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("labels", [[0, 2, 1], [2, -100, 2], [-100, -100, -100], []], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("integer", ["int32", "int64"])
def test_cross_entropy(kind: str, labels: list, reduction: str, integer: str) -> None:
    """Cases 1 and 3."""
    logits = np.random.default_rng(0).normal(size=(len(labels), 3)).astype(kind)
    if len(labels):
        logits[0] = [1e4, -np.inf, 0]
    found = [b.softmax_cross_entropy(logits, np.array(labels, integer), -100, reduction) for b in (numpy, composed)]
    for (loss, log_probs), (loss2, log_probs2) in [found]:
        assert loss.dtype == loss2.dtype == kind
        assert np.shape(loss) == np.shape(loss2)
        close(loss, loss2, kind)
        close(log_probs, log_probs2, kind)
    grad = np.ones(np.shape(found[0][0]), kind)
    backward = [
        b.softmax_cross_entropy_backward(grad, found[0][1], np.array(labels, integer), -100, reduction)
        for b in (numpy, composed)
    ]
    assert backward[0].dtype == kind
    close(*backward, kind)


@pytest.mark.parametrize("axis", [0, 1])
def test_log_softmax(axis: int) -> None:
    x = np.array([[1e4, 0, -1e4], [1, 2, 3]])
    close(numpy.log_softmax(x, axis), composed.log_softmax(x, axis), "float64")


@pytest.mark.parametrize("name", ["softmax_cross_entropy", "softmax_cross_entropy, composed"])
@pytest.mark.parametrize("label", [3, -1])
def test_labels_are_checked(name: str, label: int) -> None:
    """Case 3."""
    back = composed if "composed" in name else numpy
    with pytest.raises(ArgumentError, match=f"cross_entropy: label {label} is not one of 0..2"):
        back.softmax_cross_entropy(np.zeros((2, 3)), np.array([0, label]), -100, "mean")


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("decay", [(0.0, False), (0.1, False), (0.1, True)], ids=["none", "L2", "decoupled"])
def test_adam(kind: str, decay: tuple) -> None:
    """Case 44: five steps of two parameters; gradients are not changed."""
    rng = np.random.default_rng(0)
    start = [rng.normal(size=s).astype(kind) for s in ((3, 2), (4,))]
    results = []
    for back in (numpy, composed):
        p = [a.copy() for a in start]
        m, v = ([np.zeros_like(a) for a in start] for _ in range(2))
        steps = [np.array(0, np.int64) for _ in start]
        rng = np.random.default_rng(1)
        for _ in range(5):
            grads = [rng.normal(size=a.shape).astype(kind) for a in start]
            kept = [g.copy() for g in grads]
            back.adam_(p, grads, m, v, steps, np.array(0.01), 0.9, 0.999, 1e-8, *decay)
            for g, k in zip(grads, kept, strict=True):
                np.testing.assert_array_equal(g, k)
        assert [int(s) for s in steps] == [5, 5]
        results.append((p, m, v))
    for mine, base in zip(*results, strict=True):
        for a, b in zip(mine, base, strict=True):
            assert a.dtype == kind
            close(a, b, kind)


@pytest.mark.parametrize(
    ("momentum", "dampening", "decay", "nesterov", "grads", "expected"),
    [
        (0.9, 0, 0, False, [1, 1, 1], [-0.1, -0.29, -0.561]),
        (0.9, 0, 0, True, [1, 1, 1], [-0.19, -0.461, -0.8049]),
        (0, 0, 0.1, False, [0, 0], [0.99, 0.9801]),
        (0.9, 0, 0.1, False, [1, 1], [0.89, 0.6821]),
        (0.9, 0.5, 0, False, [1, 1], [-0.1, -0.24]),
    ],
)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_sgd(
    kind: str, momentum: float, dampening: float, decay: float, nesterov: bool, grads: list, expected: list
) -> None:
    """Case 46."""
    p = [np.array([1.0 if decay else 0.0], kind)]
    v, count = [np.zeros(1, kind)] if momentum else [], [np.array(0)]
    for grad, value in zip(grads, expected, strict=True):
        composed.sgd_(p, [np.array([grad], kind)], v, count, np.array(0.1), momentum, dampening, decay, nesterov)
        assert p[0].dtype == kind
        assert p[0].item() == pytest.approx(value, rel=1e-6)
    assert int(count[0]) == len(grads)


@pytest.mark.parametrize(
    "make",
    [lambda m: optim.Adam(m.parameters(), lr=0.01), lambda m: optim.SGD(m.parameters(), lr=0.1, momentum=0.9)],
    ids=["Adam", "SGD"],
)
def test_a_training_agrees(make: Callable) -> None:
    """The whole of it in float64: ten losses on the composed and on the fused operations."""
    losses = []
    for back in (numpy, composed):
        with gradcore.use_backend(back):
            gradcore.manual_seed(0)
            model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3))
            step, rng = make(model), np.random.default_rng(0)
            images, labels = Tensor(rng.normal(size=(5, 1, 6, 6)).astype(np.float32)), rng.integers(0, 3, 5)
            for _ in range(10):
                step.zero_grad()
                loss = ops.cross_entropy(model(images), labels)
                loss.backward()
                step.step()
                losses.append(loss.item())
    np.testing.assert_allclose(losses[:10], losses[10:], rtol=1e-4)


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        ((2, 3), (3,)),
        ((2, 3), (1, 3)),
        ((2, 3), ()),
        ((2, 3), (2, 1)),
        ((4, 2, 3), (1, 1)),
        ((0, 3), (3,)),
        ((1, 3), (3,)),
    ],
    ids=str,
)
def test_sum_to(x: tuple, shape: tuple) -> None:
    """Case 39."""
    values = np.arange(np.prod(x), dtype=np.float64).reshape(x)
    found = numpy.sum_to(values, shape)
    expected = np.zeros(shape)
    for at in np.ndindex(*x):
        padded = (1,) * (len(x) - len(shape)) + shape
        place = tuple(0 if n == 1 else i for i, n in zip(at, padded, strict=True))[len(x) - len(shape) :]
        expected[place] += values[at]
    assert found.shape == shape
    np.testing.assert_array_equal(found, expected)


def test_take_batch() -> None:
    x, order = np.arange(12.0).reshape(6, 2), np.array([5, 3, 1, 0, 2, 4])
    assert numpy.take_batch(x, order, np.array(2), 3).tolist() == [[2, 3], [0, 1], [4, 5]]


def test_batch_norm_far_from_zero() -> None:
    """The variance is of the centred values: a mean of 1e4 costs no digits."""
    x = np.random.default_rng(0).normal(1e4, 1, (1000, 2)).astype(np.float32)
    y, mean, var = numpy.batch_norm(x, np.ones(2, np.float32), np.zeros(2, np.float32), 1e-5)
    np.testing.assert_allclose(var, x.astype(np.float64).var(0), rtol=1e-2)
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(0), rtol=1e-6)
    assert np.abs(y).max() < 10


# what may be left out


class Bare(BaseBackend):
    name = "toy"


def test_missing_operations_are_named() -> None:
    """A capability says what to implement, a primitive where it stands, anything else is Python's own error."""
    toy = Bare()
    with pytest.raises(NotSupported, match=r"^backend 'toy' has no conv2d: implement Conv2dOps$"):
        toy.conv2d(None)
    with pytest.raises(NotSupported, match=r"^backend 'toy' has no max_pool2d: implement Pool2dOps$"):
        toy.max_pool2d(None)
    with pytest.raises(NotSupported, match=r"^backend 'toy' lacks the primitive 'add' of"):
        toy.relu_backward = toy.add
    with pytest.raises(AttributeError, match="'Bare' object has no attribute 'nonsense'"):
        _ = toy.nonsense
    assert toy.capabilities == ()
    assert not hasattr(toy, "conv2d")
    assert repr(toy) == "<backend 'toy' on unknown device>"


def test_an_operation_without_the_capability() -> None:
    class Plain(NumpyBackend):
        name = "plain"
        conv2d = property(lambda self: BaseBackend.__getattr__(self, "conv2d"))

    back = Plain()
    x = Tensor(np.ones((1, 1, 3, 3), np.float32), backend=back)
    with pytest.raises(NotSupported, match="backend 'plain' has no conv2d: implement Conv2dOps"):
        ops.conv2d(x, x)
    assert ops.max_pool2d(x, 3).item() == 1.0
