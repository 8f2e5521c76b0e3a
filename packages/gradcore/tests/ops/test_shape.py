"""Functions that move elements: beside PyTorch, on all types and layouts, shared versions, errors."""

from collections.abc import Callable

import numpy as np
import pytest

import gradcore
from gradcore import Tensor, ops, tensor
from gradcore.errors import ArgumentError, DTypeError, GraphError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

# (shape, ours, PyTorch's)
MOVES: dict[str, tuple[tuple, Callable, Callable]] = {
    "reshape": ((2, 6), lambda x: x.reshape(3, -1), lambda x: x.reshape(3, -1)),
    "reshape, tuple": ((2, 6), lambda x: x.reshape((4, 3)), lambda x: x.reshape(4, 3)),
    "reshape to one number": ((1, 1), lambda x: x.reshape(()), lambda x: x.reshape(())),
    "reshape one number": ((), lambda x: x.reshape(1, 1), lambda x: x.reshape(1, 1)),
    "reshape nothing": ((0, 3), lambda x: x.reshape(3, 0), lambda x: x.reshape(3, 0)),
    "flatten": ((2, 3, 4), lambda x: x.flatten(1), lambda x: x.flatten(1)),
    "flatten all": ((2, 3), lambda x: x.flatten(), lambda x: x.flatten()),
    "flatten one number": ((), lambda x: x.flatten(), lambda x: x.flatten()),
    "flatten nothing": ((0, 3, 2), lambda x: x.flatten(1), lambda x: x.flatten(1)),
    "permute": ((2, 3, 4), lambda x: x.permute_dims(2, 0, 1), lambda x: x.permute(2, 0, 1)),
    "permute, negative": ((2, 3, 4), lambda x: x.permute_dims((-1, 0, -2)), lambda x: x.permute(-1, 0, -2)),
    "transpose": ((2, 3, 4), lambda x: x.transpose(0, -1), lambda x: x.transpose(0, -1)),
    "T": ((2, 3), lambda x: x.T, lambda x: x.T),
    "squeeze": ((1, 3, 1), lambda x: x.squeeze(), lambda x: x.squeeze()),
    "squeeze one": ((1, 3, 1), lambda x: x.squeeze(-1), lambda x: x.squeeze(-1)),
    "squeeze two": ((1, 3, 1), lambda x: x.squeeze((0, 2)), lambda x: x.squeeze((0, 2))),
    "expand": ((2, 3), lambda x: x.expand_dims(1), lambda x: x.unsqueeze(1)),
    "expand, last": ((2, 3), lambda x: x.expand_dims(-1), lambda x: x.unsqueeze(-1)),
    "broadcast": ((3, 1), lambda x: x.broadcast_to((2, 3, 4)), lambda x: x.expand(2, 3, 4)),
    "broadcast one number": ((), lambda x: x.broadcast_to((2, 3)), lambda x: x.expand(2, 3)),
    "broadcast to nothing": ((1, 3), lambda x: x.broadcast_to((0, 3)), lambda x: x.expand(0, 3)),
    "take": ((4, 3), lambda x: x.take([2, 0, 2, -1]), lambda x: x[[2, 0, 2, -1]]),
    "take a column": ((4, 3), lambda x: x.take([1, 1], axis=-1), lambda x: x[:, [1, 1]]),
    "take a matrix": ((4, 3), lambda x: x.take([[0, 1], [3, 0]], axis=0), lambda x: x[np.array([[0, 1], [3, 0]])]),
    "take one": ((4, 3), lambda x: x.take(2), lambda x: x[2]),
    "take none": ((4, 3), lambda x: x.take([]), lambda x: x[[]]),
}


