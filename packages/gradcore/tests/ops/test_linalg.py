"""Matrix products beside PyTorch: vectors, matrices, stacks, layouts; linear; errors."""

import numpy as np
import pytest

from gradcore import Tensor, ops, tensor
from gradcore.errors import DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("backend")

MATMUL = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((1, 1), (1, 1)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((0,), (0,)),
    ((2, 0, 3), (3, 1)),
]


@pytest.mark.parametrize("shapes", MATMUL, ids=str)
def test_matmul_beside_torch(shapes: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    against_torch(lambda x, y: x @ y, lambda x, y: x @ y, a, b, layout=layout)


def test_products_with_itself() -> None:
    """Case 25."""
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).sum().backward()
    assert x.grad.tolist() == [[7, 11], [9, 13]]
    x.grad = None
    (x @ x.T).sum().backward()
    assert x.grad.tolist() == [[8, 12], [8, 12]]


def test_matmul_takes_arrays_on_both_sides(dtype: str) -> None:
    """Case 35."""
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], dtype), requires_grad=True)
    left = np.array([[0.0, 1.0], [1.0, 0.0]], dtype)
    for y, expected in [
        (left @ x, left @ x.numpy()),
        (x @ left, x.numpy() @ left),
        (x.matmul(left), x.numpy() @ left),
        ([[0, 1], [1, 0]] @ x, left @ x.numpy()),
    ]:
        assert (type(y), y.dtype, y.requires_grad) == (Tensor, dtype, True)
        np.testing.assert_array_equal(y.numpy(), expected)


def test_matmul_keeps_float32_apart_from_tf32() -> None:
    """Case 58's kind: each value differs from 1 by 2**-12."""
    row, column = np.full((1, 4096), 1 + 2.0**-12, np.float32), np.ones((4096, 1), np.float32)
    assert (tensor(row) @ tensor(column)).item() == pytest.approx(4097, abs=0.05)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((3, 4), (5, 2), r"matmul: got \(3, 4\) and \(5, 2\), inner sizes must agree"),
        ((3,), (4,), r"matmul: got \(3,\) and \(4,\), inner sizes must agree"),
        ((3, 4), (3,), r"matmul: got \(3, 4\) and \(3,\)"),
        ((2, 3, 4), (3, 4, 5), r"matmul: got \(2, 3, 4\) and \(3, 4, 5\), leading axes"),
        ((), (3,), r"matmul: got \(\) and \(3,\), each needs at least one axis"),
        ((3,), (), r"matmul: got \(3,\) and \(\)"),
    ],
)
def test_matmul_refuses(a: tuple, b: tuple, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        tensor(np.ones(a, np.float32)) @ tensor(np.ones(b, np.float32))


def test_matmul_mixed_types() -> None:
    with pytest.raises(DTypeError, match=r"MatMul: .*float32 and float64"):
        tensor([[1.0]]) @ np.array([[1.0]])
    assert (tensor(np.array([[2]])) @ tensor([[1.5]])).item() == 3.0
    with pytest.raises(ShapeError, match="use \\* to scale"):
        tensor([1.0]) @ 2.0


@pytest.mark.parametrize("shape", [(4, 3), (3,), (2, 5, 3), (0, 3), (1, 3)], ids=str)
def test_linear_beside_torch(shape: tuple, dtype: str, layout: str, rng: np.random.Generator, against_torch) -> None:
    torch = pytest.importorskip("torch")
    x, w, b = (rng.normal(size=s).astype(dtype) for s in (shape, (2, 3), (2,)))
    against_torch(ops.linear, torch.nn.functional.linear, x, w, b, layout=layout)
    against_torch(ops.linear, torch.nn.functional.linear, x, w, layout=layout)


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True)], ids=str)
def test_linear_gives_what_is_wanted(wanted: tuple, rng: np.random.Generator) -> None:
    operands = [
        tensor(rng.normal(size=s), requires_grad=w) for s, w in zip(((4, 3), (2, 3), (2,)), wanted, strict=True)
    ]
    ops.linear(*operands).sum().backward()
    assert [x.grad is not None for x in operands] == list(wanted)


def test_empty_batch_gives_zeros() -> None:
    """Case 24: exact zeros, no random memory."""
    w, b = tensor(np.ones((2, 3), np.float32), requires_grad=True), tensor([1.0, 2.0], requires_grad=True)
    x = tensor(np.ones((0, 3), np.float32), requires_grad=True)
    ops.linear(x, w, b).sum().backward()
    assert (x.grad.shape, w.grad.tolist(), b.grad.tolist()) == ((0, 3), [[0.0] * 3] * 2, [0.0, 0.0])


@pytest.mark.parametrize("row", [0, 2, 4])
def test_a_row_alone_equals_the_row_in_a_batch(row: int, dtype: str, rng: np.random.Generator, close) -> None:
    """Case 24."""
    x, w, b = (Tensor(rng.normal(size=s).astype(dtype)) for s in ((5, 30), (7, 30), (7,)))
    close(ops.linear(x, w, b)[row : row + 1], ops.linear(x[row : row + 1], w, b))


@pytest.mark.parametrize(
    ("x", "w", "b", "text"),
    [
        ((4, 3), (2, 4), None, r"linear: got input \(4, 3\) and weight \(2, 4\)"),
        ((), (2, 3), None, r"linear: got input \(\)"),
        ((4, 3), (3,), None, r"linear: got input \(4, 3\) and weight \(3,\)"),
        ((4, 3), (2, 3), (3,), r"linear: got bias \(3,\), expected \(2,\)"),
        ((4, 3), (2, 3), (1, 2), r"linear: got bias \(1, 2\)"),
    ],
)
def test_linear_refuses(x: tuple, w: tuple, b: tuple | None, text: str) -> None:
    operands = [tensor(np.ones(s, np.float32)) for s in (x, w, b) if s is not None]
    with pytest.raises(ShapeError, match=text):
        ops.linear(*operands)


def test_operands_must_be_tensors() -> None:
    with pytest.raises(DTypeError, match="Linear: operands are Tensors, got ndarray"):
        ops.linear(tensor([[1.0]]), np.ones((1, 1), np.float32))
