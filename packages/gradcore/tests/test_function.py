"""Function: a rule of one's own, what it may save and return, and clear errors where it is wrong."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcore
from gradcore import Function, Tensor, tensor
from gradcore.errors import ArgumentError, BackendMismatch, DTypeError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


class Square(Function):
    """The smallest rule, without __slots__."""

    def forward(self, x):
        self.saved = x
        return self.backend.multiply(x, x)

    def backward(self, grad):
        return self.backend.multiply(grad, self.backend.multiply(self.saved, 2.0))


class Sum3(Function):
    """Three operands."""

    def forward(self, a, b, c):
        return self.backend.add(self.backend.add(a, b), c)

    def backward(self, grad):
        self.seen = self.needs
        return grad, grad, grad


def returning(make: Callable) -> type[Function]:
    """A rule of two operands whose backward returns make(backend, grad)."""

    class Wrong(Function):
        def forward(self, a, b):
            self.saved = a, b
            return self.backend.multiply(a, b)

        def backward(self, grad):
            return make(self.backend, grad)

    return Wrong


def test_a_rule_of_ones_own(dtype: str) -> None:
    x = Tensor(np.array([3.0, -2.0], dtype), requires_grad=True)
    y = Square()(x)
    assert (y.tolist(), repr(y._node)) == ([9, 4], "Square")
    (y * 2.0).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (dtype, [12, -8])


def test_needs_says_who_wants_a_gradient() -> None:
    a, b, c = tensor([1.0]), tensor([2.0], requires_grad=True), tensor([3.0])
    step = Sum3()
    step(a, b, c).backward([1.0])
    assert step.seen == (False, True, False)
    assert (a.grad, b.grad.tolist(), c.grad) == (None, [1.0], None)


def test_nothing_is_recorded_where_nothing_is_wanted() -> None:
    step = Square()
    y = step(tensor([1.0]))
    assert (y.requires_grad, step.saved) == (False, None)
    with gradcore.no_grad():
        step = Square()
        y = step(tensor([1.0], requires_grad=True))
    assert (y.requires_grad, step.saved) == (False, None)


@pytest.mark.parametrize(
    "make",
    [lambda b, g: (g,), lambda b, g: (g, g, g), lambda b, g: (), lambda b, g: g],
    ids=["one", "three", "none", "bare"],
)
def test_wrong_number_of_gradients(make: Callable) -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GraphError, match=r"^Wrong: backward returned \d gradients for 2 operands"):
        returning(make)()(x, x).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (1, 2)], ids=str)
def test_wrong_shape_of_a_gradient(shape: tuple) -> None:
    """Also (1,) and (), which PyTorch would stretch in silence."""
    x = tensor([1.0, 2.0], requires_grad=True)
    wrong = returning(lambda b, g: (g, b.full(shape, 1.0, g.dtype)))
    with pytest.raises(ShapeError) as error:
        wrong()(x, x).sum().backward()
    assert str(error.value) == f"Wrong: backward returned shape {shape} for operand 1 of shape (2,)"
    assert x.grad is None
    (x * x).sum().backward()  # the next correct call works
    assert x.grad.tolist() == [2.0, 4.0]


def test_wrong_type_of_a_gradient() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(DTypeError, match=r"float64 \(2,\) arrived at a tensor of float32 \(2,\)"):
        returning(lambda b, g: (b.astype(g, "float64"), None))()(x, x).sum().backward()


@pytest.mark.parametrize(
    "make",
    [lambda b, g: [g, g], lambda b, g: (tensor([1.0, 2.0]), None), lambda b, g: (1.0, None)],
    ids=["list", "Tensor", "float"],
)
def test_gradients_that_are_no_arrays(make: Callable) -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GraphError, match=r"^Wrong: backward returned"):
        returning(make)()(x, x).sum().backward()
    assert x.grad is None


def test_none_is_no_gradient() -> None:
    a, b = tensor([1.0], requires_grad=True), tensor([2.0], requires_grad=True)
    returning(lambda back, g: (None, g))()(a, b).sum().backward()
    assert (a.grad, b.grad.tolist()) == (None, [1.0])


def test_unfinished_rules() -> None:
    class Half(Function):
        def forward(self, x):
            return self.backend.multiply(x, 0.5)

    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="Half has no backward"):
        Half()(tensor([1.0], requires_grad=True)).sum().backward()
    with pytest.raises(NotImplementedError, match="Empty has no forward"):
        Empty()(tensor([1.0]))


@pytest.mark.parametrize("operand", [np.ones(2, np.float32), [1.0], 1.0, None], ids=repr)
def test_operands_must_be_tensors(operand: object) -> None:
    x = tensor([1.0, 2.0])
    kind = type(operand).__name__
    for call in (lambda: Square()(operand), lambda: returning(None)()(x, operand), lambda: Sum3()(x, x, operand)):
        with pytest.raises(DTypeError, match=f"operands are Tensors, got {kind}"):
            call()
    with pytest.raises(ArgumentError, match="Square: at least one tensor"):
        Square()()


def test_errors_of_a_rule_pass_through() -> None:
    class Broken(Function):
        def forward(self, x):
            return x.nonsense

    class Early(Function):
        def forward(self, a, b):
            raise KeyError("mine")

    with pytest.raises(AttributeError, match="nonsense"):
        Broken()(tensor([1.0]))
    with pytest.raises(KeyError, match="mine"):
        Early()(tensor([1.0]), tensor([1.0]))


@pytest.mark.parametrize("operands", [2, 3])
def test_types_mix_as_everywhere(operands: int) -> None:
    step = {2: returning(lambda b, g: (g, g)), 3: Sum3}[operands]
    x32, x64, whole = tensor([1.0]), Tensor(np.array([1.0])), Tensor(np.array([1]))
    assert step()(*[whole] * operands).dtype == np.float32
    for x in (x32, x64):
        assert step()(*[whole] * (operands - 1), x).dtype == x.dtype
        assert step()(x, *[whole] * (operands - 1)).dtype == x.dtype
    with pytest.raises(DTypeError, match=r"operands of float32 and float64: .*\.astype\('float32'\)"):
        step()(x32, *[x64] * (operands - 1))


def test_backends_do_not_mix(backend) -> None:
    from gradcore.backend.numpy import NumpyBackend

    other = type("Elsewhere", (NumpyBackend,), {"name": "elsewhere"})()
    with pytest.raises(BackendMismatch, match=rf"Sum3: operands on backends '{backend.name}' and 'elsewhere'"):
        Sum3()(tensor([1.0]), tensor([1.0]), Tensor([1.0], backend=other))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_node_cannot_be_copied(duplicate: Callable) -> None:
    """Case 27."""
    y = tensor([1.0], requires_grad=True) * 2.0
    with pytest.raises(TypeError, match="MultiplyScalar is part of a graph and cannot be copied or pickled"):
        duplicate(y._node)


def test_saving_nothing_lets_operands_change() -> None:
    a, b = tensor([1.0], requires_grad=True), tensor([2.0], requires_grad=True)
    y = a + b
    a.copy_([5.0])
    y.sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0], [1.0])


@pytest.mark.parametrize("changed", [0, 1])
def test_saved_operands_must_not_change(changed: int) -> None:
    """Case 32: x=3, w=5; w times 10; never a slope of 50."""
    operands = [tensor([3.0], requires_grad=True), tensor([5.0], requires_grad=True)]
    y = operands[0] * operands[1]
    operands[changed].copy_(operands[changed].detach() * 10.0)
    with pytest.raises(GraphError, match=r"^Multiply: .*changed in place after the forward"):
        y.sum().backward()
    assert operands[0].grad is None


OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "x * x": lambda x: x * x,
    "x / 2": lambda x: 2.0 / x,
    "x ** 2": lambda x: x**2,
    "log": lambda x: x.log(),
    "abs": lambda x: x.abs(),
    "max": lambda x: x.max(),
    "matmul": lambda x: x @ x,
    "var": lambda x: x.var(),
    "maximum": lambda x: gradcore.maximum(x, 1.0),
    "linear": lambda x: gradcore.ops.linear(x, x),
    "bce": lambda x: gradcore.ops.bce_with_logits(x, [[0.0, 1.0], [1.0, 0.0]]),
    "conv2d": lambda x: gradcore.ops.conv2d(x.reshape(1, 1, 2, 2), x.reshape(1, 1, 2, 2)),
    "through a view": lambda x: x.T[0].exp() * x[1],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_notices_a_change(name: str) -> None:
    """Case 32 for the whole kind: an error, or the right slope; never the slope of the new values."""
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    OPERATIONS[name](x).sum().backward()
    right, x.grad = x.grad.tolist(), None
    y = OPERATIONS[name](x).sum()
    x.copy_([[9.0, -8.0], [7.0, 6.0]])
    try:
        y.backward()
    except GraphError as error:
        assert "changed in place" in str(error)  # noqa: PT017
    else:
        assert x.grad.tolist() == right


def test_an_instance_serves_one_call() -> None:
    """A second call would take the first one's place on the tape and lose its gradient in silence."""

    class Cube(Function):
        def forward(self, x: Any) -> Any:
            self.saved = x
            return self.backend.multiply(x, self.backend.multiply(x, x))

        def backward(self, grad: Any) -> Any:
            square = self.backend.multiply(self.saved, self.saved)
            return self.backend.multiply(grad, self.backend.multiply(square, 3.0))

    cube, x = Cube(), Tensor([1.0, 2.0], requires_grad=True)
    y = cube(x).sum()
    with pytest.raises(GraphError, match="Cube: one instance serves one call"):
        cube(x)
    y.backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 12.0])


def test_a_forgotten_return() -> None:
    class Same(Function):
        def forward(self, x: Any) -> Any:
            return x

        def backward(self, grad: Any) -> Any:
            self.backend.negative(grad)

    x = Tensor([1.0], requires_grad=True)
    with pytest.raises(GraphError, match="Same: backward returned None"):
        Same()(x).backward()