@pytest.mark.parametrize("name", MOVES)
def test_beside_torch(name: str, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    shape, ours, theirs = MOVES[name]
    against_torch(ours, theirs, rng.normal(size=shape).astype(dtype), layout=layout)


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64", "bool", "float64"])
@pytest.mark.parametrize("name", MOVES)
def test_every_type_moves_unconverted(name: str, kind: str, rng: np.random.Generator) -> None:
    shape, ours, _ = MOVES[name]
    values = rng.integers(0, 2, shape).astype(kind)
    y = ours(Tensor(values))
    assert y.dtype == kind
    np.testing.assert_array_equal(y.numpy(), ours(Tensor(values.astype(np.float32))).numpy().astype(kind))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_beside_torch(axis: int, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    torch = pytest.importorskip("torch")
    parts = [rng.normal(size=(2, n) if axis else (n, 2)).astype(dtype) for n in (3, 1, 0, 2)]
    against_torch(lambda *p: gradcore.concat(p, axis), lambda *p: torch.cat(p, axis), *parts, layout=layout)
    against_torch(lambda a: gradcore.concat([a, a], axis), lambda a: torch.cat([a, a], axis), parts[0], layout=layout)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stack_beside_torch(axis: int, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    torch = pytest.importorskip("torch")
    parts = [rng.normal(size=(2, 3)).astype(dtype) for _ in range(3)]
    against_torch(lambda *p: gradcore.stack(p, axis), lambda *p: torch.stack(p, axis), *parts, layout=layout)


def test_stack_of_numbers() -> None:
    x = tensor(2.0, requires_grad=True)
    y = gradcore.stack([x, x * 3.0])
    assert y.tolist() == [2.0, 6.0]
    y.backward([1.0, 10.0])
    assert x.grad.item() == 31.0


def test_concat_of_some_that_want_no_gradient() -> None:
    a, b = tensor([1.0], requires_grad=True), tensor([2.0])
    gradcore.concat([b, a, b]).backward([1.0, 2.0, 3.0])
    assert a.grad.tolist() == [2.0]


def test_take_collects_repeats(dtype: str) -> None:
    """Case 34."""
    x = Tensor(np.array([0.1], dtype), requires_grad=True)
    x.take([0, 0]).backward([0.2, 0.3])
    assert x.grad.item() == pytest.approx(0.5)
    x = Tensor(np.array([1.0, 2.0, 3.0], dtype), requires_grad=True)
    x.take([2, 0, 2, 2]).sum().backward()
    assert x.grad.tolist() == [1, 0, 3]


@pytest.mark.parametrize("axis", [0, 1])
def test_take_collects_a_million_repeats(axis: int, close) -> None:
    """Case 34 with case 4: in float32, one by one, the sum would be 0.96 % off."""
    x = tensor(np.zeros((2, 2), np.float32), requires_grad=True)
    indices = np.tile([1, 0], 500_000)
    y = x.take(indices, axis)
    y.backward(np.full(y.shape, 0.1, np.float32))
    close(x.grad, np.full((2, 2), 50000.00075), rtol=1e-5)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_take_by_a_tensor(kind: str) -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x.take(Tensor(np.array([1, 1, 0], kind)))
    assert y.tolist() == [[3, 4], [3, 4], [1, 2]]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize("index", [2, -3, 10**9])
def test_take_refuses_what_is_not_there(index: int) -> None:
    """Case 3's kind: value and length are named; afterwards all is well."""
    x = tensor([1.0, 2.0])
    for given in ([0, index], np.array([0, index]), Tensor(np.array([0, index]))):
        with pytest.raises(ArgumentError, match=rf"take: index {index} is not one of 0..1 \(an axis of 2\)"):
            x.take(given).numpy()
    assert x.take([1, 0]).tolist() == [2.0, 1.0]


def test_take_refuses_what_is_no_integer() -> None:
    for given in ([0.0], np.array([0.0]), tensor([0.0]), [True], tensor(np.array([True]))):
        with pytest.raises(DTypeError, match="take: labels and indices are integers"):
            tensor([1.0, 2.0]).take(given)


def test_take_notices_changed_indices() -> None:
    """Case 32's kind."""
    x, indices = tensor([1.0, 2.0], requires_grad=True), tensor(np.array([0]))
    y = x.take(indices)
    indices.copy_(np.array([1]))
    with pytest.raises(GraphError, match=r"Take: .*changed in place"):
        y.sum().backward()


def test_views_share_memory_and_version() -> None:
    """Case 32's kind: a change through a view is a change of the whole, whether or not the backend made a copy."""
    for view in (
        lambda x: x.T,
        lambda x: x.reshape(4),
        lambda x: x[0],
        lambda x: x.detach(),
        lambda x: x.expand_dims(0),
        lambda x: x.squeeze(),
    ):
        w = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = w * w
        with gradcore.no_grad():
            part = view(w.detach())
        part.copy_(np.full(part.shape, 9.0, np.float32))
        assert w.numpy().max() in (9.0, 4.0)  # a view, or the copy that a device makes
        with pytest.raises(GraphError, match=r"Multiply: .*changed in place"):
            y.sum().backward()


def test_recorded_views_notice_a_change() -> None:
    """Case 32: the saved operand is a view of the parameter that changed."""
    for view in (lambda x: x.T, lambda x: x.reshape(4), lambda x: x[0], lambda x: x.broadcast_to((3, 2, 2))):
        w = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        part = view(w)
        y = (part * part).sum()
        w.copy_(np.zeros((2, 2), np.float32))
        with pytest.raises(GraphError, match="Multiply"):
            y.backward()


def test_a_broadcast_view_cannot_change() -> None:
    """NumPy stretches without a copy: three elements would be one."""
    stretched = tensor([1.0], backend="numpy").broadcast_to((3,))
    with pytest.raises(GraphError, match=r"copy_: .*\(3,\)"):
        stretched.copy_([1.0, 2.0, 3.0])


def test_astype_converts_there_and_back() -> None:
    x = tensor([1.5, 2.0], requires_grad=True)
    y = x.astype("float64") * 2.0
    assert y.dtype == np.float64
    y.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (np.float32, [2.0, 2.0])
    assert x.astype(np.float32) is x


def test_astype_to_integers_ends_the_gradient() -> None:
    """Truncation has slope 0 or none: a gradient of 1 would be wrong in silence."""
    x = tensor([1.5, -1.5, 0.0], requires_grad=True)
    whole = x.astype("int64")
    assert (whole.tolist(), whole.requires_grad) == ([1, -1, 0], False)
    assert x.astype(bool).tolist() == [True, True, False]
    assert not whole.astype("float32").requires_grad


def test_astype_refuses_unknown_types() -> None:
    for dtype in ("float16", "complex64", "U1", object):
        with pytest.raises(DTypeError, match="astype: dtype"):
            tensor([1.0]).astype(dtype)


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ShapeError, r"reshape: shape \(4,\) does not hold 6 elements", lambda x: x.reshape(4)),
        (ShapeError, r"reshape: shape \(-1, -1\)", lambda x: x.reshape(-1, -1)),
        (ArgumentError, "reshape: a shape is a tuple of integers", lambda x: x.reshape(2.0, 3)),
        (ArgumentError, "flatten: axis 2 is out of range", lambda x: x.flatten(2)),
        (ArgumentError, r"permute_dims: axes \(0, 0\)", lambda x: x.permute_dims(0, 0)),
        (ArgumentError, r"permute_dims: axes \(0,\)", lambda x: x.permute_dims(0)),
        (ArgumentError, "permute_dims: axis 2", lambda x: x.permute_dims(0, 2)),
        (ArgumentError, "transpose: axis 5", lambda x: x.transpose(0, 5)),
        (ShapeError, r"T: .*\(6,\)", lambda x: x.reshape(6).T),
        (ShapeError, r"squeeze: axis 0 of shape \(2, 3\)", lambda x: x.squeeze(0)),
        (ArgumentError, "squeeze: axis 2", lambda x: x.squeeze(2)),
        (ArgumentError, "expand_dims: axis 3", lambda x: x.expand_dims(3)),
        (ShapeError, r"broadcast_to: shape \(2, 3\) does not stretch to \(3,\)", lambda x: x.broadcast_to((3,))),
        (ShapeError, r"broadcast_to: shape \(2, 3\) does not stretch to \(\)", lambda x: x.broadcast_to(())),
        (ShapeError, r"broadcast_to: .*\(2, 4\)", lambda x: x.broadcast_to((2, 4))),
        (ShapeError, r"broadcast_to: .*\(2, -1\)", lambda x: x.broadcast_to((2, -1))),
        (ArgumentError, "broadcast_to: a shape is a tuple", lambda x: x.broadcast_to(3)),
        (ArgumentError, "take: axis 2", lambda x: x.take([0], axis=2)),
        (ShapeError, r"concat: got \(2, 3\) and \(3, 2\)", lambda x: gradcore.concat([x, x.T])),
        (ShapeError, r"concat: got \(2, 3\) and \(6,\)", lambda x: gradcore.concat([x, x.reshape(6)])),
        (ArgumentError, "concat: at least one", lambda x: gradcore.concat([])),
        (ArgumentError, "concat: axis 2", lambda x: gradcore.concat([x], axis=2)),
        (ArgumentError, "concat: axis 0 is out of range for 0 axes", lambda x: gradcore.concat([x.sum()])),
        (DTypeError, "Concat: .*float32 and int64", lambda x: gradcore.concat([x, x.astype("int64")])),
        (ShapeError, r"stack: got \(2, 3\) and \(3, 2\)", lambda x: gradcore.stack([x, x.T])),
        (ArgumentError, "stack: at least one", lambda x: gradcore.stack([])),
        (ArgumentError, "(stack|expand_dims): axis 4", lambda x: gradcore.stack([x], axis=4)),
    ],
)
def test_errors(error: type, text: str, call: Callable) -> None:
    """Each names the operation and the value, and the next correct call works."""
    with pytest.raises(error, match=text):
        call(Tensor(X))
    assert Tensor(X).reshape(3, 2).shape == (3, 2)


def test_sizes_may_be_numpy_integers() -> None:
    x = Tensor(X)
    assert x.reshape(np.int64(6)).shape == (6,)
    assert x.reshape(np.int32(3), np.int32(2)).shape == (3, 2)
    assert x.reshape(np.array([3, 2])).shape == (3, 2)
    assert x.reshape(6).permute_dims(np.int64(0)).shape == (6,)
    assert x.sum(0).broadcast_to(np.array([4, 3])).shape == (4, 3)


def test_functional_forms() -> None:
    assert ops.take(Tensor(X), [0], 1).shape == (2, 1)
    assert ops.concat([Tensor(X), Tensor(X)]).shape == (4, 3)
    assert ops.stack([Tensor(X), Tensor(X)]).shape == (2, 2, 3)
