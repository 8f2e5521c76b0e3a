"""The engine: shapes of graphs, backward twice and misuse, grad()."""

from collections.abc import Callable

import numpy as np
import pytest

from gradcore import Function, Tensor, grad, nn, ops, tensor
from gradcore.errors import BackendMismatch, DTypeError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


def slopes(function: Callable, *values: float) -> list[float]:
    operands = [tensor(v, requires_grad=True) for v in values]
    function(*operands).backward()
    return [x.grad.item() for x in operands]


class Failing(Function):
    """Raises in its backward."""

    def forward(self, x):
        return self.backend.multiply(x, 1.0)

    def backward(self, grad):
        raise KeyboardInterrupt


def test_diamonds() -> None:
    """Case 25."""
    a = tensor(1.0, requires_grad=True)
    b = a + a
    c = b + b
    c.backward()
    assert (c.item(), a.grad.item()) == (4.0, 4.0)
    assert slopes(lambda a, b: (a + b) + a * b + (a + b) * (a * b), 2.0, 3.0) == [25, 19]
    assert slopes(lambda x: x * x * x, 3.0) == [27]
    assert slopes(lambda x: x - x, 3.0) == [0]
    assert slopes(lambda x: x / x, 3.0) == [0]


def test_a_shared_part_is_walked_once() -> None:
    """Case 25's kind: forty diamonds are 2**40 paths."""
    x = tensor(1.0, requires_grad=True)
    y = x
    for _ in range(40):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad.item() == 1.0


def test_random_graphs_beside_torch(rng: np.random.Generator, close) -> None:
    """Case 25's kind: operands picked at random among all earlier results."""
    torch = pytest.importorskip("torch")
    for _ in range(20):
        values = rng.normal(size=(3, 4))
        ours, theirs = (
            [Tensor(v, requires_grad=True) for v in values],
            [torch.tensor(v, requires_grad=True) for v in values],
        )
        leaves = ours[:], theirs[:]
        for _ in range(30):
            i, j = rng.integers(0, len(ours), 2)
            operation = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: (a * b).tanh()][
                rng.integers(4)
            ]
            ours.append(operation(ours[i], ours[j]).tanh())
            theirs.append(operation(theirs[i], theirs[j]).tanh())
        sum(ours[-5:], ours[-6]).sum().backward()
        sum(theirs[-5:], theirs[-6]).sum().backward()
        for x, y in zip(*leaves, strict=True):
            close(
                np.zeros(4) if x.grad is None else x.grad, np.zeros(4) if y.grad is None else y.grad.numpy(), rtol=1e-9
            )


def test_gradients_shrink_to_the_operands_shape(dtype: str) -> None:
    """Case 39."""

    def leaf(values: object) -> Tensor:
        return Tensor(np.array(values, dtype), requires_grad=True)

    column, row = leaf([[1], [2], [3]]), leaf([[1, 2, 3, 4]])
    (column * row).sum().backward()
    assert (column.grad.tolist(), row.grad.tolist()) == ([[10]] * 3, [[6] * 4])
    one = leaf([2])
    (one * np.arange(20, dtype=dtype).reshape(5, 4)).sum().backward()
    assert one.grad.tolist() == [190]
    bias = leaf(np.zeros(5))
    (Tensor(np.ones((8, 5), dtype)) + bias).sum().backward()
    assert bias.grad.tolist() == [8] * 5


# backward twice, and misuse


def test_backward_twice() -> None:
    """Case 28: an error, or exactly double where the graph was kept."""
    for kept in (False, True):
        a, b, d = (tensor(v, requires_grad=True) for v in (3.0, 2.0, 1.0))
        e = (a + b) * d
        e.backward(retain_graph=kept)
        assert [x.grad.item() for x in (a, b, d)] == [1, 1, 5]
        if kept:
            e.backward()
            assert [x.grad.item() for x in (a, b, d)] == [2, 2, 10]
        with pytest.raises(GraphError, match=r"freed at Multiply by an earlier backward.*retain_graph"):
            e.backward()
        if not kept:
            ((a + b) * d).backward()
            assert [x.grad.item() for x in (a, b, d)] == [2, 2, 10]


@pytest.mark.parametrize("name", ["conv", "pool", "norm", "softmax", "power", "max", "take"])
def test_a_kept_graph_gives_exactly_double(name: str, rng: np.random.Generator) -> None:
    """Case 28 for operations that save much."""
    x = tensor(rng.normal(size=(2, 3, 4, 4)).astype(np.float32), requires_grad=True)
    y = {
        "conv": lambda: ops.conv2d(x, x),
        "pool": lambda: ops.max_pool2d(x, 3, 1) + ops.avg_pool2d(x, 3, 1),
        "norm": lambda: nn.BatchNorm2d(3)(x) ** 3,
        "softmax": lambda: ops.cross_entropy(x.reshape(-1, 4), np.arange(24) % 4),
        "power": lambda: x.exp() ** x,
        "max": lambda: x.max((1, 2)) * x.min(3)[:, 0],
        "take": lambda: x.take([0, 0, 1]) * x[:1],
    }[name]().sum()
    y.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), once * 2)


