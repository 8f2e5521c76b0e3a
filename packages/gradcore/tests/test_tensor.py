"""Tensor: what it tells, what it hands out, what may change in place, copies and pickles, gradients of a leaf."""

import copy
import pickle

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, tensor
from gradcore.backend.numpy import NumpyBackend
from gradcore.errors import BackendMismatch, DTypeError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")


class Elsewhere(NumpyBackend):
    """A second backend: nothing may mix with it."""

    name = "elsewhere"


# what it is


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_attributes(shape: tuple, dtype: str, backend) -> None:
    x = Tensor(np.zeros(shape, dtype))
    assert (x.shape, x.dtype, x.ndim, x.size, x.backend) == (shape, dtype, len(shape), int(np.prod(shape)), backend)
    assert (x.requires_grad, x.grad) == (False, None)
    assert x.tolist() == np.zeros(shape).tolist()


def test_len() -> None:
    assert len(tensor(np.zeros((4, 2)))) == 4
    with pytest.raises(ShapeError, match=r"len: .*\(\)"):
        len(tensor(1.0))


def test_repr() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    assert repr(tensor(1.5)) == "Tensor(1.5)"
    assert repr(x) == "Tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2.0) == "Tensor([2., 4.], from=MultiplyScalar)"
    assert repr(tensor(np.array([1]))) == "Tensor([1], dtype=int64)"
    assert repr(Tensor([1.0], backend=Elsewhere())) == "Tensor([1.], backend=elsewhere)"
    assert len(repr(tensor(np.zeros((1000, 1000))))) < 1000
    assert "Parameter" in repr(gradcore.Parameter([1.0]))


def test_python_numbers() -> None:
    """Case 31: plain numbers, without a graph."""
    x = tensor([[2.5]], requires_grad=True) * 1.0
    assert [type(v) for v in (x.item(), float(x), int(x), bool(x))] == [float, float, int, bool]
    assert (x.item(), float(x), int(x), bool(x)) == (2.5, 2.5, 2, True)
    assert type(tensor(np.array(3)).item()) is int
    assert type(tensor(np.array(True)).item()) is bool
    assert not tensor(0.0)
    for many in (tensor([1.0, 2.0]), tensor([])):
        for convert in (float, int, bool, Tensor.item):
            with pytest.raises(ShapeError, match=r"item: one element is needed, the tensor has shape"):
                convert(many)


# values out


def test_arrays_handed_out_are_read_only() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.sum().backward()
    for t in (x, y, x.grad, x.detach(), x[:1], x.reshape(2, 1), tensor(1.0), tensor(1.0) * 2.0):
        for array in (t.numpy(), np.asarray(t)):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 5.0
    assert x.tolist() == [1.0, 2.0]


def test_numpy_protocol() -> None:
    x = tensor([1.0, 2.0])
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    own = np.array(x)
    own[0] = 9.0
    assert x.tolist() == [1.0, 2.0]
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert np.asarray(x, copy=False).tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="needs a copy"):
            np.asarray(x, dtype=np.float64, copy=False)
    with pytest.raises(TypeError):
        np.exp(x)


@pytest.mark.parametrize(
    "make", [lambda: tensor([1.0, 2.0]), lambda: tensor(1.0), lambda: tensor(1.0) * 2.0, lambda: tensor([3.0]) + 1.0]
)
def test_dlpack(make) -> None:
    """Also a result without axes, which NumPy holds as a scalar."""
    with gradcore.use_backend("numpy"):
        x = make()
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x).tolist() == x.tolist()
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(x).tolist() == x.tolist()


# gradients of a leaf


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8", "bool"])
def test_integers_want_no_gradient(kind: str) -> None:
    """Case 43."""
    with pytest.raises(DTypeError, match=f"requires_grad: gradients need float32 or float64, the tensor is {kind}"):
        Tensor(np.ones(2, kind), requires_grad=True)
    x = Tensor(np.ones(2, kind))
    with pytest.raises(DTypeError, match="requires_grad"):
        x.requires_grad_()
    assert not x.requires_grad_(False).requires_grad


def test_requires_grad_on_and_off() -> None:
    x = tensor([1.0])
    assert x.requires_grad_() is x
    (x * 2.0).sum().backward()
    x.requires_grad_()
    assert x.grad.tolist() == [2.0]  # asked again: nothing changed
    x.requires_grad_(False)
    assert (x.requires_grad, x.grad) == (False, None)
    y = x.requires_grad_() * 2.0
    with pytest.raises(GraphError, match=r"requires_grad_: .*computed by Multiply"):
        y.requires_grad_(False)


def test_grad_can_be_set_and_cleared(dtype: str) -> None:
    x = Tensor(np.array([1.0, 2.0], dtype), requires_grad=True)
    x.grad = [3.0, 4.0]
    assert (x.grad.dtype, x.grad.tolist()) == (dtype, [3.0, 4.0])
    (x * 1.0).sum().backward()
    assert x.grad.tolist() == [4.0, 5.0]
    x.grad = None
    assert x.grad is None
    for wrong in (
        [1.0],
        np.ones((2, 1), dtype),
        np.ones(2, "int64"),
        tensor(np.ones(2, "float64" if dtype == "float32" else "float32")),
    ):
        with pytest.raises((ShapeError, DTypeError), match=r"^grad: "):
            x.grad = wrong
    with pytest.raises(GraphError, match="grad: only a tensor made with requires_grad=True"):
        tensor([1.0]).grad = [1.0]
    with pytest.raises(BackendMismatch, match="elsewhere"):
        x.grad = Tensor(np.ones(2, dtype), backend=Elsewhere())