def test_a_part_that_was_used_up_is_named() -> None:
    """Case 28: the second output shares an inner node with the first."""
    x = tensor([1.0], requires_grad=True)
    inner = x.exp()
    inner.sum().backward()
    with pytest.raises(GraphError, match="freed at Exp"):
        (inner * 2.0).sum().backward()


def test_misuse() -> None:
    """Case 28: each is a clear error, and the graph still serves afterwards."""
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    with pytest.raises(ShapeError, match=r"backward: the output has shape \(2,\), not one number"):
        y.backward()
    for wrong in (1.0, [1.0], [[1.0, 1.0]], [1.0, 1.0, 1.0]):
        with pytest.raises(ShapeError, match=r"backward: gradient of shape .* for an output of shape \(2,\)"):
            y.backward(wrong)
    for wrong in (np.ones(2), np.ones(2, int)):
        with pytest.raises(DTypeError, match=f"backward: gradient of {wrong.dtype} for an output of float32"):
            y.backward(wrong)
    with pytest.raises(GraphError, match=r"create_graph=True: .*first order only"):
        y.backward([1.0, 1.0], create_graph=True)
    with pytest.raises(GraphError, match="create_graph=True"):
        grad(y.sum(), x, create_graph=True)
    y.backward([1.0, 10.0])
    assert x.grad.tolist() == [3.0, 30.0]
    for constant in (tensor(1.0), tensor(1.0) * 2.0, x.detach().sum(), x.argmax(), (x > 1.0).sum()):
        with pytest.raises(GraphError, match="backward: this tensor has no graph"):
            constant.backward()


def test_the_upstream_gradient_is_not_shared() -> None:
    """Case 32's kind: who passed it may change it; the leaf's gradient stays."""
    x, upstream = tensor([1.0, 2.0], requires_grad=True), tensor([1.0, 1.0])
    (x + 1.0).backward(upstream)
    upstream.copy_([7.0, 7.0])
    assert x.grad.tolist() == [1.0, 1.0]


def test_backward_of_a_leaf() -> None:
    x = tensor([[2.0]], requires_grad=True)
    x.backward()
    x.backward([[3.0]])
    assert x.grad.tolist() == [[4.0]]


# grad()


def test_grad_of_inner_results() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    inner = x * x
    y = (inner * 3.0).sum()
    to_y, to_inner, to_x, again = grad(y, [y, inner, x, x], retain_graph=True)
    assert [g.tolist() for g in (to_y, to_inner, to_x, again)] == [1.0, [3.0, 3.0], [6.0, 12.0], [6.0, 12.0]]
    assert grad(y, inner)[0].tolist() == [3.0, 3.0]
    assert x.grad is None


def test_grad_goes_no_further_than_asked() -> None:
    """A rule between the target and the leaves is never applied."""
    x = tensor([1.0], requires_grad=True)
    inner = Failing()(x)
    assert grad((inner * 2.0).sum(), inner)[0].tolist() == [2.0]


def test_grad_takes_an_upstream() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    assert grad(x * x, x, [1.0, 10.0])[0].tolist() == [2.0, 40.0]


def test_unused_inputs() -> None:
    """An error before the graph is used up; None where that is allowed."""
    x, other, constant = tensor([1.0], requires_grad=True), tensor([1.0], requires_grad=True), tensor([1.0])
    y = (x * x).sum()
    for unused in (other, constant, x * 1.0):
        with pytest.raises(GraphError, match="grad: input 1 is not part of the output's graph"):
            grad(y, [x, unused])
    found = grad(y, [other, x, constant], allow_unused=True)
    assert [None if g is None else g.tolist() for g in found] == [None, [2.0], None]
    with pytest.raises(GraphError, match="grad: the output has no graph"):
        grad(constant, x)


def test_grad_checks_like_backward() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ShapeError, match=r"grad: the output has shape \(2,\)"):
        grad(x * x, x)
    with pytest.raises(ShapeError, match="grad: gradient of shape"):
        grad(x * x, x, [1.0])
    y = x * x
    grad(y, x, [1.0, 1.0])
    with pytest.raises(GraphError, match="freed"):
        grad(y, x, [1.0, 1.0])


def test_an_upstream_of_another_backend(backend) -> None:
    from gradcore.backend.numpy import NumpyBackend

    other = type("Elsewhere", (NumpyBackend,), {"name": "elsewhere"})()
    y = tensor([1.0], requires_grad=True) * 2.0
    with pytest.raises(BackendMismatch, match="elsewhere"):
        y.backward(Tensor([1.0], backend=other))