def test_a_gradient_keeps_no_graph() -> None:
    """Case 31's kind."""
    x = tensor([1.0], requires_grad=True)
    x.grad = x * 2.0
    assert not x.grad.requires_grad


# in place


def test_copy_converts_and_checks() -> None:
    x = tensor([1.0, 2.0])
    assert x.copy_([3, 4]) is x
    assert x.copy_(np.array([5.0, 6.0])).tolist() == [5.0, 6.0]
    assert x.copy_(tensor(np.array([7, 8]))).dtype == np.float32
    whole = tensor(np.array([1, 2]))
    assert whole.copy_([2.9, -2.9]).tolist() == [2, -2]
    for wrong in (1.0, [1.0], [[1.0, 2.0]], [1.0, 2.0, 3.0]):
        with pytest.raises(ShapeError, match=r"copy_: values of shape .* for a tensor of shape \(2,\)"):
            x.copy_(wrong)
    assert x.tolist() == [7.0, 8.0]


def test_copy_within_itself() -> None:
    x = tensor(np.arange(5, dtype=np.float32))
    x.copy_(x[::-1])
    assert x.tolist() == [4, 3, 2, 1, 0]


def test_results_that_want_no_gradient_can_change() -> None:
    """Also those without axes."""
    for x in (tensor([1.0]) * 2.0, tensor(1.0) * 2.0, tensor([1.0, 2.0]).sum(), tensor([1.0])[0]):
        assert x.copy_(np.full(x.shape, 5.0, np.float32)).numpy().ravel().tolist() == [5.0]


def test_results_with_a_graph_cannot_change() -> None:
    """Case 32: the output of exp is what its gradient is made of."""
    x = tensor([1.0], requires_grad=True)
    y = x.exp()
    for part in (y, y.detach(), y[:1], y.detach()[:1], y.detach().reshape(1, 1)):
        with pytest.raises(GraphError, match=r"^copy_: .*(computed by|is a result)"):
            part.copy_(np.zeros(part.shape, np.float32))
    y.sum().backward()
    with pytest.raises(GraphError, match=r"copy_: .*is a result or a gradient"):
        x.grad.copy_([0.0])
    assert x.grad.item() == pytest.approx(np.e)


def test_a_detached_result_that_wants_a_gradient_has_memory_of_its_own() -> None:
    """Case 32's kind: an optimizer may change it; the result it came from must not change along."""
    x = tensor([1.0], requires_grad=True)
    y = x.exp()
    leaf = y.detach().requires_grad_()
    z = leaf * leaf
    leaf.copy_([0.0])
    with pytest.raises(GraphError, match="Multiply"):
        z.sum().backward()
    y.sum().backward()
    assert x.grad.item() == pytest.approx(np.e)


def test_detach_shares() -> None:
    x = tensor([1.0], requires_grad=True)
    part = x.detach()
    assert not part.requires_grad
    y = x * x
    part.copy_([5.0])
    assert x.tolist() == [5.0]
    with pytest.raises(GraphError, match="changed in place"):
        y.sum().backward()


# copies, pickles, other backends


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deep", "shallow", "pickle"]
)
def test_copies_have_the_values_only(duplicate, dtype: str) -> None:
    """Case 27."""
    x = Tensor(np.array([[1.0, 2.0]], dtype), requires_grad=True)
    (x * 3.0).sum().backward()
    for original in (x, x * 3.0, x.sum(), x.T, tensor(np.array([1, 2])), gradcore.Parameter([1.0])):
        other = duplicate(original)
        assert type(other) is type(original)
        assert (other.shape, other.dtype, other.tolist()) == (original.shape, original.dtype, original.tolist())
        assert other.backend is original.backend
        leaf = original is x or isinstance(original, gradcore.Parameter)
        assert (other.requires_grad, other.grad) == (leaf, None)
        other.copy_(np.zeros(other.shape, other.dtype))
        assert np.any(original.numpy())  # separate memory


def test_deep_copy_keeps_what_is_one_as_one() -> None:
    x = tensor([1.0])
    first, second = copy.deepcopy([x, x])
    assert first is second


def test_tensor_of_a_tensor_is_a_copy() -> None:
    x = tensor([1.0], requires_grad=True)
    y = Tensor(x)
    x.copy_([2.0])
    assert (y.tolist(), y.requires_grad) == ([1.0], False)
    assert Tensor(x, "float64").dtype == np.float64


def test_to_another_backend() -> None:
    other = Elsewhere()
    x = tensor([1.0], requires_grad=True)
    assert x.to(x.backend) is x
    y = x.to(other)
    assert (y.backend, y.requires_grad, y.tolist()) == (other, True, [1.0])
    with pytest.raises(GraphError, match="to: a tensor with a graph"):
        (x * 2.0).to(other)


def test_backends_do_not_mix(backend) -> None:
    here, there = tensor([1.0]), Tensor([1.0], backend=Elsewhere())
    calls = [
        lambda: here + there,
        lambda: there * here,
        lambda: here == there,
        lambda: here > there,
        lambda: here @ there,
        lambda: gradcore.maximum(here, there),
        lambda: gradcore.concat([here, there]),
        lambda: gradcore.where(here > 0.0, there, there),
        lambda: gradcore.where(here > 0.0, here, there),
        lambda: here.take(Tensor(np.array([0]), backend=there.backend)),
        lambda: gradcore.ops.mse_loss(here, there),
        lambda: here.requires_grad_().backward(there),
    ]
    for call in calls:
        with pytest.raises(BackendMismatch) as error:
            call()
        assert backend.name in str(error.value)
        assert "elsewhere" in str(error.value)
